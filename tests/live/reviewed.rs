//! What a refusal tells to do next can be pasted, and works.

use std::process::Command;

use crate::cli::service;
use crate::harness::{Run, Workspace};
use crate::support::unique;

/// SAF-056 SAF-057: in a directory whose name a shell would take apart.
#[test]
fn the_next_steps_of_a_refused_apply_can_be_pasted_into_a_shell() {
    let name = unique("paste");
    let directory = "it's a $(dir)";
    let runtime = format!("runtime: {{kafka: {{bootstrap_servers: \"{}\"}}}}", service("STREAMT_TEST_KAFKA"));
    let workspace = Workspace::new()
        .file(
            &format!("{directory}/stream_project.yml"),
            &format!(
                "apiVersion: streamt.dev/v1alpha1\nproject: {{name: {name}}}\nmodels:\n  - {{name: a, description: d, topic: {{name: {name}.a, partitions: 1, replication_factor: 1}}}}\n"
            ),
        )
        .file(
            &format!("{directory}/environments/prod.yml"),
            &format!("environment: {{name: prod, protected: true}}\n{runtime}\n"),
        );
    let mut command = workspace.command("apply -e prod -o json");
    let run = Run::of("apply", command.arg("-p").arg(directory).output().unwrap()).exits(1);
    assert_eq!(run.errors()[0].0, "E418_REVIEWED_PLAN_REQUIRED");
    let steps: Vec<String> = serde_json::from_value(run.json()["data"]["next_steps"].clone()).unwrap();
    assert!(steps.iter().all(|step| step.contains("/.streamt/reviewed-plan.json")), "{steps:?}");

    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_streamt"));
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap());
    for step in &steps {
        let output = Command::new("sh").args(["-c", step]).current_dir("/").env("PATH", &path).output().unwrap();
        Run::of(step, output).exits(0);
    }
    assert!(workspace.path(&format!("{directory}/.streamt/reviewed-plan.json")).is_file());
    let mut command = workspace.command("plan -e prod --detailed-exitcode");
    Run::of("plan", command.arg("-p").arg(directory).output().unwrap()).exits(0);
}
