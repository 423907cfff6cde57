//! What the commands around PostgreSQL state answer before any server is asked.

use crate::harness::Workspace;

const PROJECT: &str = "apiVersion: streamt.dev/v1alpha1
project: {name: shop}
runtime: {kafka: {bootstrap_servers: \"127.0.0.1:1\"}}
deployment_state:
  backend: postgres
  namespace: platform
  postgres: {dsn_env: OWNER_DSN, writer_dsn_env: WRITER_DSN, schema: hidden_schema}
";
const ADDRESS: &str = "streamt-state://platform/shop/default";

fn confirmed(rest: &str) -> String {
    format!("state init --confirm-project shop --confirm-env default --confirm-address {ADDRESS} {rest} -o json")
}

/// PGS-005 PGS-006 PGS-011: each credential is looked up alone, and nothing falls back to local state.
#[test]
fn a_missing_or_refused_credential_is_e420_and_no_local_state_takes_its_place() {
    let good = "postgresql://w:s3ntinel@127.0.0.1:1/d";
    for (owner, writer, redirecting, why) in [
        (Some(good), None, None, "the variable 'WRITER_DSN' is not set"),
        (Some(good), Some("  "), None, "the variable 'WRITER_DSN' is not set"),
        (Some(good), Some("postgresql://u:s3ntinel@a,b/d"), None, "more than one endpoint"),
        (Some(good), Some("postgresql://u:s3ntinel@db.example.test/d?sslmode=prefer"), None, "unencrypted"),
        (Some(good), Some("postgresql://u:s3ntinel@localhost/d?options=-csearch_path%3Dx"), None, "'options'"),
        (Some(good), Some(good), Some("PGHOST"), "'PGHOST' is set"),
        (Some(good), Some(good), Some("PGSERVICEFILE"), "'PGSERVICEFILE' is set"),
        (Some(good), Some(good), None, "cannot be reached"),
    ] {
        let mut workspace = Workspace::project(PROJECT);
        for (name, value) in [("OWNER_DSN", owner), ("WRITER_DSN", writer)] {
            if let Some(value) = value {
                workspace = workspace.variable(name, value);
            }
        }
        if let Some(name) = redirecting {
            workspace = workspace.variable(name, "");
        }
        for command in ["plan", "apply", "apply --dry-run"] {
            let run = workspace.run(&format!("{command} -o json")).exits(1);
            assert_eq!(run.errors()[0].0, "E420_STATE_BACKEND_UNAVAILABLE", "{command}: {}", run.stdout);
            let text = format!("{}{}", run.stdout, run.stderr);
            assert!(text.contains(why), "{command}: {text}");
            assert!(!text.contains("s3ntinel") && !text.contains("hidden_schema"), "{text}");
        }
        assert!(!workspace.path(".streamt/state").exists());
    }
    let workspace = Workspace::project(PROJECT).variable("WRITER_DSN", good);
    for command in
        ["state status -o json".to_owned(), "state lock-status -o json".to_owned(), confirmed("--writer-role w")]
    {
        let run = workspace.run(&command).exits(1);
        assert_eq!(run.errors()[0].0, "E420_STATE_BACKEND_UNAVAILABLE", "{}", run.stdout);
        assert!(run.stdout.contains("'OWNER_DSN' is not set"), "{}", run.stdout);
    }
}

#[test]
fn state_init_asks_for_the_whole_address_and_for_a_postgres_backend() {
    let workspace = Workspace::project(PROJECT).variable("OWNER_DSN", "postgresql://o@127.0.0.1:1/d");
    for line in [
        "state init --writer-role w -o json".to_owned(),
        confirmed("--writer-role w").replace("shop --confirm-env", "shap --confirm-env"),
        confirmed("--writer-role w").replace(ADDRESS, "streamt-state://platform/shop/prod"),
        confirmed(&format!("--writer-role {}", "w".repeat(64))),
    ] {
        let run = workspace.run(&line).exits(1);
        assert_eq!(run.errors()[0].0, "E411_STATE_INVALID", "{}", run.stdout);
    }
    workspace.run(&confirmed("--writer-role w --schema-version 1")).exits(2);
    let local = Workspace::project(
        "apiVersion: streamt.dev/v1alpha1\nproject: {name: shop}\nruntime: {kafka: {bootstrap_servers: \"127.0.0.1:1\"}}\n",
    );
    assert_eq!(local.run(&confirmed("--writer-role w")).exits(1).errors()[0].0, "E421_REMOTE_STATE_REQUIRED");
    let status = local.run("state lock-status -o json").exits(0).json();
    assert_eq!((&status["data"]["backend"], &status["data"]["lock_status"]), (&"local".into(), &"available".into()));
}

#[test]
fn the_statements_of_a_store_are_printed_without_a_project_and_without_names() {
    let run = Workspace::new().run("state init --writer-role s3ntinel --print-sql").exits(0);
    assert!(run.stdout.starts_with("CREATE SCHEMA :\"schema\";\n"), "{}", run.stdout);
    assert!(run.stdout.contains("GRANT USAGE ON SCHEMA :\"schema\" TO :\"writer\";"));
    assert!(!run.stdout.contains("s3ntinel"));
}

/// REC-006: nothing unlocks by force, and nothing edits or deletes a marker, ownership or history.
#[test]
fn the_state_commands_are_these_and_none_forces_anything() {
    let workspace = Workspace::new();
    let help = workspace.run("state --help").exits(0).stdout;
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(commands.contains(&"recover"), "{help}");
    let known = [
        "init",
        "status",
        "lock-status",
        "migrate-postgres-v2",
        "recovery-plan",
        "recover",
        "runner-status",
        "resume",
        "help",
    ];
    for command in commands {
        assert!(known.contains(&command), "{command}");
        let help = workspace.run(&format!("state {command} --help")).stdout;
        for word in ["--force", "--unlock", "--clear", "--delete", "--edit"] {
            assert!(!help.contains(word), "{command}: {word}");
        }
    }
}

/// REC-017 REC-029 REC-081 PGS-015 PGS-016 SEC-011 SEC-012
#[test]
fn the_guides_say_what_an_operator_must_do_and_must_not() {
    let guide = |name: &str| {
        let path = format!("{}/docs/guides/{name}.md", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for (name, parts) in [
        (
            "state",
            [
                "freeze the environment: project, streamt version, streamt runs, manual changes at the services; back up, and test the backup",
                "`pg_dump \"$STREAMT_STATE_ADMIN_DSN\" --schema=streamt --format=custom",
                "another person, with read access to the project and to the live services",
                "for this one file only",
                "Alert on a blocked status and on E419, E423, E425 and E426, and keep watching your backups",
                "Never downgrade streamt, and never restore or downgrade the schema, while any address is `in_progress` or `recovery_required`",
                "restore a backup of the schema once, with its data, and write down how; rehearse an interrupted apply",
                "it is no signature",
                "never values",
            ]
            .as_slice(),
        ),
        (
            "interrupted",
            [
                "until step 7 nobody runs streamt on this environment, changes its project, or changes its topics and schemas by hand",
                "[backup](state.md#backup)",
                "A second person reads the file and looks at the services themselves",
                "Do not run `apply` again",
            ]
            .as_slice(),
        ),
    ] {
        let text = guide(name);
        for part in parts {
            assert!(text.contains(part), "{name}: {part}");
        }
    }
}

/// PGS-006 PGS-012: what is wrong on the line is told before anything is read or contacted.
#[test]
fn a_migration_is_confirmed_by_store_and_role_and_is_for_postgres_state() {
    const ID: &str = "2b1e8a5e-9e1a-4e49-9b39-3b9b0f0b7c11";
    let line = |id: &str, role: &str| format!("state migrate-postgres-v2 {id} {role} -o json");
    let (id, role) = (format!("--confirm-store-id {ID}"), "--confirm-writer-role w".to_owned());
    let nowhere = Workspace::new();
    for (id, role, told) in [
        ("", role.as_str(), "--confirm-store-id is missing"),
        (id.as_str(), "", "--confirm-writer-role is missing"),
        ("--confirm-store-id 2B1E8A5E-9E1A-4E49-9B39-3B9B0F0B7C11", role.as_str(), "canonical"),
        ("--confirm-store-id x", role.as_str(), "canonical"),
        (id.as_str(), &format!("--confirm-writer-role {}", "w".repeat(64)), "1 to 63 bytes"),
        (id.as_str(), "--confirm-writer-role=", "1 to 63 bytes"),
    ] {
        let run = nowhere.run(&line(id, role)).exits(1);
        assert_eq!(run.errors()[0].0, "E411_STATE_INVALID", "{}", run.stdout);
        assert!(run.stdout.contains(told), "{told}: {}", run.stdout);
    }
    let local = Workspace::project(
        "apiVersion: streamt.dev/v1alpha1\nproject: {name: shop}\nruntime: {kafka: {bootstrap_servers: \"127.0.0.1:1\"}}\n",
    );
    assert_eq!(local.run(&line(&id, &role)).exits(1).errors()[0].0, "E421_REMOTE_STATE_REQUIRED");
    // The writer's variable is never read for it, and the configured role must be the confirmed one.
    let workspace = Workspace::project(PROJECT).variable("WRITER_DSN", "postgresql://w:s3ntinel@127.0.0.1:1/d");
    let run = workspace.run(&line(&id, &role)).exits(1);
    assert_eq!(run.errors()[0].0, "E420_STATE_BACKEND_UNAVAILABLE", "{}", run.stdout);
    assert!(run.stdout.contains("'OWNER_DSN' is not set"), "{}", run.stdout);
    let configured = PROJECT.replace("schema: hidden", "writer_role_env: ROLE, schema: hidden");
    for (value, code) in [
        (None, "E420_STATE_BACKEND_UNAVAILABLE"),
        (Some("s3ntinel"), "E411_STATE_INVALID"),
        (Some("w"), "E420_STATE_BACKEND_UNAVAILABLE"),
    ] {
        let workspace = Workspace::project(&configured).variable("OWNER_DSN", "postgresql://o@127.0.0.1:1/d");
        let workspace = value.into_iter().fold(workspace, |workspace, value| workspace.variable("ROLE", value));
        let run = workspace.run(&line(&id, &role)).exits(1);
        assert_eq!(run.errors()[0].0, code, "{}", run.stdout);
        assert!(!run.stdout.contains("s3ntinel"), "{}", run.stdout);
    }
}

#[test]
fn the_statements_of_a_migration_are_printed_without_a_project_and_without_names() {
    let run = Workspace::new().run("state migrate-postgres-v2 --print-sql").exits(0);
    let first = "ALTER TABLE :\"schema\".store_metadata DROP CONSTRAINT store_metadata_schema_version_check;\n";
    assert!(run.stdout.starts_with(first), "{}", run.stdout);
    assert!(run.stdout.contains("GRANT USAGE ON SCHEMA :\"schema\" TO :\"writer\";"), "{}", run.stdout);
}
