//! A code in the catalogue is raised somewhere: what nothing raises does not belong there yet.

use std::fs;
use std::path::{Path, PathBuf};

use super::Code;

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            sources(&path, found);
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") && name != "testing.rs" {
            found.push(path);
        }
    }
}

/// Program text without the registry itself and without test modules.
fn program() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    files.push(root.join("bin/streamt.rs"));
    let registry = root.join("src/codes");
    let mut text = String::new();
    for file in files.iter().filter(|file| !file.starts_with(&registry)) {
        let content = fs::read_to_string(file).unwrap();
        let end = content.find("#[cfg(test)]\nmod tests {").unwrap_or(content.len());
        text.push_str(&content[..end]);
    }
    text
}

#[test]
fn every_code_is_raised_by_the_program() {
    let program = program();
    let raised = |code: &Code| {
        let name = format!("Code::{code:?}");
        program.match_indices(&name).any(|(at, _)| {
            !program[at + name.len()..].starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_')
        })
    };
    let silent: Vec<&Code> = Code::ALL.iter().filter(|code| !raised(code)).collect();
    assert!(silent.is_empty(), "registered and raised by nothing: {silent:?}");
}
