//! Environments, variables and secrets, through `load`.

use super::super::env::{Mode, mode};
use super::super::fs::MemoryFs;
use super::super::model::DeploymentState;
use super::*;

const ROOT_FILE: &str = "apiVersion: streamt.dev/v1alpha1\nproject: {name: shop}\n";
const KAFKA: &str = "runtime: {kafka: {bootstrap_servers: 'b:9092'}}\n";

fn multi() -> MemoryFs {
    MemoryFs::new().with("stream_project.yml", ROOT_FILE).with("environments/dev.yml", KAFKA).with(
        "environments/prod.yaml",
        format!("environment: {{name: prod, description: Live, protected: true}}\n{KAFKA}"),
    )
}

fn input(name: Option<&str>, variables: &[(&str, &str)]) -> EnvironmentInput {
    EnvironmentInput {
        variables: variables.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        requested: name.map(str::to_owned),
        unset: Unset::Refused,
    }
}

fn refused(fs: &MemoryFs, input: &EnvironmentInput) -> Vec<Diagnostic> {
    load(fs, input).expect_err("must be refused").into_vec()
}

fn only(fs: &MemoryFs, input: &EnvironmentInput) -> Diagnostic {
    let mut found = refused(fs, input);
    assert_eq!(found.len(), 1, "{found:#?}");
    found.remove(0)
}

fn warnings(fs: &MemoryFs, input: &EnvironmentInput) -> Vec<&'static str> {
    load(fs, input).unwrap().warnings.iter().map(|warning| warning.code.number()).collect()
}

#[test]
fn the_selection_table_is_followed() {
    let single = MemoryFs::new().with("stream_project.yml", format!("{ROOT_FILE}{KAFKA}"));
    assert_eq!(only(&single, &input(Some("dev"), &[])).code, Code::E503EnvironmentError);
    assert_eq!(warnings(&single, &input(None, &[("STREAMT_ENV", "dev")])), ["W222"]);

    let empty = MemoryFs::new().with("stream_project.yml", ROOT_FILE).with_directory("environments");
    assert_eq!(only(&empty, &input(None, &[])).code, Code::E503EnvironmentError);

    let fs = multi();
    let none = only(&fs, &input(None, &[]));
    assert!(none.message.contains("'dev', 'prod'"), "{}", none.message);
    let unknown = only(&fs, &input(Some("prd"), &[]));
    assert!(unknown.message.contains("'dev', 'prod'"));
    assert_eq!(unknown.suggestion.as_deref(), Some("Did you mean 'prod'?"));
    for bad in ["../dev", "-dev", "a/b", ""] {
        assert_eq!(only(&fs, &input(Some(bad), &[])).code, Code::E503EnvironmentError, "{bad}");
    }
    let by_variable = load(&fs, &input(None, &[("STREAMT_ENV", "dev")])).unwrap();
    assert_eq!(by_variable.project.environment.name, "dev");
    let by_option = load(&fs, &input(Some("prod"), &[("STREAMT_ENV", "dev")])).unwrap();
    assert_eq!(by_option.project.environment.name, "prod");

    let twice = multi().with("environments/dev.yaml", KAFKA);
    assert!(only(&twice, &input(Some("dev"), &[])).message.contains("two files"));
}

#[test]
fn the_process_alone_chooses_the_environment() {
    let fs = multi().with(".env", "STREAMT_ENV=dev\n");
    assert!(load(&fs, &input(None, &[])).is_err());
}

#[test]
fn policy_comes_from_the_file_and_never_from_the_name() {
    let prod = load(&multi(), &input(Some("prod"), &[])).unwrap().project.environment;
    assert!(prod.protected && prod.confirm_apply && prod.requires_reviewed_plan() && prod.multi);
    assert_eq!(prod.description, "Live");
    let dev = load(&multi().with("environments/production.yml", KAFKA), &input(Some("production"), &[])).unwrap();
    assert!(!dev.project.environment.protected && !dev.project.environment.requires_confirmation());
    let safety = "safety: {confirm_apply: false, allow_destructive: true, require_reviewed_plan: true, require_remote_state: true, reviewed_plan_max_age_minutes: 5}\n";
    let fs = multi().with("environments/prod.yaml", format!("environment: {{protected: true}}\n{safety}{KAFKA}"));
    let prod = load(&fs, &input(Some("prod"), &[])).unwrap().project.environment;
    assert!(!prod.confirm_apply && prod.allow_destructive && prod.require_reviewed_plan && prod.require_remote_state);
    assert_eq!(prod.reviewed_plan_max_age_minutes, Some(5));
    assert!(!prod.forbid_deletion);
}

/// SAF-069
#[test]
fn an_environment_may_forbid_every_deletion() {
    let safety = "safety: {allow_destructive: true, forbid_deletion: true}\n";
    let fs = multi().with("environments/prod.yaml", format!("{safety}{KAFKA}"));
    assert!(load(&fs, &input(Some("prod"), &[])).unwrap().project.environment.forbid_deletion);
    assert!(!load(&fs, &input(Some("dev"), &[])).unwrap().project.environment.forbid_deletion);
}

#[test]
fn every_refusal_of_an_environment_file_is_e503_at_its_place() {
    for (text, place) in [
        ("environment: {name: other}\n", "1:21"),
        ("environment: {name: 5}\n", "1:21"),
        ("environment: {protected: 'yes'}\n", "1:26"),
        ("environment: {protected: null}\n", "1:26"),
        ("environment: {description: 1}\n", "1:28"),
        ("safety: {reviewed_plan_max_age_minutes: 0}\n", "1:41"),
        ("safety: {reviewed_plan_max_age_minutes: 525601}\n", "1:41"),
        ("safety: {confirm: true}\n", "1:10"),
        ("models: []\n", "1:1"),
        ("deployment_state: {backend: local, namespace: x}\n", "1:36"),
        ("deployment_state: {backend: postgres, namespace: x, postgres: {dsn_env: A, writer_dsn_env: A}}\n", "1:92"),
        ("deployment_state: null\n", "1:19"),
    ] {
        let fs = multi().with("environments/dev.yml", format!("{text}{KAFKA}"));
        let error = only(&fs, &input(Some("dev"), &[]));
        assert_eq!(error.code, Code::E503EnvironmentError, "{text}");
        assert_eq!(error.location.unwrap().to_string(), format!("environments/dev.yml:{place}"), "{text}");
    }
    for text in ["environment: {}\n", "runtime: {}\n", "runtime: null\n"] {
        let fs = multi().with("environments/dev.yml", text);
        assert_eq!(only(&fs, &input(Some("dev"), &[])).code, Code::E503EnvironmentError, "{text}");
    }
}

#[test]
fn deployment_state_of_the_environment_replaces_the_project_s_whole() {
    let project = "deployment_state: {backend: postgres, namespace: p, postgres: {dsn_env: A}}\n";
    let own = "deployment_state: {backend: postgres, namespace: e, lock_timeout_seconds: 7, postgres: {dsn_env: B}}\n";
    let fs = multi()
        .with("stream_project.yml", format!("{ROOT_FILE}{project}"))
        .with("environments/dev.yml", format!("{own}{KAFKA}"));
    let DeploymentState::Postgres(dev) = load(&fs, &input(Some("dev"), &[])).unwrap().project.deployment_state else {
        panic!("postgres")
    };
    assert_eq!(
        (dev.namespace.as_str(), dev.lock_timeout, dev.dsn_env.as_str(), dev.writer_dsn_env),
        ("e", 7, "B", None)
    );
    let DeploymentState::Postgres(prod) = load(&fs, &input(Some("prod"), &[])).unwrap().project.deployment_state else {
        panic!("postgres")
    };
    assert_eq!((prod.namespace.as_str(), prod.lock_timeout), ("p", 30));
}

#[test]
fn variables_come_from_files_and_the_process_and_the_process_wins() {
    let fs = multi()
        .with("environments/dev.yml", "runtime: {kafka: {bootstrap_servers: '${A}-${B}-${C}-${D:-d}'}, kafka_streams: {image: '${IMAGE}', stop_timeout: '${T}'}}\n")
        .with(".env", "A=1\nB=1\nC=1\n")
        .with(".env.dev", "B=2\nC=2\n");
    let image = format!("sha256:{}", "a".repeat(64));
    let project = load(&fs, &input(Some("dev"), &[("C", "3"), ("IMAGE", &image), ("T", "7")])).unwrap().project;
    assert_eq!(project.runtime.kafka.unwrap().bootstrap_servers, "1-2-3-d");
    assert_eq!(project.runtime.kafka_streams.unwrap().stop_timeout, 7);
    let wrong = only(&fs, &input(Some("dev"), &[("IMAGE", &image), ("T", "SENTINEL")]));
    assert_eq!(wrong.path.as_deref(), Some("runtime → kafka_streams → stop_timeout"));
    assert!(!format!("{wrong:?}").contains("SENTINEL"));
}

#[test]
fn all_missing_variables_are_named_once_in_one_error() {
    let text = "runtime:\n  kafka: {bootstrap_servers: '${B}${A}${OK:-x}'}\n  schema_registry: {url: '${A}'}\n";
    let fs = multi().with("environments/dev.yml", text);
    let error = only(&fs, &input(Some("dev"), &[]));
    assert_eq!(error.code, Code::E502EnvVarError);
    assert!(error.message.ends_with("A, B"), "{}", error.message);
    assert_eq!(error.location.unwrap().to_string(), "environments/dev.yml:2:30");
}

#[test]
fn variables_of_one_environment_do_not_reach_another() {
    let fs = multi()
        .with("environments/dev.yml", "runtime: {kafka: {bootstrap_servers: '${HOST}'}}\n")
        .with("environments/prod.yaml", "runtime: {kafka: {bootstrap_servers: '${HOST}'}}\n")
        .with(".env.dev", "HOST=dev:9092\n");
    let all = load_all(&fs, &BTreeMap::new(), Unset::Refused).unwrap();
    assert_eq!(
        all.iter().map(|(name, result)| (name.as_str(), result.is_ok())).collect::<Vec<_>>(),
        [("dev", true), ("prod", false)]
    );
    assert!(
        load_all(
            &MemoryFs::new().with("stream_project.yml", ROOT_FILE).with_directory("environments"),
            &BTreeMap::new(),
            Unset::Refused
        )
        .is_err()
    );
}

#[test]
fn an_unset_variable_that_is_kept_stands_for_any_value_and_hides_no_other_fault() {
    let text = "environment: {protected: true}
runtime:
  kafka: {bootstrap_servers: '${HOST}', sasl_oauth_token_url: '${URL}', security_protocol: '${PROTOCOL}'}
  schema_registry: {url: '${URL}'}
  flink: {clusters: {a: {type: '${TYPE}'}}}
";
    let kept = |name: &str| EnvironmentInput { unset: Unset::Kept, ..input(Some(name), &[]) };
    let fs = multi().with("environments/dev.yml", text);
    let loaded = load(&fs, &kept("dev")).unwrap();
    assert_eq!(loaded.unset.into_iter().collect::<Vec<_>>(), ["HOST", "PROTOCOL", "TYPE", "URL"]);
    assert_eq!(loaded.project.runtime_document.expose()["schema_registry"]["url"], "${URL}");
    for faulty in ["kafka: {nope: 1, ", "kafka: {ssl_ca_location: [1], ", "schema_registry: '${X}'\n  kafka: {"] {
        let text = text.replace("  schema_registry: {url: '${URL}'}\n", "").replace("kafka: {", faulty);
        assert!(load(&multi().with("environments/dev.yml", text), &kept("dev")).is_err(), "{faulty}");
    }
}

#[test]
fn policies_need_no_variable_and_no_declaration() {
    let fs = multi()
        .with(
            "environments/dev.yml",
            "environment: {description: d}\nruntime: {kafka: {bootstrap_servers: '${HOST}'}}\n",
        )
        .with("environments/prod.yaml", "environment: {protected: yes please}\n")
        .with("models/broken.yml", "models: [\n");
    let policies = policies(&fs).unwrap().unwrap();
    assert_eq!(policies[0].1.as_ref().unwrap().description, "d");
    assert_eq!(policies[1].1.as_ref().unwrap_err().iter().next().unwrap().code, Code::E503EnvironmentError);
    assert!(super::policies(&MemoryFs::new()).unwrap().is_none());
}

#[test]
fn a_variable_that_does_not_end_is_a_located_error_whatever_is_set() {
    let fs = MemoryFs::new().with(
        "stream_project.yml",
        "project: {name: shop}\nruntime:\n  kafka:\n    bootstrap_servers: 'b:1'\n    sasl_username: ${A\n    sasl_password: x${B:-d\n",
    );
    let errors = load(&fs, &input(None, &[("A", "1"), ("B", "2")])).unwrap_err();
    let found: Vec<_> = errors
        .iter()
        .map(|error| (error.code, error.location.as_ref().unwrap().to_string(), error.message.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            (Code::E501ParseError, "stream_project.yml:5:20".to_owned(), "'${A' has no closing '}'"),
            (Code::E501ParseError, "stream_project.yml:6:20".to_owned(), "'${B' has no closing '}'"),
        ]
    );
    let fs = multi().with(".env", "A=1\nB=\"${A\"\nC='${A'\n");
    let error = only(&fs, &input(Some("dev"), &[]));
    assert_eq!(
        (error.code, error.location.as_ref().unwrap().to_string().as_str()),
        (Code::E503EnvironmentError, ".env:2:1")
    );
}

#[test]
fn only_runtime_is_interpolated() {
    let models = "models: [{name: a, description: '${X}'}]\nconnections: {c: {type: t, config: {k: '${X}'}}}\n";
    let fs = MemoryFs::new().with("stream_project.yml", format!("{ROOT_FILE}{KAFKA}{models}"));
    let loaded = load(&fs, &input(None, &[("X", "1")])).unwrap();
    assert_eq!(loaded.project.models[0].description.as_deref(), Some("${X}"));
    assert_eq!(loaded.warnings.iter().map(|w| w.code.number()).collect::<Vec<_>>(), ["W226"]);
}

#[test]
fn loader_notices_are_warnings() {
    let runtime = MemoryFs::new()
        .with("stream_project.yml", format!("project: {{name: shop}}\nenvironments: {{dev: 1}}\n{KAFKA}"))
        .with("environments/dev.yml", "runtime: {kafka: {bootstrap_servers: 'b:1', ssl_ca_location: certs/ca.pem}}\n")
        .with("models/a.sql", "SELECT 1");
    let mut found = warnings(&runtime, &input(Some("dev"), &[]));
    found.sort_unstable();
    assert_eq!(found, ["W219", "W220", "W221", "W223", "W224"]);
    let strict = only(&runtime, &input(Some("dev"), &[("STREAMT_STRICT_SSL", "1")]));
    assert_eq!(strict.code, Code::E501ParseError);
    let there = runtime.with("certs/ca.pem", "x");
    assert!(load(&there, &input(Some("dev"), &[("STREAMT_STRICT_SSL", "1")])).is_ok());
}

#[test]
fn a_wrong_env_file_is_e503_by_line_and_shows_nothing() {
    let fs = multi().with(".env", "A=1\nSENTINEL nonsense\n");
    let error = only(&fs, &input(Some("dev"), &[]));
    assert_eq!(
        (error.code, error.location.as_ref().unwrap().to_string().as_str()),
        (Code::E503EnvironmentError, ".env:2:1")
    );
    assert!(error.excerpt.is_none() && !format!("{error:?}").contains("SENTINEL"));
}

#[test]
fn environments_are_files_directly_below_the_directory() {
    let fs = multi().with("environments/nested/x.yml", "a").with("environments/readme.md", "a");
    let Mode::Multi(files) = mode(&fs).unwrap() else { panic!("multi") };
    assert_eq!(files.into_keys().collect::<Vec<_>>(), ["dev", "prod"]);
}

/// Every secret field holds the sentinel; nothing printable of the result does.
#[test]
fn secrets_are_in_no_debug_text_and_no_finding() {
    let image = format!("sha256:{}", "a".repeat(64));
    let tls = "ssl_key_location: k, ssl_key_password: SENTINEL-1";
    let good = format!(
        "runtime:\n  kafka: {{bootstrap_servers: 'b:1', sasl_mechanism: PLAIN, sasl_username: u, sasl_password: '${{SECRET}}', {tls}}}\n  \
         schema_registry: {{url: 'http://r', token: SENTINEL-2, {tls}}}\n  \
         flink: {{clusters: {{m: {{api_key: SENTINEL-3, password: SENTINEL-4}}, c: {{type: confluent, api_secret: SENTINEL-5}}}}}}\n  \
         connect: {{clusters: {{m: {{rest_url: 'http://c', username: u, password: SENTINEL-6}}}}}}\n  \
         conduktor: {{gateway: {{password: SENTINEL-7}}, console: {{url: 'http://x', api_key: SENTINEL-8}}}}\n  \
         kafka_streams: {{image: '{image}'}}\n"
    );
    let fs = MemoryFs::new().with("stream_project.yml", format!("{ROOT_FILE}{good}"));
    let loaded = load(&fs, &input(None, &[("SECRET", "SENTINEL-0")])).unwrap();
    assert!(!format!("{loaded:?}").contains("SENTINEL"));
    assert!(loaded.project.runtime_document.expose().to_string().contains("SENTINEL-0"));

    for bad in [
        "sasl_password: [SENTINEL]",
        "sasl_password: {a: SENTINEL}",
        "ssl_key_password: 5, sasl_password: SENTINEL",
        "sasl_mechanism: '${SECRET}'",
        "security_protocol: '${SECRET}', zz: SENTINEL, token: x",
        "sasl_oauth_client_secret: SENTINEL",
        "sasl_oauth_token_url: 'https://u:SENTINEL@h/'",
        "sasl_password: SENTINEL, sasl_password: SENTINEL",
        "sasl_password: !x SENTINEL",
        "sasl_password: SENTINEL, bad: [",
    ] {
        let fs = MemoryFs::new()
            .with("stream_project.yml", format!("{ROOT_FILE}runtime:\n  kafka: {{bootstrap_servers: 'b:1', {bad}}}\n"));
        let errors = refused(&fs, &input(None, &[("SECRET", "SENTINEL")]));
        assert!(!format!("{errors:?}").contains("SENTINEL"), "{bad}: {errors:#?}");
    }
    assert!(!format!("{:?}", input(None, &[("SECRET", "SENTINEL")])).contains("SENTINEL"));
}
