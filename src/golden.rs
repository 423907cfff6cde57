//! Files of the repository that are printed from the code. A test keeps each current.

use std::path::Path;

/// Compares a file, named from the root of the repository, with what it should hold; `make reference` writes it instead.
#[track_caller]
pub fn is_current(path: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("STREAMT_REGENERATE").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, text).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(written == text, "{path} is not what the code prints: run `make reference` and commit it");
}
