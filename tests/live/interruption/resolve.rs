//! The runbook of a blocked operation, from its evidence to its end.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use serde_json::Value;

use super::world::World;

/// An operation that a recovery ended.
pub struct Resolved {
    pub planned: Value,
    /// The command that carried it out.
    pub line: String,
    /// What that command said.
    pub done: Value,
}

impl Resolved {
    /// Targets that stand in this form.
    pub fn count(&self, form: &str) -> usize {
        self.planned["targets"].as_array().expect("targets").iter().filter(|t| t["accepted_as"] == form).count()
    }
}

pub fn new_file() -> String {
    format!("recovery-{}.json", uuid::Uuid::new_v4().simple())
}

pub fn plan_line(resolution: &str, file: &str) -> String {
    format!("state recovery-plan --resolution {resolution} --out {file}")
}

/// `planned` = what `state recovery-plan` said, or `review` of its file.
pub fn recover_line(file: &str, planned: &Value) -> String {
    let text = |key: &str| planned[key].as_str().unwrap_or_else(|| panic!("{key}: {planned:#}"));
    let checksum = if planned["evidence_checksum"].is_string() { "evidence_checksum" } else { "checksum" };
    format!(
        "state recover --plan {file} --confirm-operation-id {} --confirm-resolution {} --confirm-evidence-checksum {}",
        text("blocked_operation_id"),
        text("resolution"),
        text(checksum)
    )
}

/// Plans and recovers; where the services still moved in between, once more from the evidence on.
#[track_caller]
pub fn resolve(world: &World, resolution: &str) -> Resolved {
    resolve_with(world, resolution, |_| {})
}

/// As [`resolve`]; `before` sees the command that is about to be carried out.
#[track_caller]
pub fn resolve_with(world: &World, resolution: &str, mut before: impl FnMut(&str)) -> Resolved {
    let mut told = Vec::new();
    for _ in 0..10 {
        let file = new_file();
        let planned = world.run(&plan_line(resolution, &file));
        if planned.exit == 0 {
            let mode = std::fs::metadata(world.workspace.path(&file)).expect("a file").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            let planned = planned.json()["data"].clone();
            let line = recover_line(&file, &planned);
            before(&line);
            let done = world.run(&line);
            if done.exit == 0 {
                return Resolved { planned, line, done: done.json()["data"].clone() };
            }
            assert_eq!(done.errors()[0].0, "E409_PLAN_STALE", "{}", done.stdout);
            told.push(done.stdout);
        } else {
            assert_eq!(planned.errors()[0].0, "E409_PLAN_STALE", "{}", planned.stdout);
            assert!(!world.workspace.path(&file).exists(), "no evidence, no file");
            told.push(planned.stdout);
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    panic!("the targets never stood still: {}", told.join("\n"));
}
