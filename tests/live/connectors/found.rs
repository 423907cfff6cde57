//! What was told or kept, by where, to be searched for what must not be in it.

use super::yard::Yard;
use crate::harness::Run;

#[derive(Default)]
pub struct Found(Vec<(String, String)>);

impl Found {
    pub fn note(&mut self, place: &str, told: String) {
        self.0.push((place.to_owned(), told));
    }

    /// Runs a command and keeps what it says.
    pub fn run(&mut self, yard: &Yard, line: &str) -> Run {
        let run = yard.run(line);
        self.note(line, format!("{}{}", run.stdout, run.stderr));
        run
    }

    /// The rows of the state and every file beside the project's own.
    pub fn kept(&mut self, yard: &Yard) {
        for table in ["current_state", "state_history", "operation_control", "operation_history", "state_addresses"] {
            let rows = yard.sql(&format!("SELECT t::text FROM {{schema}}.{table} t"));
            assert!(!rows.is_empty(), "{table}");
            self.note(table, rows.concat().concat());
        }
        self.files(yard);
    }

    pub fn files(&mut self, yard: &Yard) {
        for (path, bytes) in yard.workspace.snapshot() {
            if !path.ends_with("stream_project.yml") {
                self.note(&path.display().to_string(), String::from_utf8_lossy(&bytes).into_owned());
            }
        }
    }

    /// Where a text stands.
    pub fn places(&self, secret: &str) -> Vec<&str> {
        self.0.iter().filter(|(_, told)| told.contains(secret)).map(|(place, _)| place.as_str()).collect()
    }

    /// Plants the secrets where the search must find them, and finds them nowhere else.
    #[track_caller]
    pub fn hold_none_of(mut self, secrets: &[&str]) {
        self.note("planted", secrets.join(" "));
        for secret in secrets {
            assert_eq!(self.places(secret), ["planted"], "{secret}");
        }
    }
}
