//! What is wrong with a project is told with its code and its place by every command, and nothing is written.

use crate::harness::Workspace;

const HEAD: &str = "apiVersion: streamt.dev/v1alpha1
project: {name: shop}
runtime:
  kafka: {bootstrap_servers: 127.0.0.1:1}
  flink: {default: main, clusters: {main: {sql_gateway_url: \"http://127.0.0.1:1\"}}}
";

const TOPIC: &str = "topic: {name: shop.NAME.v1, partitions: 1, replication_factor: 1}";

fn project(body: &str) -> Workspace {
    Workspace::project(&format!("{HEAD}{body}"))
}

fn model(name: &str, more: &str) -> String {
    format!("  - {{name: {name}, description: d, {}{more}}}\n", TOPIC.replace("NAME", name))
}

/// A SQL model whose statement is written with single quotes around names.
fn sql(name: &str, statement: &str) -> String {
    model(name, &format!(", materialized: flink, sql: \"{statement}\""))
}

/// Every command that reads the project refuses with this code first and leaves the directory as it was.
#[track_caller]
fn refused(case: &str, workspace: &Workspace, code: &str, told: &str) {
    let before = workspace.snapshot();
    for command in
        ["validate", "compile", "build", "plan --offline --out plan.json", "plan", "apply", "apply --dry-run"]
    {
        let run = workspace.run(&format!("{command} -o json")).exits(1);
        let found = run.errors();
        assert!(found.iter().any(|(one, _)| one == code), "{case}, {command}: {found:?}");
        assert!(run.stdout.contains(told), "{case}, {command}: {}", run.stdout);
        assert_eq!(workspace.snapshot(), before, "{case}, {command}");
    }
}

/// EXP-004 EXP-005 EXP-006
#[test]
fn the_graph_of_a_project_is_sound_or_refused() {
    let models = |models: &[String]| format!("models:\n{}", models.concat());
    let cycle = models(&[sql("a", "SELECT x FROM {{ ref('b') }}"), sql("b", "SELECT x FROM {{ ref('a') }}")]);
    let exposure =
        |more: &str| format!("{}exposures:\n  - {{name: app, type: application, {more}}}\n", models(&[model("a", "")]));
    let feedback = format!(
        "{}exposures:\n  - {{name: app, type: application, role: both, consumes: [{{ref: b}}], produces: [{{ref: a}}]}}\n",
        models(&[model("a", ""), sql("b", "SELECT x FROM {{ ref('a') }}")])
    );
    let collision = format!("sources:\n  - {{name: a, topic: shop.other.v1}}\n{}", models(&[model("a", "")]));
    let same_topic = models(&[model("a", ""), model("b", "").replace("shop.b.v1", "shop.a.v1")]);
    for (case, body, code, told) in [
        ("cycle", cycle, "E104_CYCLE_DETECTED", "a -> b -> a"),
        ("feedback through an exposure", feedback, "E104_CYCLE_DETECTED", "app"),
        ("source and model", collision, "E111_NAME_COLLISION", "'a'"),
        ("one topic twice", same_topic, "E111_NAME_COLLISION", "shop.a.v1"),
        ("consumed model", exposure("consumes: [{ref: aa}]"), "E108_EXPOSURE_MODEL_NOT_FOUND", "Available models: 'a'"),
        ("consumed source", exposure("consumes: [{source: s}]"), "E109_EXPOSURE_SOURCE_NOT_FOUND", "'s'"),
        ("dependency", exposure("depends_on: [{ref: nope}]"), "E110_EXPOSURE_DEPENDENCY_NOT_FOUND", "'nope'"),
        ("both forms", exposure("consumes: [{ref: a, source: a}]"), "E113_EXPOSURE_REFERENCE_INVALID", "app"),
    ] {
        refused(case, &project(&body), code, told);
    }
}

#[test]
fn names_that_a_broker_or_the_project_could_not_hold_are_refused() {
    let long = "x".repeat(250);
    for (case, from, to, code) in [
        ("topic characters", "shop.a.v1", "\"shop a\"", "E501_PARSE_ERROR"),
        ("topic of dots", "shop.a.v1", "\"..\"", "E501_PARSE_ERROR"),
        ("long topic", "shop.a.v1", long.as_str(), "E501_PARSE_ERROR"),
        ("model characters", "name: a,", "name: \"a/b\",", "E501_PARSE_ERROR"),
        ("empty model", "name: a,", "name: \"\",", "E501_PARSE_ERROR"),
    ] {
        let body = format!("models:\n{}", model("a", ""));
        assert!(body.contains(from), "{case}");
        refused(case, &project(&body.replacen(from, to, 1)), code, "stream_project.yml");
    }
}

#[test]
fn templates_and_macros_are_rendered_or_refused() {
    let source = "sources:\n  - {name: src, topic: src.v1, columns: [{name: x, type: STRING}]}\n";
    let body = |more: &str| format!("{source}models:\n{}", model("a", &format!(", materialized: flink, {more}")));
    let with = |more: &str| {
        project(&body(more)).file("macros/pick.sql.j2", "SELECT {{ column }} FROM {{ source(\"src\") }}\n")
    };
    with("macro: pick, params: {column: x}").run("validate --strict").exits(0);
    let lineage = with("macro: pick, params: {column: x}").run("lineage").exits(0).stdout;
    assert_eq!(lineage, "src (source)\n└── a (flink)\n");
    for (case, more, code, told) in [
        ("macro name", "macro: pic", "E119_COMPILE_FAILED", "Did you mean 'pick'?"),
        ("macro parameter", "macro: pick", "E119_COMPILE_FAILED", "macro 'pick' of model 'a'"),
        ("template", "sql: \"SELECT x FROM {{ source('src') \"", "E105_JINJA_SYNTAX_ERROR", "'a'"),
        ("template call", "sql: \"SELECT {{ env('HOME') }}\"", "E105_JINJA_SYNTAX_ERROR", "'a'"),
        ("source", "sql: \"SELECT x FROM {{ source('sr') }}\"", "E101_SOURCE_NOT_FOUND", "Did you mean 'src'?"),
        ("model", "sql: \"SELECT x FROM {{ ref('b') }}\"", "E102_MODEL_NOT_FOUND", "'b'"),
    ] {
        refused(case, &with(more), code, told);
    }
}

/// What this version compiles and cannot deploy is refused by name, never left out in silence.
#[test]
fn a_kind_that_cannot_be_deployed_is_refused_by_plan_and_apply() {
    let gateway = "  conduktor: {gateway: {admin_url: \"http://127.0.0.1:1\", proxy_bootstrap: \"127.0.0.1:1\"}}\n";
    let select = "SELECT * FROM {{ ref('n') }} WHERE x = 'a'";
    let workspace = project(&format!(
        "{gateway}models:\n{}  - {{name: a, description: d, materialized: virtual_topic, sql: \"{select}\"}}\n",
        model("n", "")
    ));
    workspace.run("validate --strict").exits(0);
    assert!(workspace.run("compile --dry-run -o json").exits(0).warning_codes().is_empty());
    let before = workspace.snapshot();
    for command in ["plan", "plan --offline --out plan.json", "apply"] {
        let run = workspace.run(&format!("{command} -o json")).exits(1);
        assert_eq!(run.errors()[0].0, "E221_KIND_NOT_DEPLOYABLE", "{command}");
        assert!(run.stdout.contains("gateway_rule 'a'"), "{command}: {}", run.stdout);
    }
    // An online command has taken the lock, whose file stays.
    std::fs::remove_dir_all(workspace.path(".streamt")).unwrap();
    assert_eq!(workspace.snapshot(), before);
}

/// EXP-012
#[test]
fn a_managed_resource_without_its_runtime_is_an_error_for_plan_apply_and_status() {
    let schema = ", schema: {subject: s, format: avro, definition: '\"string\"'}";
    let workspace = project(&format!("models:\n{}", model("a", schema)));
    for command in ["plan", "apply", "status", "status --health"] {
        let run = workspace.run(&format!("{command} -o json")).exits(1);
        let errors = run.errors();
        assert!(errors.iter().any(|(code, _)| code == "E208_MISSING_CONFIG"), "{command}: {errors:?}");
        assert!(run.stdout.contains("runtime.schema_registry"), "{command}: {}", run.stdout);
    }
}

/// EXP-013: what is external opens no way around the other checks.
#[test]
fn external_declarations_leave_the_other_checks_in_force() {
    let external = "  - {name: ext, description: d, ownership: {mode: external}, topic: {name: shop.a.v1}}\n";
    refused(
        "an external model on a managed topic",
        &project(&format!("models:\n{}{external}", model("a", ""))),
        "E111_NAME_COLLISION",
        "shop.a.v1",
    );
    let unknown = "sources:\n  - {name: ext, topic: other.v1, ownership: {mode: borrowed}}\n";
    refused("a mode", &project(&format!("{unknown}models:\n{}", model("a", ""))), "E501_PARSE_ERROR", "borrowed");
}

#[test]
fn a_graph_that_no_picture_could_hold_is_refused() {
    let models: String =
        (0..5001).map(|number| format!("  - {{name: m{number}, topic: {{partitions: 1}}}}\n")).collect();
    let run = project(&format!("models:\n{models}")).run("lineage --format svg -o json").exits(1);
    assert_eq!(run.errors()[0].0, "E510_DOCS_INVALID");
}

/// EXP-001 EXP-002
#[test]
fn the_scaffold_is_strictly_valid_and_says_what_its_commands_do_not_prove() {
    let workspace = Workspace::new();
    let told = workspace.run("init --template flink --project-name shop --project-dir shop").exits(0).stdout;
    for part in
        ["need a session cluster with a SQL Gateway", "never creates the topic", "they prove no running processor"]
    {
        assert!(told.contains(part), "{part}: {told}");
    }
    workspace.run("validate --strict --project-dir shop").exits(0);
    workspace.run("compile --dry-run --project-dir shop").exits(0);
    let text = std::fs::read_to_string(workspace.path("shop/stream_project.yml")).unwrap();
    assert!(text.contains("SELECT") && !text.contains("SELECT *") && !text.contains("SELECT\n      *"), "{text}");
}
