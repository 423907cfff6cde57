//! Runs the binary in a directory of its own with an environment of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A project directory that goes away with its test.
pub struct Workspace {
    directory: tempfile::TempDir,
    variables: Vec<(String, String)>,
}

/// What a run left.
pub struct Run {
    pub exit: i32,
    pub stdout: String,
    pub stderr: String,
    line: String,
}

impl Workspace {
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), variables: Vec::new() }
    }

    /// A workspace with one project file.
    pub fn project(yaml: &str) -> Self {
        Self::new().file("stream_project.yml", yaml)
    }

    pub fn file(self, path: &str, content: &str) -> Self {
        self.write(path, content);
        self
    }

    pub fn write(&self, path: &str, content: &str) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    pub fn root(&self) -> &Path {
        self.directory.path()
    }

    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_streamt"));
        command.args(line.split_whitespace()).current_dir(self.root()).stdin(Stdio::null());
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    pub fn run(&self, line: &str) -> Run {
        Run::of(line, self.command(line).output().unwrap())
    }

    /// Every file below the directory with its bytes, to show that nothing was written.
    pub fn snapshot(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        let mut open = vec![self.root().to_path_buf()];
        while let Some(directory) = open.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    open.push(path);
                } else {
                    let bytes = std::fs::read(&path).unwrap();
                    found.push((path, bytes));
                }
            }
        }
        found.sort();
        found
    }
}

impl Run {
    /// A run of which a shell script printed stdout and exit code.
    pub fn new(exit: i32, stdout: String) -> Self {
        Self { exit, stdout, stderr: String::new(), line: "streamt, in a script".to_owned() }
    }

    pub fn of(line: &str, output: Output) -> Self {
        Self {
            exit: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            line: format!("streamt {line}"),
        }
    }

    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.exit, code, "{}\n--- stdout\n{}\n--- stderr\n{}", self.line, self.stdout, self.stderr);
        self
    }

    /// The one JSON document on stdout.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{}: {error}\n{}\n{}", self.line, self.stdout, self.stderr))
    }

    /// Codes and locations of `errors`.
    #[track_caller]
    pub fn errors(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        self.json()["errors"].as_array().unwrap().iter().map(|e| (text(&e["code"]), text(&e["location"]))).collect()
    }

    #[track_caller]
    pub fn warning_codes(&self) -> Vec<String> {
        self.json()["warnings"].as_array().unwrap().iter().map(|w| w["code"].as_str().unwrap().to_owned()).collect()
    }

    /// The whole command as text, for snapshots.
    pub fn transcript(&self) -> String {
        format!("$ {}\n--- exit {}\n--- stdout\n{}--- stderr\n{}", self.line, self.exit, self.stdout, self.stderr)
    }
}

/// Compares a whole command with its snapshot; paths, versions and ids are written as words.
macro_rules! snapshot {
    ($workspace:expr, $run:expr, $name:literal) => {{
        let mut settings = insta::Settings::clone_current();
        let root = std::fs::canonicalize($workspace.root()).unwrap();
        settings.add_filter(&crate::harness::regex_escape(&root.display().to_string()), "[PROJECT]");
        settings.add_filter(&crate::harness::regex_escape(&$workspace.root().display().to_string()), "[PROJECT]");
        settings.add_filter(concat!(r"\b", "0\\.1\\.0", r"\b"), "[VERSION]");
        settings.add_filter(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "[UUID]");
        settings.add_filter(r"sha256:[0-9a-f]{64}", "[SHA256]");
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!($name, $run.transcript()));
    }};
}
pub(crate) use snapshot;

pub fn regex_escape(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_ascii_alphanumeric() || c == '/' { vec![c] } else { vec!['\\', c] }).collect()
}
