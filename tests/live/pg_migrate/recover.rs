//! Recovery in a store that was migrated: its history began under version 1.

use super::{back_to_version_1, carried, migrate};
use crate::postgres::Estate;
use crate::support::{eventually, majors};

/// REC-008, REC-010, REC-030, PGS-012: an operation that is interrupted after the migration is ended as in any store, and what came
/// before it stays as it was.
#[test]
fn an_operation_interrupted_in_a_migrated_store_is_recovered() {
    for major in &majors() {
        let estate = Estate::new(major, 3);
        estate.init();
        let workspace = &estate.workspace;
        workspace.run("apply").exits(0);
        estate.settled("");
        let id = workspace.run("state status -o json").json()["data"]["store_id"].as_str().unwrap().to_owned();
        back_to_version_1(&estate);
        migrate(&estate, &id).exits(0);
        let older: Vec<String> = carried(&estate).into_iter().filter(|row| row.contains("_history ")).collect();

        let more = format!(
            "  - {{name: late, description: d, topic: {{name: {}.late, partitions: 1, replication_factor: 1}}}}\n",
            estate.project
        );
        let yaml = std::fs::read_to_string(workspace.path("stream_project.yml")).unwrap();
        workspace.write("stream_project.yml", &format!("{yaml}{more}"));
        let killed = estate.run_with(&[("STREAMT_FAILPOINT", "request.answered")], "apply");
        assert_eq!(killed.exit, -1, "{}", killed.stdout);
        let refused = workspace.run("plan -o json").exits(1);
        assert_eq!(refused.errors()[0].0, "E419_STATE_RECOVERY_REQUIRED", "{}", refused.stdout);
        let again = migrate(&estate, &id);
        assert_eq!(again.exits(0).json()["data"]["outcome"], "already_migrated", "nothing is left to migrate");

        // The broker shows a new topic a moment after it confirmed it.
        let shown = || {
            let topics =
                workspace.run("status -o json").json()["data"]["topics"].as_array().cloned().unwrap_or_default();
            topics.len() == 4 && topics.iter().all(|topic| topic["exists"] == true)
        };
        assert!(eventually(shown, |shown| *shown), "the topic was created");
        let planned = workspace.run("state recovery-plan --resolution observed --out r.json -o json");
        let planned = planned.exits(0).json()["data"].clone();
        assert_eq!(planned["targets"][0]["accepted_as"], "candidate", "{planned:#}");
        let text = |key: &str| planned[key].as_str().unwrap_or_else(|| panic!("{key}: {planned:#}")).to_owned();
        workspace.run("review r.json").exits(0);
        let line = format!(
            "state recover --plan r.json --confirm-operation-id {} --confirm-resolution observed --confirm-evidence-checksum {} -o json",
            text("blocked_operation_id"),
            text("evidence_checksum")
        );
        workspace.run(&line).exits(0);
        let status = workspace.run("state status -o json").exits(0).json()["data"].clone();
        assert_eq!((&status["operation_status"]["status"], &status["schema_version"]), (&"clear".into(), &2.into()));
        let now = carried(&estate);
        assert!(older.iter().all(|row| now.contains(row)), "history is only added to");
        workspace.run("apply").exits(0);
        estate.settled("");
        assert_eq!(workspace.run("plan -o json").exits(0).json()["data"]["summary"]["ownership_requirements"], 0);
    }
}
