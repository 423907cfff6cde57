//! Commands over a project, offline: what they print, what they refuse, and that a refusal writes nothing.

use std::time::Duration;

use crate::harness::Workspace;

const PROJECT: &str = "apiVersion: streamt.dev/v1alpha1
project: {name: shop}
runtime:
  kafka: {bootstrap_servers: 127.0.0.1:1}
models:
  - name: orders
    description: Orders
    topic: {name: shop.orders.v1, partitions: 3, replication_factor: 1, config: {retention.ms: 86400000}}
  - name: audit
    description: Audit trail
    tags: [audit]
    topic: {name: shop.audit.v1, partitions: 1, replication_factor: 1}
exposures:
  - {name: board, type: dashboard, consumes: [{ref: orders}]}
";

fn shop() -> Workspace {
    Workspace::project(PROJECT)
}

fn broken(from: &str, to: &str) -> Workspace {
    assert!(PROJECT.contains(from), "{from}");
    Workspace::project(&PROJECT.replacen(from, to, 1))
}

#[test]
fn a_valid_project_is_counted() {
    let run = shop().run("validate -o json").exits(0);
    let data = &run.json()["data"];
    assert_eq!((&data["valid"], &data["models"], &data["exposures"]), (&true.into(), &2.into(), &1.into()));
    assert_eq!(data["project_name"], "shop");
    assert_eq!(data["environment"], serde_json::Value::Null);
}

/// Each row: what is broken, the code, and where it must point.
#[test]
fn bad_input_names_code_and_place_and_writes_nothing() {
    let table = [
        ("models:\n", "models: [\n", "E501_PARSE_ERROR"),
        ("partitions: 3", "partitions: three", "E501_PARSE_ERROR"),
        ("partitions: 3", "partitons: 3", "E501_PARSE_ERROR"),
        ("description: Orders\n", "description: Orders\n    description: Twice\n", "E501_PARSE_ERROR"),
        ("127.0.0.1:1", "\"${NOT_SET_ANYWHERE}\"", "E502_ENV_VAR_ERROR"),
        ("{ref: orders}", "{ref: ordrs}", "E108_EXPOSURE_MODEL_NOT_FOUND"),
        ("name: audit\n", "name: orders\n", "E103_DUPLICATE_NAME"),
    ];
    for (from, to, code) in table {
        let workspace = broken(from, to);
        let before = workspace.snapshot();
        for command in
            ["validate", "compile", "build", "plan --offline --out plan.json", "plan", "apply", "apply --dry-run"]
        {
            let run = workspace.run(&format!("{command} -o json")).exits(1);
            let errors = run.errors();
            assert_eq!(errors[0].0, code, "{command}: {to}\n{}", run.stdout);
            assert!(errors[0].1.starts_with("stream_project.yml"), "{command}: {to}\n{}", run.stdout);
            assert_eq!(workspace.snapshot(), before, "{command}: {to}");
        }
        let text = workspace.run("validate").exits(1);
        assert!(text.stderr.contains(&format!("ERROR: [{code}]")), "{}", text.stderr);
        assert!(text.stderr.contains("--> stream_project.yml"), "{}", text.stderr);
    }
}

#[test]
fn a_missing_project_or_directory_is_told_apart() {
    let empty = Workspace::new();
    assert_eq!(empty.run("validate -o json").exits(1).errors()[0].0, "E501_PARSE_ERROR");
    assert_eq!(empty.run("validate -p nowhere -o json").exits(2).errors()[0].0, "E902_USAGE");
}

#[test]
fn environments_are_refused_where_there_are_none() {
    let workspace = shop();
    assert_eq!(workspace.run("validate -e dev -o json").exits(1).errors()[0].0, "E503_ENVIRONMENT_ERROR");
    assert_eq!(workspace.run("validate --all-envs -o json").exits(1).errors()[0].0, "E503_ENVIRONMENT_ERROR");
    assert_eq!(workspace.run("envs show dev -o json").exits(1).errors()[0].0, "E503_ENVIRONMENT_ERROR");
    assert_eq!(workspace.run("envs list -o json").exits(0).json()["data"]["mode"], "single");
}

#[test]
fn strict_fails_on_a_warning_and_keeps_the_result() {
    let workspace = Workspace::project(&PROJECT.replacen("apiVersion: streamt.dev/v1alpha1\n", "", 1));
    let run = workspace.run("validate -o json").exits(0);
    assert_eq!(run.warning_codes(), ["W219_API_VERSION_MISSING"]);
    let strict = workspace.run("validate --strict -o json").exits(1);
    assert_eq!(strict.errors()[0].0, "E904_STRICT_WARNINGS");
    assert_eq!(strict.json()["data"]["strict_failure"], true);
    assert_eq!(workspace.run("validate -q").exits(0).stderr, "");
}

#[test]
fn compiled_files_are_compared_byte_for_byte() {
    let workspace = shop();
    let dry = workspace.run("compile --dry-run -o json").exits(0);
    assert_eq!(dry.json()["data"]["counts"]["topics"], 2);
    assert!(!workspace.path("generated").exists());
    workspace.run("compile").exits(0);
    assert!(workspace.path("generated/topics/shop.orders.v1.json").is_file());
    workspace.run("compile --check").exits(0);
    workspace.write("generated/topics/shop.orders.v1.json", "{}\n");
    let check = workspace.run("compile --check -o json").exits(1);
    assert_eq!(check.errors()[0].0, "E905_OUTPUT_DIFFERS");
    assert_eq!(check.json()["data"]["differing_files"], serde_json::json!(["topics/shop.orders.v1.json"]));
    assert_eq!(std::fs::read_to_string(workspace.path("generated/topics/shop.orders.v1.json")).unwrap(), "{}\n");
}

#[test]
fn files_of_an_earlier_run_are_told_and_left_in_place() {
    let workspace = shop();
    workspace.run("compile").exits(0);
    workspace.write("stream_project.yml", &PROJECT.replace("shop.audit.v1", "shop.audit.v2"));
    let run = workspace.run("compile -o json").exits(0);
    assert_eq!(run.warning_codes(), ["W145_STALE_OUTPUT"]);
    assert!(workspace.path("generated/topics/shop.audit.v1.json").is_file());
}

#[test]
fn a_build_is_checked_by_sha256sum_and_refuses_a_foreign_directory() {
    let workspace = shop();
    workspace.run("build").exits(0);
    let check = std::process::Command::new("sha256sum")
        .args(["-c", "--quiet", "checksums.sha256"])
        .current_dir(workspace.path("build"))
        .status()
        .unwrap();
    assert!(check.success());
    workspace.run("build").exits(0);
    workspace.write("other/mine.txt", "mine");
    let refused = workspace.run("build --output-dir other -o json").exits(1);
    assert_eq!(refused.errors()[0].0, "E907_OUTPUT_FAILED");
    assert!(!workspace.path("other/manifest.json").exists());
}

#[test]
fn an_offline_plan_is_saved_reviewed_and_never_applied() {
    let workspace = shop();
    let run = workspace.run("plan --offline --out plan.json --markdown plan.md -o json").exits(0);
    let data = run.json()["data"].clone();
    assert_eq!((&data["creates"], &data["offline"]), (&2.into(), &true.into()));
    assert_eq!(data["operation_status"]["status"], "unavailable");
    assert!(std::fs::read_to_string(workspace.path("plan.md")).unwrap().contains("not authorised (offline)"));
    let review = workspace.run("review plan.json -o json").exits(0).json();
    assert_eq!(review["data"]["checksum"], data["plan_checksum"]);
    assert_eq!(review["data"]["authorizes_apply"], false);
    let before = workspace.snapshot();
    assert_eq!(workspace.run("apply --plan plan.json -o json").exits(1).errors()[0].0, "E408_PLAN_FILE_INVALID");
    assert_eq!(workspace.run("plan --offline --detailed-exitcode").exits(2).exit, 2);
    assert_eq!(workspace.run("plan --offline --out . -o json").exits(2).errors()[0].0, "E902_USAGE");
    assert_eq!(workspace.snapshot(), before);
}

#[test]
fn an_edited_plan_or_one_with_a_selection_is_refused() {
    let workspace = shop();
    workspace.run("plan --offline --out plan.json").exits(0);
    let text = std::fs::read_to_string(workspace.path("plan.json")).unwrap();
    workspace.write("plan.json", &text.replace("shop.orders.v1", "shop.orders.v2"));
    assert_eq!(workspace.run("review plan.json -o json").exits(1).errors()[0].0, "E408_PLAN_FILE_INVALID");
    assert_eq!(workspace.run("apply --plan plan.json -o json").exits(1).errors()[0].0, "E408_PLAN_FILE_INVALID");
    for selection in ["--target orders", "--select tag:x", "--target orders --dry-run"] {
        let both = workspace.run(&format!("apply --plan plan.json {selection} -o json")).exits(1);
        assert_eq!(both.errors()[0].0, "E408_PLAN_FILE_INVALID", "{selection}");
        assert!(both.stdout.contains("--plan excludes"), "not for what is wrong with the file: {}", both.stdout);
    }
}

#[test]
fn an_unreachable_broker_is_e406_and_leaves_no_state() {
    let workspace = shop();
    for command in ["plan", "apply", "diff", "status"] {
        let run = workspace.run(&format!("{command} -o json")).exits(1);
        assert_eq!(run.errors()[0].0, "E406_CONNECTION_REFUSED", "{command}\n{}", run.stdout);
    }
    let status = workspace.run("state status -o json").exits(0).json();
    assert_eq!(status["data"]["state_status"], "absent");
    assert_eq!(status["data"]["operation_status"]["status"], "clear");
}

#[test]
fn policies_of_an_environment_are_asked_before_any_provider() {
    let workspace = Workspace::project(&PROJECT.replace("runtime:\n  kafka: {bootstrap_servers: 127.0.0.1:1}\n", ""))
        .file("environments/dev.yml", "environment: {name: dev}\nruntime: {kafka: {bootstrap_servers: 127.0.0.1:1}}\n")
        .file(
            "environments/ask.yml",
            "environment: {name: ask}\nsafety: {confirm_apply: true}\nruntime: {kafka: {bootstrap_servers: 127.0.0.1:1}}\n",
        )
        .file(
            "environments/remote.yml",
            "environment: {name: remote}\nsafety: {require_remote_state: true}\nruntime: {kafka: {bootstrap_servers: 127.0.0.1:1}}\n",
        )
        .file(
            "environments/prod.yml",
            "environment: {name: prod, protected: true}\nruntime: {kafka: {bootstrap_servers: 127.0.0.1:1}}\n",
        );
    let code = |line: &str| workspace.run(&format!("{line} -o json")).exits(1).errors()[0].0.clone();
    assert_eq!(code("plan"), "E503_ENVIRONMENT_ERROR");
    assert_eq!(code("plan -e nope"), "E503_ENVIRONMENT_ERROR");
    assert_eq!(code("apply -e ask"), "E503_ENVIRONMENT_ERROR");
    assert_eq!(code("apply -e ask --confirm-env dev"), "E503_ENVIRONMENT_ERROR");
    assert_eq!(code("apply -e ask --confirm-env ask"), "E406_CONNECTION_REFUSED");
    assert_eq!(code("apply -e remote"), "E421_REMOTE_STATE_REQUIRED");
    let refused = workspace.run("apply -e prod --confirm --force -o json").exits(1);
    assert_eq!(refused.errors()[0].0, "E418_REVIEWED_PLAN_REQUIRED");
    let data = refused.json()["data"].clone();
    assert_eq!(data["policy"], "environment.protected");
    assert!(data["next_steps"][1].as_str().unwrap().contains("--confirm-env prod"), "{data}");
    let all = workspace.run("validate --all-envs -o json").exits(0).json();
    assert_eq!(all["data"]["all_valid"], true);
    assert_eq!(all["data"]["environments"].as_array().unwrap().len(), 4);
    let diff = workspace.run("envs diff dev prod -o json").exits(0).json();
    assert!(diff["data"]["diffs"].as_array().unwrap().iter().any(|row| row["key"] == "protected"), "{diff}");
}

#[test]
fn declarations_are_listed_shown_and_drawn() {
    let workspace = shop();
    assert_eq!(workspace.run("list -o json").exits(0).json()["data"]["summary"]["models"], 2);
    let tagged = workspace.run("list models --select tag:audit -o json").exits(0).json();
    assert_eq!(tagged["data"]["items"][0]["name"], "audit");
    assert_eq!(workspace.run("list models --select audit -o json").exits(2).errors()[0].0, "E902_USAGE");
    assert_eq!(workspace.run("show model orders -o json").exits(0).json()["data"]["topic"]["name"], "shop.orders.v1");
    let unknown = workspace.run("show model ordes -o json").exits(1).json();
    assert_eq!(unknown["errors"][0]["code"], "E102_MODEL_NOT_FOUND");
    assert_eq!(unknown["errors"][0]["suggestion"], "Did you mean 'orders'?");
    assert_eq!(workspace.run("show source a -o json").exits(1).errors()[0].0, "E101_SOURCE_NOT_FOUND");
    assert_eq!(workspace.run("show test a -o json").exits(1).errors()[0].0, "E107_TEST_MODEL_NOT_FOUND");
    assert_eq!(workspace.run("show exposure a -o json").exits(1).errors()[0].0, "E108_EXPOSURE_MODEL_NOT_FOUND");
    let tree = workspace.run("lineage -m orders").exits(0).stdout;
    assert_eq!(tree, "orders (topic) ◀\n└── board (exposure)\n");
    workspace.run("lineage --format svg --output-file lineage.svg").exits(0);
    assert!(std::fs::read_to_string(workspace.path("lineage.svg")).unwrap().ends_with("</svg>\n"));
    let columns = workspace.run("lineage -m orders --columns -o json").exits(0).json();
    assert_eq!(columns["data"]["model"], "orders");
    assert_eq!(workspace.run("lineage -m orders --columns --format svg -o json").exits(2).errors()[0].0, "E902_USAGE");
    assert_eq!(workspace.run("lineage -m orders --columns --upstream -o json").exits(2).errors()[0].0, "E902_USAGE");
    assert_eq!(workspace.run("show model orders --sql -o json").exits(2).errors()[0].0, "E902_USAGE");
    assert_eq!(workspace.run("lineage -m nope -o json").exits(1).errors()[0].0, "E102_MODEL_NOT_FOUND");
    workspace.run("lineage --upstream").exits(2);
}

/// LIM-022: an exposure is documentation of who reads and writes: nothing is built, scheduled or planned for it.
#[test]
fn an_exposure_adds_no_artifact_and_no_action() {
    let exposure = "exposures:\n  - {name: board, type: dashboard, consumes: [{ref: orders}]}\n";
    let (with, without) = (shop(), broken(exposure, ""));
    for command in ["compile --dry-run", "plan --offline"] {
        let [a, b] = [&with, &without].map(|workspace| workspace.run(&format!("{command} -o json")).exits(0).json());
        let counted = |value: &serde_json::Value| (value["data"]["counts"].clone(), value["data"]["changes"].clone());
        assert_eq!(counted(&a), counted(&b), "{command}");
    }
    assert_eq!(with.run("plan --offline -o json").json()["data"]["creates"], 2);
    with.run("compile").exits(0);
    let made: Vec<_> =
        with.snapshot().into_iter().filter(|(path, _)| path.to_string_lossy().contains("generated")).collect();
    assert!(made.len() >= 2 && made.iter().all(|(path, _)| !path.to_string_lossy().contains("board")));
}

#[test]
fn the_schema_is_printed_without_a_project_and_explains_fields() {
    let workspace = Workspace::new();
    let schema = workspace.run("docs schema").exits(0).stdout;
    assert!(
        serde_json::from_str::<serde_json::Value>(&schema).unwrap()["$schema"].as_str().unwrap().contains("2020-12")
    );
    let field = workspace.run("explain yaml models.topic.partitions -o json").exits(0).json();
    assert_eq!(field["data"]["minimum"], 1);
    assert_eq!(workspace.run("explain yaml models.topic.partitons -o json").exits(2).errors()[0].0, "E902_USAGE");
}

/// SEC-001 SEC-003 SEC-013 SEC-014: with a positive control, so that the scan cannot be vacuous.
#[test]
fn a_secret_in_every_place_appears_in_no_output_and_no_file() {
    const SENTINEL: &str = "sentinel-7f3a9c";
    let runtime = "runtime:
  kafka:
    bootstrap_servers: 127.0.0.1:1
    security_protocol: SASL_PLAINTEXT
    sasl_mechanism: PLAIN
    sasl_username: app
    sasl_password: ${SHOP_PASSWORD}
  schema_registry: {url: \"http://127.0.0.1:1\", username: app, password: \"${SHOP_PASSWORD}\"}
";
    let yaml = PROJECT.replace("runtime:\n  kafka: {bootstrap_servers: 127.0.0.1:1}\n", runtime);
    let workspace = Workspace::project(&yaml).variable("SHOP_PASSWORD", SENTINEL);
    let found = |text: &str| text.contains(SENTINEL);
    let mut scanned = String::new();
    for command in [
        "validate",
        "compile",
        "build",
        "plan --offline --out plan.json --markdown plan.md",
        "review plan.json",
        "plan -vvv",
        "apply -vvv",
        "apply --dry-run",
        "diff -vvv",
        "status -vvv --include-external",
        "list models",
        "show model orders",
        "lineage",
        "envs list",
        "state status",
    ] {
        for format in ["text", "json"] {
            let run = workspace.run(&format!("{command} -o {format}"));
            assert!(!found(&run.stdout) && !found(&run.stderr), "{command}\n{}\n{}", run.stdout, run.stderr);
            scanned += &run.stdout;
        }
    }
    assert!(scanned.len() > 1000);
    for (path, bytes) in workspace.snapshot() {
        assert!(!found(&String::from_utf8_lossy(&bytes)), "{}", path.display());
    }
    let planted = Workspace::project(&yaml.replace("description: Orders", &format!("description: {SENTINEL}")))
        .variable("SHOP_PASSWORD", "x");
    assert!(found(&planted.run("show model orders").exits(0).stdout), "the scan must find what is there");
}

/// A pipe in the place of a file is refused at once, for its reader would wait for ever.
#[test]
fn a_pipe_where_a_file_is_expected_hangs_nothing() {
    for path in ["stream_project.yml", ".env", "environments/dev.yml", "macros/m.sql.j2", "ca.pem"] {
        let tls = "127.0.0.1:1, security_protocol: SSL, ssl_ca_location: ca.pem}";
        let workspace = Workspace::project(&PROJECT.replace("127.0.0.1:1}", tls));
        let place = workspace.path(path);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        let _ = std::fs::remove_file(&place);
        assert!(std::process::Command::new("mkfifo").arg(&place).status().unwrap().success());
        let mut child =
            (workspace.command("plan").stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()))
                .spawn()
                .unwrap();
        let began = std::time::Instant::now();
        while child.try_wait().unwrap().is_none() {
            if began.elapsed() > Duration::from_secs(30) {
                child.kill().unwrap();
                panic!("{path} hangs");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// SIGINT before anything durable: nothing is written and the envelope is whole.
#[test]
fn an_interrupted_plan_exits_130_and_writes_nothing() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let workspace = broken("127.0.0.1:1", &address);
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let child = workspace
            .command("plan -o json")
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(700));
        std::process::Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        let run = crate::harness::Run::of("plan", child.wait_with_output().unwrap()).exits(code);
        assert_eq!(run.errors()[0].0, "E903_INTERRUPTED");
    }
    assert!(!workspace.path("plan.json").exists());
}

const SQL: &str = "apiVersion: streamt.dev/v1alpha1
project: {name: shop}
runtime:
  kafka: {bootstrap_servers: \"localhost:9092\"}
  flink: {default: local, clusters: {local: {sql_gateway_url: \"http://localhost:8083\"}}}
sources:
  - name: orders_raw
    topic: orders.raw.v1
    columns: [{name: order_id, type: STRING}, {name: total, type: INT}]
models:
  - name: orders_valid
    description: Orders that cost something
    materialized: flink
    sql: |
      SELECT order_id, total
      FROM {{ source(\"orders_raw\") }}
      WHERE total > 0
";

/// The text of the job, the origins of its columns, and a finding in the SQL at its place.
#[test]
fn sql_is_shown_as_flink_gets_it_and_its_columns_are_traced() {
    let workspace = Workspace::project(SQL);
    workspace.run("validate --strict").exits(0);
    let text = workspace.run("show model orders_valid --sql").exits(0).stdout;
    assert!(text.starts_with("CREATE TABLE IF NOT EXISTS `orders_raw` (\n    `order_id` STRING,\n"), "{text}");
    assert!(text.ends_with("SELECT order_id, total\nFROM `orders_raw`\nWHERE total > 0;\n"), "{text}");
    workspace.run("compile").exits(0);
    assert_eq!(std::fs::read_to_string(workspace.path("generated/flink/orders_valid.sql")).unwrap(), text);
    let lineage = workspace.run("lineage --model orders_valid --columns --format json").exits(0).stdout;
    let expected = include_str!("snapshots/lineage_columns.json");
    assert_eq!(lineage, expected);
    let policy = "    security: {policies: [{mask: {column: order_id, method: hash}}]}\n    sql: |\n";
    let masked = Workspace::project(&SQL.replacen("    sql: |\n", policy, 1));
    let lineage = masked.run("lineage -m orders_valid --columns -o json").exits(0).json()["data"].clone();
    assert_eq!(lineage["column_lineage"][0]["masked"], true, "{lineage}");
    assert_eq!(lineage["column_lineage"][1].get("masked"), None, "{lineage}");
    let wrong = Workspace::project(&SQL.replace("SELECT order_id, total", "SELECT order_id, totl"));
    let run = wrong.run("validate -o json").exits(0).json();
    let finding = &run["warnings"][0];
    assert_eq!(finding["code"], "W102_MISSING_SOURCE_COLUMN", "{run}");
    assert_eq!(finding["location"], "stream_project.yml:15:24");
    let opaque = SQL.replace("    columns: [{name: order_id, type: STRING}, {name: total, type: INT}]\n", "");
    let opaque = opaque.replace("SELECT order_id, total", "SELECT *");
    let lineage = Workspace::project(&opaque).run("lineage -m orders_valid --columns -o json").exits(0);
    assert_eq!(lineage.warning_codes(), ["W124_COLUMN_LINEAGE_INCOMPLETE"]);
    assert_eq!(lineage.json()["data"]["complete"], false);
}
