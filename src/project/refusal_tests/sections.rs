//! The sections of `stream_project.yml`: runtime, state, defaults, rules.

use super::*;

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
