//! Reviewed plans of a protected environment whose state is in PostgreSQL: what authorises a change, and what does not any more.

use serde_json::Value;
use streamt::compiler::canonical::Checksum;

use crate::harness::{Run, Workspace};
use crate::postgres::{Estate, service};
use crate::support::majors;

/// The project of an estate with the environment `prod`, protected, and plans that live for an hour.
struct Production {
    estate: Estate,
}

impl Production {
    fn new(major: &str) -> Self {
        let estate = Estate::new(major, 1);
        let production = Self { estate };
        production.declare(1);
        let workspace = production.workspace();
        let postgres =
            format!("{{dsn_env: OWNER_DSN, writer_dsn_env: WRITER_DSN, schema: {}}}", production.estate.schema);
        workspace.write(
            "environments/prod.yml",
            &format!(
                "environment: {{name: prod, protected: true}}
safety: {{reviewed_plan_max_age_minutes: 60, require_remote_state: true}}
runtime: {{kafka: {{bootstrap_servers: \"{}\"}}}}
deployment_state: {{backend: postgres, namespace: tests, lock_timeout_seconds: 5, postgres: {postgres}}}
",
                service("STREAMT_TEST_KAFKA")
            ),
        );
        let project = &production.estate.project;
        let init = format!(
            "state init -e prod --writer-role {} --confirm-project {project} --confirm-env prod \
             --confirm-address streamt-state://tests/{project}/prod",
            production.estate.writer
        );
        workspace.run(&init).exits(0);
        production
    }

    fn workspace(&self) -> &Workspace {
        &self.estate.workspace
    }

    /// One topic with so many partitions.
    fn declare(&self, partitions: u32) {
        let project = &self.estate.project;
        self.workspace().write(
            "stream_project.yml",
            &format!(
                "apiVersion: streamt.dev/v1alpha1\nproject: {{name: {project}}}\nmodels:\n  - {{name: m0, description: d, \
                 topic: {{name: {project}.t0, partitions: {partitions}, replication_factor: 1}}}}\n"
            ),
        );
    }

    fn plan(&self, file: &str) {
        self.workspace().run(&format!("plan -e prod --out {file}")).exits(0);
    }

    fn apply(&self, file: &str) -> Run {
        self.workspace().run(&format!("apply -e prod --plan {file} --confirm-env prod -o json"))
    }

    fn read(&self, file: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.workspace().path(file)).unwrap()).unwrap()
    }

    /// The plan after an edit by somebody who knows how its checksum is made.
    fn forge(&self, from: &str, to: &str, edit: impl FnOnce(&mut Value)) {
        let mut plan = self.read(from);
        edit(&mut plan);
        plan.as_object_mut().unwrap().shift_remove("checksum");
        plan["checksum"] = serde_json::json!(Checksum::of(&plan).unwrap());
        self.workspace().write(to, &serde_json::to_string_pretty(&plan).unwrap());
    }

    /// Refused, and nothing written.
    #[track_caller]
    fn refuses(&self, line: &str, code: &str) -> Run {
        let rows = self.estate.rows();
        let run = self.workspace().run(&format!("{line} -o json")).exits(1);
        assert_eq!(run.errors()[0].0, code, "{line}: {}", run.stdout);
        assert_eq!(self.estate.rows(), rows, "{line}");
        run
    }
}

/// SAF-049 SAF-052 SAF-055 SAF-058: nothing but the reviewed file and the named environment authorises a change, and the file is what is
/// recorded.
#[test]
fn a_protected_environment_is_changed_by_its_reviewed_plan_alone() {
    for major in &majors() {
        let production = Production::new(major);
        for flags in ["", "--confirm", "--force", "--confirm-env prod", "--target m0"] {
            production.refuses(&format!("apply -e prod {flags}"), "E418_REVIEWED_PLAN_REQUIRED");
        }
        production.plan("plan.json");
        let review = production.workspace().run("review plan.json -o json").exits(0).json();
        let checksum = review["data"]["checksum"].as_str().unwrap().to_owned();
        assert_eq!((&review["data"]["valid"], &review["data"]["authorizes_apply"]), (&true.into(), &true.into()));
        let text = production.workspace().run("review plan.json").exits(0).stdout;
        for part in [
            "Reviewed plan, format 5, checksum verified",
            &format!("streamt-state://tests/{}/prod serial 0", production.estate.project),
            &checksum,
            "1. create",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        production.refuses("apply -e prod --plan plan.json", "E503_ENVIRONMENT_ERROR");
        production.refuses("apply -e prod --plan plan.json --confirm-env dev", "E503_ENVIRONMENT_ERROR");
        production.refuses("apply -e prod --plan plan.json --target m0 --confirm-env prod", "E408_PLAN_FILE_INVALID");
        let applied = production.apply("plan.json").exits(0);
        assert!(applied.warning_codes().contains(&"W142_PROTECTED_ENVIRONMENT".to_owned()), "{}", applied.stdout);
        let intent = format!(
            "SELECT event_json FROM {}.operation_history WHERE event_kind = 'intent'",
            production.estate.schema
        );
        let intents = production.estate.ask(&intent);
        assert_eq!(intents.len(), 1);
        let intent: Value = serde_json::from_str(&intents[0]).unwrap();
        assert_eq!(intent["reviewed_plan_checksum"], checksum);
        assert_eq!(intent["actions"], production.read("plan.json")["actions"]);
    }
}

/// SAF-006 SAF-059 SAF-060: made against serial N, refused at N + 1, whatever else is the same.
#[test]
fn a_plan_is_stale_once_the_state_has_moved() {
    for major in &majors() {
        let production = Production::new(major);
        production.plan("first.json");
        production.plan("second.json");
        production.apply("first.json").exits(0);
        let run = production.refuses("apply -e prod --plan second.json --confirm-env prod", "E409_PLAN_STALE");
        let stale = &run.json()["data"]["stale"];
        assert_eq!(
            (&stale["field"], &stale["reviewed"], &stale["current"]),
            (&"state.serial".into(), &0.into(), &1.into())
        );
        production.refuses("apply -e prod --plan first.json --confirm-env prod", "E409_PLAN_STALE");
        // An edit that claims the new serial does not claim the new content.
        production.forge("second.json", "forged.json", |plan| plan["state"]["serial"] = 1.into());
        let run = production.refuses("apply -e prod --plan forged.json --confirm-env prod", "E409_PLAN_STALE");
        assert_eq!(run.json()["data"]["stale"]["field"], "state.checksum");
        production.declare(2);
        production.plan("third.json");
        production.declare(3);
        let run = production.refuses("apply -e prod --plan third.json --confirm-env prod", "E409_PLAN_STALE");
        assert_eq!(run.json()["data"]["stale"]["field"], "manifest_checksum");
    }
}

#[test]
fn a_plan_of_another_store_of_the_same_address_is_stale() {
    for major in &majors() {
        let (first, second) = (Production::new(major), Production::new(major));
        first.plan("plan.json");
        let id = second.workspace().run("state status -e prod -o json").exits(0).json()["data"]["store_id"].clone();
        first.forge("plan.json", "forged.json", |plan| plan["state"]["store_id"] = id.clone());
        let run = first.refuses("apply -e prod --plan forged.json --confirm-env prod", "E409_PLAN_STALE");
        assert_eq!(run.json()["data"]["stale"]["field"], "state.store_id");
    }
}

/// SAF-062: by the policy of the environment, judged once, whoever edited the time.
#[test]
fn a_plan_that_is_older_than_its_environment_allows_is_refused() {
    for major in &majors() {
        let production = Production::new(major);
        production.plan("plan.json");
        let now = jiff::Timestamp::now();
        let at = |minutes: i64| {
            let at = now + jiff::SignedDuration::from_mins(minutes);
            at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
        };
        for (minutes, expired) in [(-61, true), (-600, true), (6, true)] {
            production.forge("plan.json", "aged.json", |plan| plan["created_at"] = at(minutes).into());
            let run = production.refuses("apply -e prod --plan aged.json --confirm-env prod", "E409_PLAN_STALE");
            let stale = &run.json()["data"]["stale"];
            assert_eq!(stale["reason"] == "expired", expired, "{minutes}: {stale}");
        }
        production.forge("plan.json", "aged.json", |plan| plan["created_at"] = at(-59).into());
        production.apply("aged.json").exits(0);
    }
}

/// SAF-047 SAF-048: a blocked plan can be saved and reviewed, and authorises nothing.
#[test]
fn a_blocked_plan_authorises_nothing() {
    for major in &majors() {
        let production = Production::new(major);
        production.declare(3);
        production.plan("grow.json");
        production.apply("grow.json").exits(0);
        production.estate.settled("-e prod");
        production.declare(1);
        production.plan("shrink.json");
        let review = production.workspace().run("review shrink.json -o json").exits(0).json();
        assert_eq!(review["data"]["authorizes_apply"], false, "{review}");
        production.refuses("apply -e prod --plan shrink.json --confirm-env prod", "E417_SAFETY_BLOCKED");
        production.refuses("apply -e prod --plan shrink.json --confirm-env prod --force", "E417_SAFETY_BLOCKED");
    }
}
