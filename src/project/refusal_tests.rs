//! Each refusal of the language, table by table: the text, where it is reported, under which code.

use super::super::fs::MemoryFs;
use super::*;

const HEADER: &str =
    "apiVersion: streamt.dev/v1alpha1\nproject: {name: shop}\nruntime: {kafka: {bootstrap_servers: 'b:9092'}}\n";

fn report(fs: &MemoryFs) -> Vec<String> {
    let Err(errors) = load(fs, &EnvironmentInput::default()) else { return vec!["accepted".to_owned()] };
    errors
        .iter()
        .map(|error| {
            assert!(error.suggestion.is_some(), "no suggestion: {error:?}");
            let location = error.location.as_ref().map(ToString::to_string).unwrap_or_default();
            let place = location.strip_prefix("stream_project.yml:").unwrap_or(&location);
            format!("{} {place} {}", error.code.number(), error.path.as_deref().unwrap_or("-"))
        })
        .collect()
}

/// Appends to a sound project; lines are counted from the appended text.
fn check(rows: &[(&str, &str)]) {
    for (text, expected) in rows {
        let fs = MemoryFs::new().with("stream_project.yml", format!("{HEADER}{text}\n"));
        let shifted: Vec<String> = report(&fs)
            .into_iter()
            .map(|line| match line.split_once(' ').and_then(|(code, rest)| Some((code, rest.split_once(':')?))) {
                Some((code, (row, rest))) if row.parse::<u32>().is_ok() => {
                    format!("{code} {}:{rest}", row.parse::<u32>().unwrap().saturating_sub(3))
                }
                _ => line,
            })
            .collect();
        assert_eq!(shifted, [*expected], "{text}");
    }
}

/// The logical paths of the errors, all E501.
fn paths(text: &str) -> Vec<String> {
    let lines = report(&MemoryFs::new().with("stream_project.yml", format!("{HEADER}{text}\n")));
    lines
        .into_iter()
        .map(|line| {
            line.strip_prefix("E501 ")
                .and_then(|rest| rest.split_once(' '))
                .map_or(line.clone(), |(_, path)| path.to_owned())
        })
        .collect()
}

fn accepted(texts: &[&str]) {
    check(&texts.iter().map(|text| (*text, "accepted")).collect::<Vec<_>>());
}

fn runtime(rows: &[(&str, &str)]) {
    for (text, expected) in rows {
        let fs = MemoryFs::new().with(
            "stream_project.yml",
            format!("apiVersion: streamt.dev/v1alpha1\nproject: {{name: shop}}\nruntime:\n  {text}\n"),
        );
        let found: Vec<String> = report(&fs)
            .into_iter()
            .map(|line| {
                line.split(' ').enumerate().filter(|(i, _)| *i != 1).map(|(_, part)| part).collect::<Vec<_>>().join(" ")
            })
            .collect();
        let expected = if *expected == "accepted" { "accepted".to_owned() } else { (*expected).to_owned() };
        assert_eq!(found, [expected], "{text}");
    }
}

#[test]
fn files_of_a_project() {
    assert_eq!(report(&MemoryFs::new()), ["E501 stream_project.yml -"]);
    let both = MemoryFs::new().with("stream_project.yml", HEADER).with("stream_project.yaml", HEADER);
    assert_eq!(report(&both), ["E501 stream_project.yaml -"]);
    let yaml = MemoryFs::new().with("stream_project.yaml", HEADER);
    assert_eq!(report(&yaml), ["accepted"]);
    let file = |path: &str, bytes: &[u8]| MemoryFs::new().with("stream_project.yml", HEADER).with(path, bytes.to_vec());
    assert_eq!(report(&file("tests/a.yml", b"models: []")), ["E501 tests/a.yml:1:1 models"]);
    assert_eq!(report(&file("models/a.yml", b"models:\n - name: \xff")), ["E501 models/a.yml:2:1 -"]);
    assert_eq!(report(&file("models/a.yml", &vec![b' '; (4 << 20) + 1])), ["E501 models/a.yml -"]);
    assert_eq!(report(&file("models/a.yml", b"\xef\xbb\xbfmodels: []")), ["accepted"]);
    assert_eq!(report(&file("models/a.yml", b"")), ["accepted"]);
    assert_eq!(report(&file("generated/a.yml", b"nonsense")), ["accepted"]);
}

#[test]
fn a_project_of_more_than_64_mib_is_refused() {
    let mut fs = MemoryFs::new().with("stream_project.yml", HEADER);
    let filler = format!("models: []\n#{}", "x".repeat((4 << 20) - 64));
    for index in 0..17 {
        fs = fs.with(&format!("models/{index}.yml"), filler.clone());
    }
    assert_eq!(report(&fs), ["E501 . -"]);
}

#[test]
fn the_project_root() {
    check(&[
        ("zzz: 1", "E501 1:1 zzz"),
        ("sources: null", "E501 1:10 sources"),
        ("models: {a: 1}", "E501 1:9 models"),
        ("lifecycle: null", "E501 1:12 lifecycle"),
        ("deployment_state: null", "E501 1:19 deployment_state"),
        ("apiVersion: x", "E501 1:1 -"),
    ]);
    accepted(&["x-anything: {a: [1]}", "rules: null", "environments: 5"]);
    for (project, expected) in [
        ("{name: 'a/b'}", "E501 1:17 project → name"),
        ("{name: ' '}", "E501 1:17 project → name"),
        ("{name: a, version: 1.0}", "E501 1:29 project → version"),
        ("{version: '1'}", "E501 1:10 project → name"),
        ("null", "E501 1:10 project"),
    ] {
        let text = format!(
            "project: {project}\napiVersion: streamt.dev/v1alpha1\nruntime: {{kafka: {{bootstrap_servers: b}}}}\n"
        );
        assert_eq!(report(&MemoryFs::new().with("stream_project.yml", text)), [expected], "{project}");
    }
    let none = "apiVersion: v9\nproject: {name: a}\n";
    assert_eq!(report(&MemoryFs::new().with("stream_project.yml", none)), ["E501 1:1 runtime", "E501 1:13 apiVersion"]);
}

#[test]
fn names() {
    let model = |name: &str| format!("models: [{{name: '{name}'}}]");
    for good in ["a", "A_1", "a.b-c", &"a".repeat(128)] {
        accepted(&[&model(good)]);
    }
    for bad in ["", "-a", ".a", "a..b", "a b", "a/b", "é", &"a".repeat(129)] {
        check(&[(&model(bad), "E501 1:17 models → 0 → name")]);
    }
    check(&[
        ("models: [{name: a, topic: {name: '..'}}]", "E501 1:34 models → 0 → topic → name"),
        ("models: [{name: a, topic: {name: 'a/b'}}]", "E501 1:34 models → 0 → topic → name"),
        ("connections: {'a b': {type: t}}", "E501 1:15 connections → a b"),
    ]);
}

#[test]
fn runtime_sections() {
    let kafka = "kafka: {bootstrap_servers: b";
    runtime(&[
        ("kafka: {bootstrap_servers: [a, b]}", "E501 runtime → kafka → bootstrap_servers"),
        ("kafka: {bootstrap_servers: ' '}", "E501 runtime → kafka → bootstrap_servers"),
        ("kafka: {}", "E501 runtime → kafka → bootstrap_servers"),
        (&format!("{kafka}, security_protocol: TLS}}"), "E501 runtime → kafka → security_protocol"),
        (&format!("{kafka}, security_protocol: sasl_ssl, sasl_mechanism: plain}}"), "accepted"),
        (&format!("{kafka}, sasl_mechanism: GSSAPI}}"), "E501 runtime → kafka → sasl_mechanism"),
        (
            &format!("{kafka}, security_protocol: SSL, sasl_mechanism: PLAIN}}"),
            "E501 runtime → kafka → security_protocol",
        ),
        (
            &format!("{kafka}, security_protocol: SASL_PLAINTEXT, sasl_mechanism: AWS_MSK_IAM, aws_region: r}}"),
            "E501 runtime → kafka → security_protocol",
        ),
        (&format!("{kafka}, sasl_mechanism: AWS_MSK_IAM}}"), "E208 runtime → kafka → aws_region"),
        (&format!("{kafka}, aws_region: r}}"), "E501 runtime → kafka → aws_region"),
        (&format!("{kafka}, sasl_oauth_scope: s}}"), "E501 runtime → kafka → sasl_oauth_scope"),
        (
            &format!("{kafka}, sasl_mechanism: OAUTHBEARER, sasl_oauth_client_id: i, sasl_oauth_client_secret: s}}"),
            "E208 runtime → kafka → sasl_oauth_token_url",
        ),
        (
            &format!(
                "{kafka}, sasl_mechanism: OAUTHBEARER, sasl_oauth_token_url: 'http://x', sasl_oauth_client_id: i, sasl_oauth_client_secret: s}}"
            ),
            "E501 runtime → kafka → sasl_oauth_token_url",
        ),
        ("schema_registry: {url: 'ftp://x'}", "E501 runtime → schema_registry → url"),
        ("schema_registry: {url: ' '}", "E501 runtime → schema_registry → url"),
        ("schema_registry: {url: 'http://u:p@x'}", "E501 runtime → schema_registry → url"),
        ("schema_registry: {url: 'http://x', token: t, username: u}", "E501 runtime → schema_registry → token"),
        ("schema_registry: {url: 'http://x', token: t}", "accepted"),
        ("flink: {default: b, clusters: {a: {}}}", "E209 runtime → flink → default"),
        ("flink: {clusters: {a: {type: docker}}}", "E501 runtime → flink → clusters → a → type"),
        ("flink: {clusters: {a: {type: kubernetes}}}", "E501 runtime → flink → clusters → a → type"),
        ("flink: {clusters: {a: {type: yarn}}}", "E501 runtime → flink → clusters → a → type"),
        ("flink: {clusters: {a: {type: rest, catalog: c}}}", "E501 runtime → flink → clusters → a → catalog"),
        ("flink: {clusters: {a: {timeout: -1}}}", "E501 runtime → flink → clusters → a → timeout"),
        ("flink: {clusters: {a: {kafka_connector: x}}}", "E501 runtime → flink → clusters → a → kafka_connector"),
        ("connect: {default: b}", "E209 runtime → connect → default"),
        ("connect: {clusters: {a: {}}}", "E501 runtime → connect → clusters → a → rest_url"),
        ("conduktor: {gateway: {admin_url: x}}", "E501 runtime → conduktor → gateway → admin_url"),
        ("conduktor: {console: {}}", "E501 runtime → conduktor → console → url"),
        ("kafka_streams: {image: 'runner:latest'}", "E501 runtime → kafka_streams → image"),
        ("kafka_streams: {}", "E501 runtime → kafka_streams → image"),
        ("kafkaa: {}", "E501 runtime → kafkaa"),
    ]);
    let image = format!("kafka_streams: {{image: 'r/x@sha256:{}'", "a".repeat(64));
    runtime(&[
        (&format!("{image}}}"), "accepted"),
        (&format!("{image}, stop_timeout: 301}}"), "E501 runtime → kafka_streams → stop_timeout"),
        (&format!("{image}, startup_timeout: true}}"), "E501 runtime → kafka_streams → startup_timeout"),
        (&format!("{image}, network: '-x'}}"), "E501 runtime → kafka_streams → network"),
        (&format!("{image}, backend: podman}}"), "E501 runtime → kafka_streams → backend"),
        (&format!("{image}, initial_offset: none}}"), "E501 runtime → kafka_streams → initial_offset"),
    ]);
}

#[test]
fn state_defaults_and_rules() {
    let state = "deployment_state: {backend: postgres, namespace: n";
    check(&[
        ("deployment_state: {}", "E501 1:19 deployment_state → backend"),
        ("deployment_state: {backend: s3}", "E501 1:29 deployment_state → backend"),
        ("deployment_state: {backend: local, namespace: n}", "E501 1:36 deployment_state → namespace"),
        (&format!("{state}}}"), "E501 1:19 deployment_state → postgres"),
        (&format!("{state}, postgres: {{dsn_env: '1A'}}}}"), "E501 1:73 deployment_state → postgres → dsn_env"),
        (
            &format!("{state}, lock_timeout_seconds: true, postgres: {{dsn_env: A}}}}"),
            "E501 1:75 deployment_state → lock_timeout_seconds",
        ),
        (
            &format!("{state}, lock_timeout_seconds: 301, postgres: {{dsn_env: A}}}}"),
            "E501 1:75 deployment_state → lock_timeout_seconds",
        ),
        (
            &format!("{state}, postgres: {{dsn_env: A, writer_dsn_env: A}}}}"),
            "E501 1:92 deployment_state → postgres → writer_dsn_env",
        ),
        (
            &format!("{state}, postgres: {{dsn_env: A, schema: a-b}}}}"),
            "E501 1:84 deployment_state → postgres → schema",
        ),
        (
            "deployment_state: {backend: postgres, namespace: 'a/b', postgres: {dsn_env: A}}",
            "E501 1:50 deployment_state → namespace",
        ),
        ("defaults: {topic: {partitions: 0}}", "E501 1:32 defaults → topic → partitions"),
        (
            "defaults: {models: {topic: {replication_factor: -1}}}",
            "E501 1:49 defaults → models → topic → replication_factor",
        ),
        ("rules: {topics: {naming_pattern: '['}}", "E501 1:34 rules → topics → naming_pattern"),
        ("rules: {topics: {naming_pattern: '(?!x)'}}", "E501 1:34 rules → topics → naming_pattern"),
        ("rules: {topics: {naming_pattern: '(a)\\1'}}", "E501 1:34 rules → topics → naming_pattern"),
        ("rules: {models: {min_tests: 1}}", "E501 1:18 rules → models → min_tests"),
        ("rules: {models: {require_owner: 'true'}}", "E501 1:33 rules → models → require_owner"),
    ]);
    accepted(&["rules: {topics: {naming_pattern: '^[a-z]+'}}"]);
}

/// CRM-011 CRM-012 CRM-013 CRM-014 CRM-015 CRM-016 CRM-017 CRM-018 CRM-019 CRM-020 CRM-022 LIM-003 LIM-004 LIM-005
#[test]
fn connector_removals() {
    let list = |entry: &str| format!("lifecycle:\n connector_removals:\n - {entry}");
    let fields = |owner: &str, name: &str, cluster: &str| {
        list(&format!("{{logical_owner: {owner}, name: {name}, cluster: {cluster}}}"))
    };
    accepted(&[
        &fields("o", "' n '", "c"),
        "lifecycle: {}",
        &fields(&"o".repeat(128), &"n".repeat(256), &"c".repeat(128)),
    ]);
    let path = "lifecycle → connector_removals → 0";
    for bad in ["''", "' '", "null", "5", "'a/b'", "\"a\\x07\"", "\"\\u0085\"", &"o".repeat(129)] {
        check(&[(&fields(bad, "n", "c"), &format!("E501 3:20 {path} → logical_owner"))]);
    }
    for bad in ["''", "' '", "null", "[n]", "\"a\\x07\"", &"n".repeat(257)] {
        check(&[(&fields("o", bad, "c"), &format!("E501 3:29 {path} → name"))]);
        let cluster = if bad.len() > 200 { "n".repeat(129) } else { bad.to_owned() };
        check(&[(&fields("o", "n", &cluster), &format!("E501 3:41 {path} → cluster"))]);
    }
    for key in [
        "config",
        "connector_class",
        "topics",
        "ownership",
        "backend",
        "endpoint",
        "fingerprint",
        "state_address",
        "password",
    ] {
        let text = list(&format!("{{logical_owner: o, name: n, cluster: c, {key}: SENTINEL}}"));
        check(&[(&text, &format!("E501 3:44 {path} → {key}"))]);
    }
    check(&[
        (&list("{name: n, cluster: c}"), &format!("E501 3:4 {path} → logical_owner")),
        (&list("{logical_owner: o, name: n}"), &format!("E501 3:4 {path} → cluster")),
        ("lifecycle: {connector_removals: null}", "E501 1:33 lifecycle → connector_removals"),
        (
            "lifecycle: {connector_removals: {logical_owner: o, name: n, cluster: c}}",
            "E501 1:33 lifecycle → connector_removals",
        ),
        ("lifecycle: {topic_removals: []}", "E501 1:13 lifecycle → topic_removals"),
        ("lifecycle: {subject_removals: []}", "E501 1:13 lifecycle → subject_removals"),
        ("lifecycle: []", "E501 1:12 lifecycle"),
    ]);
    let two = |second: &str| format!("{}\n - {second}", list("{logical_owner: o, name: n, cluster: c}"));
    check(&[
        (
            &two("{logical_owner: o, name: m, cluster: c}"),
            "E501 4:20 lifecycle → connector_removals → 1 → logical_owner",
        ),
        (&two("{logical_owner: p, name: n, cluster: c}"), "E501 4:29 lifecycle → connector_removals → 1 → name"),
    ]);
    accepted(&[&two("{logical_owner: p, name: n, cluster: d}")]);
    let many = |count: usize| {
        let entries: Vec<String> =
            (0..count).map(|i| format!(" - {{logical_owner: o{i}, name: n{i}, cluster: c}}")).collect();
        format!("lifecycle:\n connector_removals:\n{}", entries.join("\n"))
    };
    accepted(&[&many(256)]);
    check(&[(&many(257), "E501 3:4 lifecycle → connector_removals")]);
}

#[test]
fn no_error_of_lifecycle_repeats_a_value() {
    for entry in [
        "{logical_owner: SENTINEL/x, name: n, cluster: c}",
        "{logical_owner: o, name: [SENTINEL], cluster: c}",
        "{logical_owner: o, name: n, cluster: c, type: SENTINEL}",
        "{logical_owner: SENTINEL, name: a, cluster: c}\n - {logical_owner: SENTINEL, name: b, cluster: c}",
    ] {
        let fs = MemoryFs::new()
            .with("stream_project.yml", format!("{HEADER}lifecycle:\n connector_removals:\n - {entry}\n"));
        let errors = load(&fs, &EnvironmentInput::default()).unwrap_err();
        assert!(!format!("{errors:?}").contains("SENTINEL"), "{errors:#?}");
    }
    let gateway = "lifecycle: {gateway_rule_removals: [{logical_owner: o, prior_artifact: {name: n, virtualTopic: v, physicalTopic: p, interceptors: [{type: SENTINEL}]}}]}\n";
    let errors =
        load(&MemoryFs::new().with("stream_project.yml", format!("{HEADER}{gateway}")), &EnvironmentInput::default())
            .unwrap_err();
    assert!(!format!("{errors:?}").contains("SENTINEL"), "{errors:#?}");
}

#[test]
fn gateway_rule_removals() {
    let rule = |interceptors: &str| {
        format!(
            "lifecycle: {{gateway_rule_removals: [{{logical_owner: o, prior_artifact: {{name: n, virtualTopic: v, physicalTopic: p, interceptors: {interceptors}}}}}]}}"
        )
    };
    accepted(&[
        &rule("[]"),
        &rule("[{type: filter, config: {where: a}}, {type: mask, config: {field: f, method: m}}]"),
    ]);
    let path = "lifecycle → gateway_rule_removals → 0 → prior_artifact → interceptors";
    let at = |text: &str| {
        let fs = MemoryFs::new().with("stream_project.yml", format!("{HEADER}{text}\n"));
        report(&fs)
            .into_iter()
            .map(|line| line.split_once(' ').unwrap().1.split_once(' ').unwrap().1.to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(at(&rule("null")), [path.to_owned()]);
    assert_eq!(at(&rule("[{type: filter, config: {where: ' '}}]")), [format!("{path} → 0 → config → where")]);
    assert_eq!(at(&rule("[{type: cut, config: {}}]")), [format!("{path} → 0 → type")]);
    assert_eq!(at(&rule("[{config: {where: a}}]")), [format!("{path} → 0 → type")]);
    assert_eq!(
        at(&rule("[{type: mask, config: {field: f, method: m, forRoles: null}}]")),
        [format!("{path} → 0 → config → forRoles")]
    );
    assert_eq!(
        at(&rule("[{type: mask, config: {field: f, method: m, forRoles: [a, a]}}]")),
        [format!("{path} → 0 → config → forRoles")]
    );
    let pair = |b: &str| {
        format!(
            "lifecycle:\n gateway_rule_removals:\n - {{logical_owner: o, prior_artifact: {{name: n, virtualTopic: v, physicalTopic: p, interceptors: []}}}}\n - {b}"
        )
    };
    let second = |owner: &str, name: &str, alias: &str| {
        pair(&format!(
            "{{logical_owner: {owner}, prior_artifact: {{name: {name}, virtualTopic: {alias}, physicalTopic: p, interceptors: []}}}}"
        ))
    };
    let base = "lifecycle → gateway_rule_removals → 1";
    assert_eq!(at(&second("o", "m", "w")), [format!("{base} → logical_owner")]);
    assert_eq!(at(&second("q", "n", "w")), [format!("{base} → prior_artifact → name")]);
    assert_eq!(at(&second("q", "m", "v")), [format!("{base} → prior_artifact → virtualTopic")]);
    accepted(&[&second("q", "m", "w")]);
}

/// SAF-009
#[test]
fn sources() {
    let source = |rest: &str| format!("sources:\n- {{name: s, topic: t, {rest}}}");
    let rows = [
        ("ownership: {mode: shared}", "sources → 0 → ownership → mode"),
        ("ownership: {}", "sources → 0 → ownership → mode"),
        ("ownership: null", "sources → 0 → ownership"),
        ("ownership: {mode: Managed}", "sources → 0 → ownership → mode"),
        ("schema: {version: 0}", "sources → 0 → schema → version"),
        ("schema: {format: xml}", "sources → 0 → schema → format"),
        ("schema: {definition: d, fields: []}", "sources → 0 → schema → fields"),
        ("schema: {compatibility: SOME}", "sources → 0 → schema → compatibility"),
        ("schema: {references: [{name: a, subject: b, version: 1}]}", "sources → 0 → schema → references"),
        (
            "schema: {definition: d, references: [{name: a, subject: b, version: latest}]}",
            "sources → 0 → schema → references → 0 → version",
        ),
        (
            "schema: {definition: d, references: [{name: a, subject: ' ', version: 1}]}",
            "sources → 0 → schema → references → 0 → subject",
        ),
        (
            "schema: {definition: d, references: [{name: a, subject: b, version: 1, id: 2}]}",
            "sources → 0 → schema → references → 0 → id",
        ),
        (
            "schema: {definition: d, references: [{name: a, subject: b, version: 1}, {name: a, subject: c, version: 1}]}",
            "sources → 0 → schema → references → 1 → name",
        ),
        ("schema: {format: avro, timestamp_format: sql}", "sources → 0 → schema → timestamp_format"),
        ("columns: [{name: a}, {name: a}]", "sources → 0 → columns → 1 → name"),
        ("columns: [{name: a, proctime: true, expression: b}]", "sources → 0 → columns → 0"),
        ("columns: [{name: a, metadata: timestamp}]", "sources → 0 → columns → 0"),
        ("columns: [{name: a, type: T, metadata: x}]", "sources → 0 → columns → 0 → metadata"),
        ("columns: [{name: a, classification: secret}]", "sources → 0 → columns → 0 → classification"),
        ("event_time: {}", "sources → 0 → event_time → column"),
        (
            "event_time: {column: a, watermark: {max_out_of_orderness_ms: 8640000000}}",
            "sources → 0 → event_time → watermark → max_out_of_orderness_ms",
        ),
        ("event_time: {column: a, watermark: {expression: e}}", "sources → 0 → event_time → watermark → expression"),
        ("event_time: {column: a, watermark: {strategy: custom}}", "sources → 0 → event_time → watermark"),
        ("event_time: {column: a}, advanced: {event_time: {column: b}}", "sources → 0 → advanced → event_time"),
        ("tags: x", "sources → 0 → tags"),
        ("freshness: {max_lag: 1}", "sources → 0 → freshness → max_lag"),
    ];
    for (text, expected) in rows {
        assert_eq!(paths(&source(text)), [expected], "{text}");
    }
    accepted(&[
        &source("schema: {format: AVRO, compatibility: backward_transitive}"),
        &source("event_time: {column: a, watermark: {max_out_of_orderness_ms: null}}"),
        &source("description: null, schema: null"),
        "sources: [{name: s, topic: ''}]",
    ]);
}

#[test]
fn models() {
    let model = |rest: &str| format!("models:\n- {{name: m, {rest}}}");
    let path = |rest: &str| format!("models → 0 → {rest}");
    let rows = [
        ("sql: a, macro: b", "macro"),
        ("macro: a/b", "macro"),
        ("params: {a: 1}", "params → a"),
        ("from: [{}]", "from → 0"),
        ("from: [{source: a, ref: b}]", "from → 0"),
        ("from: {ref: a}", "from"),
        ("from: ' '", "from"),
        ("materialized: view", "materialized"),
        ("executor: spark", "executor"),
        ("topic: {partitions: 0}", "topic → partitions"),
        ("topic: {config: {a: 1.5}}", "topic → config → a"),
        ("topic: {config: {a: null}}", "topic → config → a"),
        ("topic: {config: {a: [1]}}", "topic → config → a"),
        ("sink: {}", "sink → connector"),
        ("sink: {connector: jdbc-sink, config: {a: null}}", "sink → config → a"),
        ("sink: {connector: jdbc-sink, config: {a: {b: 1}}}", "sink → config → a"),
        ("sink: {connector: jdbc-sink, config: {name: other}}", "sink → config → name"),
        ("sink: {connector: jdbc-sink, config: {connector.class: x}}", "sink → config → connector.class"),
        ("sink: {connector: a}, connector: {type: b}", "connector"),
        ("flink: {parallelism: 1}, advanced: {flink: {parallelism: 2}}", "advanced → flink"),
        ("topic: {name: a}, gateway: {virtual_topic: {name: b}}", "gateway → virtual_topic → name"),
        ("security: {classification: {a: top}}", "security → classification → a"),
        ("security: {policies: [{mask: {column: a, method: blur}}]}", "security → policies → 0 → mask → method"),
        ("security: {policies: [{mask: {column: a, method: hash}, deny: {roles: []}}]}", "security → policies → 0"),
        ("security: {policies: [{grant: {}}]}", "security → policies → 0 → grant"),
        ("security: {policies: [{deny: {}}]}", "security → policies → 0 → deny → roles"),
        ("access: internal", "access"),
        ("version: '1'", "version"),
        ("contract: {columns: [{name: a}, {name: a}]}", "contract → columns → 1 → name"),
        ("contract: {}", "contract → columns"),
        ("materialized: sink, schema: {}", "schema"),
        ("materialized: virtual_topic, schema: {}", "schema"),
        ("from: a, schema: {}", "schema"),
        ("executor: flink", "executor"),
        ("executor: flink, sql: a, materialized: sink", "materialized"),
        ("executor: flink, sql: a, gateway: {}", "gateway"),
        ("executor: flink, sql: a, sink: {connector: c}", "sink"),
        ("executor: kafka_streams, sql: a, materialized: flink", "materialized"),
        ("executor: kafka_streams, sql: a, key: k", "key"),
        ("executor: kafka_streams, sql: a, from: b", "from"),
        ("executor: kafka_streams, sql: a, schema: {}", "schema"),
        ("executor: kafka_streams, sql: a, security: {}", "security"),
        ("executor: kafka_streams, sql: a, primary_key: [a]", "primary_key"),
        ("executor: kafka_streams, sql: a, advanced: {flink: {}}", "flink"),
        ("flink: {parallelism: 0}", "flink → parallelism"),
        ("flink: {state_backend: memory}", "flink → state_backend"),
        ("flink: {checkpoint: {mode: exactly_once}}", "flink → checkpoint → mode"),
        ("flink: {checkpoint: {min_pause_ms: -1}}", "flink → checkpoint → min_pause_ms"),
        ("flink: {checkpoint: {externalized: KEEP}}", "flink → checkpoint → externalized"),
        ("flink: {restart_strategy: {type: often}}", "flink → restart_strategy → type"),
        ("flink: {restart_strategy: {type: none, attempts: 1}}", "flink → restart_strategy → attempts"),
        ("flink: {restart_strategy: {max_backoff_ms: 1}}", "flink → restart_strategy → max_backoff_ms"),
        ("flink: {changelog_mode: retract}", "flink → changelog_mode"),
        ("flink: {rocksdb: {block_cache_size_mb: 0}}", "flink → rocksdb → block_cache_size_mb"),
        ("ml_outputs: {m: {}}", "ml_outputs → m → columns"),
        ("partitions: 3", "partitions"),
    ];
    for (text, expected) in rows {
        assert_eq!(paths(&model(text)), [path(expected)], "{text}");
    }
    accepted(&[
        &model("from: []"),
        &model("executor: kafka_streams, sql: a, materialized: topic"),
        &model("executor: flink, macro: a, materialized: topic, schema: {}"),
        &model(
            "flink: {state_backend: com.example.Factory, state_ttl_ms: -5, restart_strategy: {attempts: 1, delay_ms: 0}}",
        ),
        &model("security: {policies: [{mask: {column: a, method: null}}, {mask: {column: b, method: 'null'}}]}"),
        &model(
            "sink: {connector: jdbc-sink, config: {name: m, connector.class: io.confluent.connect.jdbc.JdbcSinkConnector}}",
        ),
    ]);
}

#[test]
fn an_unknown_field_tells_where_it_belongs() {
    let fs = MemoryFs::new().with("stream_project.yml", format!("{HEADER}models: [{{name: m, partitions: 3}}]\n"));
    let errors = load(&fs, &EnvironmentInput::default()).unwrap_err().into_vec();
    assert_eq!(errors[0].suggestion.as_deref(), Some("write it under 'topic:'"));
}

#[test]
fn tests_exposures_functions_and_connections() {
    let test = |rest: &str| format!("tests:\n- {{name: t, model: m, type: sample, {rest}}}");
    let assertion = |text: &str| test(&format!("assertions: [{text}]"));
    let exposure = |rest: &str| format!("exposures:\n- {{name: e, type: api, {rest}}}");
    let rows = [
        ("tests: [{name: t, model: m}]".to_owned(), "tests → 0 → type"),
        ("tests: [{name: t, model: m, type: live}]".to_owned(), "tests → 0 → type"),
        (test("sample_size: 0"), "tests → 0 → sample_size"),
        (test("on_failure: {severity: fatal}"), "tests → 0 → on_failure → severity"),
        (test("on_failure: {actions: [{page: true}]}"), "tests → 0 → on_failure → actions → 0 → page"),
        (test("on_failure: {actions: [{dlq: false}]}"), "tests → 0 → on_failure → actions → 0 → dlq"),
        (test("on_failure: {actions: [{dlq: {name: x}}]}"), "tests → 0 → on_failure → actions → 0 → dlq → name"),
        (assertion("{not_null: {columns: a}}"), "tests → 0 → assertions → 0 → not_null → columns"),
        (assertion("{nul: {}}"), "tests → 0 → assertions → 0 → nul"),
        (assertion("{}"), "tests → 0 → assertions → 0"),
        (assertion("{range: {column: a}}"), "tests → 0 → assertions → 0 → range"),
        (assertion("{range: {column: a, min: '1'}}"), "tests → 0 → assertions → 0 → range → min"),
        (
            assertion("{accepted_values: {column: a, values: [[1]]}}"),
            "tests → 0 → assertions → 0 → accepted_values → values → 0",
        ),
        (assertion("{accepted_types: {types: {a: 1}}}"), "tests → 0 → assertions → 0 → accepted_types → types → a"),
        (assertion("{unique_key: {key: a, tolerance: 2}}"), "tests → 0 → assertions → 0 → unique_key → tolerance"),
        (assertion("{custom_sql: {}}"), "tests → 0 → assertions → 0 → custom_sql → where"),
        (
            assertion("{distribution: {column: a, buckets: [{x: 1}]}}"),
            "tests → 0 → assertions → 0 → distribution → buckets → 0 → x",
        ),
        (assertion("{foreign_key: {column: a, ref_model: b}}"), "tests → 0 → assertions → 0 → foreign_key → ref_key"),
        ("exposures: [{name: e}]".to_owned(), "exposures → 0 → type"),
        (exposure("role: writer"), "exposures → 0 → role"),
        (exposure("consumes: [a]"), "exposures → 0 → consumes → 0"),
        (exposure("consumes: [{model: a}]"), "exposures → 0 → consumes → 0 → model"),
        (exposure("sla: {max_error_rate: 2}"), "exposures → 0 → sla → max_error_rate"),
        (exposure("owners: [{name: 1}]"), "exposures → 0 → owners → 0 → name"),
        (exposure("data_requirements: [1]"), "exposures → 0 → data_requirements"),
        ("udfs: [{name: f}]".to_owned(), "udfs → 0 → return_type"),
        ("udfs: [{name: f, return_type: INT, language: go}]".to_owned(), "udfs → 0 → language"),
        ("connections: {c: {}}".to_owned(), "connections → c → type"),
        ("connections: {c: {type: t, config: {a: null}}}".to_owned(), "connections → c → config → a"),
    ];
    for (text, expected) in rows {
        assert_eq!(paths(&text), [expected], "{text}");
    }
    accepted(&[&exposure("consumes: [{}, {source: a, ref: b}], owners: [{name: me}]")]);
}

#[test]
fn older_names_load_with_a_warning_where_they_stand() {
    let text = "sources: [{name: s, topic: t, advanced: {event_time: {column: a}}}]\nmodels:\n- name: m\n  connector: {type: jdbc-sink, config: {a: 1}}\n  advanced: {flink: {parallelism: 2}, connect_cluster: c}\n";
    let fs = MemoryFs::new().with("stream_project.yml", format!("{HEADER}{text}"));
    let loaded = load(&fs, &EnvironmentInput::default()).unwrap();
    let told: Vec<String> =
        loaded.warnings.iter().map(|w| format!("{} {}", w.code.number(), w.path.clone().unwrap())).collect();
    assert_eq!(
        told,
        [
            "W229 sources → 0 → advanced → event_time",
            "W229 models → 0 → connector",
            "W229 models → 0 → advanced → flink",
            "W229 models → 0 → advanced → connect_cluster",
        ]
    );
    let model = &loaded.project.models[0];
    assert_eq!(model.sink.as_ref().unwrap().connector, "jdbc-sink");
    assert_eq!(model.flink.as_ref().unwrap().parallelism, Some(2));
    assert_eq!(model.origin.at("flink.parallelism").unwrap().to_string(), "stream_project.yml:8:35");
    assert!(loaded.project.sources[0].event_time.is_some());
}

#[test]
fn words_that_older_yaml_takes_for_booleans_are_told() {
    let text = "models: [{name: m, topic: {config: {a: yes, b: 'no', c: Off, d: true}}}]\ntests: [{name: t, model: m, type: schema, assertions: [{accepted_values: {column: a, values: [Y, n, z]}}]}]\n";
    let fs = MemoryFs::new().with("stream_project.yml", format!("{HEADER}{text}"));
    let loaded = load(&fs, &EnvironmentInput::default()).unwrap();
    assert_eq!(loaded.warnings.iter().map(|w| w.code.number()).collect::<Vec<_>>(), ["W225"; 4]);
    assert_eq!(loaded.project.models[0].topic.as_ref().unwrap().config["a"], "yes");
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(300))]

    /// A sound document with some bytes changed, dropped or repeated never makes the loader panic, and every error has a suggestion.
    #[test]
    fn a_damaged_project_is_refused_or_loaded(edits in proptest::collection::vec((0usize..6000, 0usize..12, proptest::num::u8::ANY), 1..6)) {
        let mut bytes = include_bytes!("testdata/everything.yml").to_vec();
        for (at, length, byte) in edits {
            let at = at % bytes.len();
            let end = (at + length).min(bytes.len());
            bytes.splice(at..end, [byte]);
        }
        if let Err(errors) = load(&MemoryFs::new().with("stream_project.yml", bytes), &EnvironmentInput::default()) {
            proptest::prop_assert!(!errors.is_empty());
            for error in errors.iter() {
                proptest::prop_assert!(error.suggestion.is_some() && error.location.is_some());
            }
        }
    }

    #[test]
    fn arbitrary_bytes_never_make_the_loader_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
        let fs = MemoryFs::new().with("stream_project.yml", bytes.clone()).with("models/a.yml", bytes.clone()).with(".env", bytes);
        let _ = load(&fs, &EnvironmentInput::default());
    }
}
