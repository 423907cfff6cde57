//! One faulty project for each code that a project alone can raise. `§` marks where the finding must point.

pub struct Row {
    pub code: &'static str,
    pub body: &'static str,
    /// Where there is no mark: the location as it is told.
    pub place: Option<&'static str>,
    pub files: &'static [(&'static str, &'static str)],
    /// The `STREAMT_ENV` of the run.
    pub environment: Option<&'static str>,
}

const fn row(code: &'static str, body: &'static str) -> Row {
    Row { code, body, place: None, files: &[], environment: None }
}

const fn with(
    code: &'static str,
    body: &'static str,
    place: Option<&'static str>,
    files: &'static [(&'static str, &'static str)],
) -> Row {
    Row { code, body, place, files, environment: None }
}

const MODEL: &str = "models:\n  - {name: m, topic: {partitions: 1}}\n";
const ENVIRONMENT: (&str, &str) =
    ("environments/dev.yml", "environment: {name: dev}\nruntime: {kafka: {bootstrap_servers: '127.0.0.1:1'}}\n");

macro_rules! sink {
    ($runtime:literal, $sink:literal) => {
        concat!(
            "runtime:\n  kafka: {bootstrap_servers: '127.0.0.1:1'}\n",
            $runtime,
            "sources:\n  - {name: s, topic: s, columns: [{name: a, type: INT}]}\nmodels:\n  - name: m\n    from: [{source: s}]\n",
            $sink
        )
    };
}

macro_rules! flink {
    ($more:literal, $body:literal) => {
        concat!(
            "runtime:\n  kafka: {bootstrap_servers: '127.0.0.1:1'}\n  flink: {clusters: {f: {",
            $more,
            "rest_url: 'http://127.0.0.1:1'}}}\n",
            $body
        )
    };
}

macro_rules! gateway {
    ($body:literal) => {
        concat!(
            "runtime:\n  kafka: {bootstrap_servers: '127.0.0.1:1'}\n  conduktor: {gateway: {admin_url: 'http://127.0.0.1:1'}}\n",
            $body
        )
    };
}

/// References.
const REFERENCES: &[Row] = &[
    row(
        "E101_SOURCE_NOT_FOUND",
        "sources:\n  - {name: orders, topic: o, columns: [{name: a}]}\nmodels:\n  - {name: m, materialized: topic, sql: \"SELECT a FROM {{ source('§ordres') }}\"}\n",
    ),
    row(
        "E102_MODEL_NOT_FOUND",
        "models:\n  - {name: m, materialized: topic, sql: \"SELECT a FROM {{ ref('§n') }}\"}\n",
    ),
    row("E103_DUPLICATE_NAME", "models:\n  - {name: m}\n  - {name: §m, topic: {name: b}}\n"),
    row(
        "E104_CYCLE_DETECTED",
        "models:\n  - {name: a, materialized: topic, sql: \"SELECT x FROM {{ ref('m') }}\"}\n  - {name: m, materialized: topic, sql: \"SELECT x FROM {{ ref('§a') }}\"}\n",
    ),
    row("E105_JINJA_SYNTAX_ERROR", "models:\n  - {name: m, materialized: topic, sql: \"SELECT {{ env('HOME') }}\"}\n"),
    row(
        "E106_ACCESS_DENIED",
        "models:\n  - {name: n, group: g, access: private}\n  - {name: m, group: h, materialized: topic, sql: \"SELECT a FROM {{ ref('§n') }}\"}\n",
    ),
    row("E107_TEST_MODEL_NOT_FOUND", "models:\n  - {name: m}\ntests:\n  - {name: t, model: §n, type: schema}\n"),
    row(
        "E108_EXPOSURE_MODEL_NOT_FOUND",
        "models:\n  - {name: m}\nexposures:\n  - {name: e, type: api, consumes: [{ref: §n}]}\n",
    ),
    row(
        "E109_EXPOSURE_SOURCE_NOT_FOUND",
        "models:\n  - {name: m}\nexposures:\n  - {name: e, type: api, produces: [{source: §t}]}\n",
    ),
    row(
        "E110_EXPOSURE_DEPENDENCY_NOT_FOUND",
        "models:\n  - {name: m}\nexposures:\n  - {name: e, type: api, depends_on: [{ref: §n}]}\n",
    ),
    row("E111_NAME_COLLISION", "sources:\n  - {name: m, topic: a}\nmodels:\n  - {name: §m, topic: {name: b}}\n"),
    row(
        "E112_DLQ_MODEL_NOT_FOUND",
        "models:\n  - {name: m}\ntests:\n  - {name: t, model: m, type: schema, on_failure: {actions: [{dlq: {model: §n}}]}}\n",
    ),
    row(
        "E113_EXPOSURE_REFERENCE_INVALID",
        "sources:\n  - {name: s, topic: s}\nmodels:\n  - {name: m}\nexposures:\n  - {name: e, type: api, consumes: [§{source: s, ref: m}]}\n",
    ),
    row(
        "E114_CONTRACT_MISSING_COLUMN",
        "models:\n  - {name: m, columns: [{name: a}], contract: {columns: [{name: §b}]}}\n",
    ),
    row(
        "E115_CONTRACT_TYPE_MISMATCH",
        "models:\n  - {name: m, columns: [{name: a, type: BIGINT}], contract: {columns: [{name: a, type: §STRING}]}}\n",
    ),
    row(
        "E116_CONTRACT_BREAKING_CHANGE",
        "models:\n  - {name: m, columns: [{name: a}, {name: b}], contract: {columns: [{name: a}]}}\nexposures:\n  - {name: e, type: api, consumes: [{ref: m}], columns: [{name: §b}]}\n",
    ),
    row(
        "E117_CONTRACT_CONSUMER_TYPE_MISMATCH",
        "models:\n  - {name: m, columns: [{name: a, type: BIGINT}]}\nexposures:\n  - {name: e, type: api, consumes: [{ref: m}], columns: [{name: a, type: §STRING}]}\n",
    ),
    row("E118_DUPLICATE_VERSION", "models:\n  - {name: m, version: 1}\n  - {name: m, version: §1, topic: {name: n}}\n"),
    row("E119_COMPILE_FAILED", "models:\n  - {name: m, materialized: topic, macro: §nowhere}\n"),
    row(
        "E120_EVENT_TIME_COLUMN_NOT_FOUND",
        "sources:\n  - {name: s, topic: s, columns: [{name: ts, type: TIMESTAMP(3)}], event_time: {column: §tss}}\nmodels:\n  - {name: m}\n",
    ),
    row(
        "E121_SCHEMA_REFERENCE_CYCLE",
        "models:\n  - {name: m, schema: {subject: own, definition: '{}', references: [{name: s, subject: §own, version: 1}]}}\n",
    ),
    row("E122_INTERNAL_TOPIC", "models:\n  - {name: m, topic: {name: §__consumer_offsets}}\n"),
];

/// What a project needs from its runtime.
const CONFIGURATION: &[Row] = &[
    row(
        "E201_GATEWAY_REQUIRED",
        "models:\n  - {name: n}\n  - {name: m, materialized: §virtual_topic, sql: \"SELECT * FROM {{ ref('n') }} WHERE a = 1\"}\n",
    ),
    row(
        "E202_FLINK_REQUIRED",
        "models:\n  - {name: n}\n  - {name: m, materialized: §flink, sql: \"SELECT a FROM {{ ref('n') }}\"}\n",
    ),
    row(
        "E203_CONFLUENT_FLINK_REQUIRED",
        flink!(
            "type: rest, ",
            "models:\n  - {name: n}\n  - {name: m, materialized: flink, ml_outputs: {fraud: {columns: [{name: score, type: DOUBLE}]}}, sql: \"SELECT §ML_PREDICT('fraud', a) AS p FROM {{ ref('n') }}\"}\n"
        ),
    ),
    row(
        "E204_MISSING_SINK_CONFIG",
        sink!(
            "  connect: {default: c, clusters: {c: {rest_url: 'http://127.0.0.1:1'}}}\n",
            "    description: no sink\n"
        ),
    ),
    row("E205_CONNECT_REQUIRED", sink!("", "    sink: §{connector: jdbc-sink}\n")),
    row(
        "E207_CONTINUOUS_TEST_WITHOUT_FLINK",
        "models:\n  - {name: m}\ntests:\n  - {name: t, model: m, type: §continuous, assertions: [{not_null: {columns: [a]}}]}\n",
    ),
    row("E208_MISSING_CONFIG", "models:\n  - {name: m, flink: {changelog_mode: §upsert}, columns: [{name: a}]}\n"),
    row("E209_INVALID_CLUSTER_REF", flink!("", "models:\n  - {name: m, flink_cluster: §g}\n")),
    row(
        "E210_INVALID_CONNECTION_REF",
        sink!(
            "  connect: {default: c, clusters: {c: {rest_url: 'http://127.0.0.1:1'}}}\n",
            "    sink: {connector: jdbc-sink, connection: §warehose}\n"
        ),
    ),
    row("E211_INVALID_KEY_COLUMN", "models:\n  - {name: m, key: §b, columns: [{name: a}]}\n"),
    row(
        "E219_MASK_UNSUPPORTED",
        gateway!(
            "models:\n  - {name: n}\n  - {name: m, materialized: virtual_topic, sql: \"SELECT * FROM {{ ref('n') }} WHERE a = 1\", security: {policies: [§{mask: {column: a, method: hash}}]}}\n"
        ),
    ),
    row(
        "E220_GATEWAY_SQL_UNSUPPORTED",
        gateway!(
            "models:\n  - {name: n}\n  - {name: m, materialized: virtual_topic, sql: \"SELECT * FROM {{ ref('n') }} WHERE a = 1 GROUP BY a\"}\n"
        ),
    ),
    row(
        "E222_KAFKA_STREAMS_REQUIRED",
        "models:\n  - {name: n}\n  - {name: m, executor: §kafka_streams, sql: \"SELECT a FROM {{ ref('n') }}\"}\n",
    ),
    row("E301_INVALID_STATE_TTL", "models:\n  - {name: m, flink: {state_ttl_ms: §0}}\n"),
    row(
        "E427_CONNECTOR_REMOVAL_INVALID",
        sink!(
            "  connect: {default: c, clusters: {c: {rest_url: 'http://127.0.0.1:1'}}}\n",
            "    sink: {connector: jdbc-sink}\nlifecycle:\n  connector_removals:\n    - §{logical_owner: m, name: gone, cluster: c}\n"
        ),
    ),
];

/// The documents themselves.
const DOCUMENTS: &[Row] = &[
    with("E501_PARSE_ERROR", "models: [\n", None, &[]),
    row("E501_PARSE_ERROR", "models:\n  - {name: m, topic: {partitions: §three}}\n"),
    row("E501_PARSE_ERROR", "models:\n  - {name: m, topic: {§partitons: 3}}\n"),
    row("E501_PARSE_ERROR", "models:\n  - {name: m, owner: a, §owner: b}\n"),
    row("E501_PARSE_ERROR", "models:\n  - {name: m, topic: {name: §'a b'}}\n"),
    row("E501_PARSE_ERROR", "models: §7\n"),
    row("E501_PARSE_ERROR", "models:\n  - {name: m, topic: {partitions: §0}}\n"),
    row(
        "E502_ENV_VAR_ERROR",
        "runtime:\n  kafka: {bootstrap_servers: §'${NOT_SET_ANYWHERE}'}\nmodels:\n  - {name: m}\n",
    ),
    with(
        "E503_ENVIRONMENT_ERROR",
        MODEL,
        None,
        &[ENVIRONMENT, ("environments/prod.yml", "environment: {name: prod}\n")],
    ),
];

/// Rules that the project itself lays down.
const RULES: &[Row] = &[
    row(
        "E601_NAMING_VIOLATION",
        "rules: {topics: {naming_pattern: a}}\nsources:\n  - {name: s, topic: §b, ownership: {mode: adopted}}\n",
    ),
    row(
        "E602_RULE_MIN_PARTITIONS",
        "rules: {topics: {min_partitions: 3}}\nmodels:\n  - {name: m, topic: {partitions: §2}}\n",
    ),
    row(
        "E603_RULE_MAX_PARTITIONS",
        "rules: {topics: {max_partitions: 3}}\nmodels:\n  - {name: m, topic: {partitions: §4}}\n",
    ),
    row(
        "E604_RULE_MIN_REPLICATION",
        "rules: {topics: {min_replication_factor: 2}}\nmodels:\n  - {name: m, topic: {replication_factor: §1}}\n",
    ),
    row(
        "E605_RULE_MAX_REPLICATION",
        "rules: {topics: {max_replication_factor: 3}}\nmodels:\n  - {name: m, topic: {replication_factor: §4}}\n",
    ),
    row(
        "E606_RULE_MAX_RETENTION",
        "rules: {topics: {max_retention_ms: 1000}}\nmodels:\n  - {name: m, topic: {config: §{retention.ms: '1001'}}}\n",
    ),
    row(
        "E607_RULE_REQUIRED_CONFIG",
        "rules: {topics: {required_config: [cleanup.policy]}}\nmodels:\n  - {name: m, topic: {config: §{retention.ms: 1}}}\n",
    ),
    row(
        "E608_RULE_NAMING_PATTERN",
        "rules: {topics: {naming_pattern: 'a\\.'}}\nmodels:\n  - {name: m, topic: {name: §x.a.b}}\n",
    ),
    row(
        "E609_RULE_FORBIDDEN_PREFIX",
        "rules: {topics: {forbidden_prefixes: [tmp-]}}\nmodels:\n  - {name: m, topic: {name: §tmp-a}}\n",
    ),
    row(
        "E610_RULE_FORBIDDEN_SUFFIX",
        "rules: {topics: {forbidden_suffixes: [-old]}}\nmodels:\n  - {name: m, topic: {name: §a-old}}\n",
    ),
    row(
        "E611_RULE_REQUIRE_DESCRIPTION",
        "rules: {models: {require_description: true}}\nmodels:\n  - {name: §m, description: ' '}\n",
    ),
    row("E612_RULE_REQUIRE_OWNER", "rules: {models: {require_owner: true}}\nmodels:\n  - {name: §m}\n"),
    row("E613_RULE_REQUIRE_TESTS", "rules: {models: {require_tests: true}}\nmodels:\n  - {name: §m}\n"),
    row("E614_RULE_INVALID_OWNER", "rules: {models: {valid_owners: [a, b]}}\nmodels:\n  - {name: m, owner: §c}\n"),
    row(
        "E615_RULE_MAX_DEPENDENCIES",
        "rules: {models: {max_dependencies: 1}}\nmodels:\n  - {name: a}\n  - {name: b}\n  - {name: §m, materialized: topic, sql: \"SELECT a.x AS x FROM {{ ref('a') }} a JOIN {{ ref('b') }} b ON a.x = b.x\"}\n",
    ),
    row("E616_RULE_REQUIRE_SCHEMA", "rules: {sources: {require_schema: true}}\nsources:\n  - {name: §s, topic: s}\n"),
    row(
        "E617_RULE_REQUIRE_FRESHNESS",
        "rules: {sources: {require_freshness: true}}\nsources:\n  - {name: §s, topic: s}\n",
    ),
    row(
        "E618_RULE_REQUIRE_CLASSIFICATION",
        "rules: {security: {require_classification: true}}\nsources:\n  - {name: s, topic: s, columns: [§{name: b}]}\n",
    ),
    row(
        "E619_RULE_SENSITIVE_REQUIRES_MASKING",
        "rules: {security: {sensitive_columns_require_masking: true}}\nsources:\n  - {name: s, topic: s, columns: [{name: iban, classification: sensitive}]}\nmodels:\n  - {name: §m, materialized: topic, sql: \"SELECT iban FROM {{ source('s') }}\"}\n",
    ),
    row(
        "E620_RULE_DATA_RESIDENCY",
        "rules: {data_residency: {allowed_regions: [eu]}}\nmodels:\n  - {name: m, region: §us}\n",
    ),
];

/// Warnings: the exit code stays 0.
const WARNINGS: &[Row] = &[
    row(
        "W201_SQL_PARSE_WARNING",
        "models:\n  - {name: n}\n  - name: m\n    materialized: topic\n    sql: SELECT §\"a\" AS a FROM {{ ref('n') }}\n",
    ),
    row("W202_UNUSED_SOURCE", "sources:\n  - {name: §s, topic: s, columns: [{name: a}]}\n"),
    row(
        "W203_SOURCE_NO_COLUMNS",
        "sources:\n  - {name: §s, topic: s}\nexposures:\n  - {name: e, type: api, consumes: [{source: s}]}\n",
    ),
    row("W204_SQL_NO_FROM", "models:\n  - {name: m, materialized: topic, sql: §SELECT 1 AS a}\n"),
    row(
        "W205_AMBIGUOUS_MATERIALIZATION",
        flink!("", "models:\n  - {name: n}\n  - {name: §m, sql: \"SELECT * FROM {{ ref('n') }} WHERE a = 1\"}\n"),
    ),
    row(
        "W206_NO_PROCESSING_RUNTIME",
        "models:\n  - {name: n}\n  - {name: §m, materialized: topic, sql: \"SELECT a FROM {{ ref('n') }}\"}\n",
    ),
    row("W207_STATE_TTL_TOO_SHORT", "models:\n  - {name: m, flink: {state_ttl_ms: §999}}\n"),
    row(
        "W208_UNUSED_FROM_SOURCE",
        "sources:\n  - {name: s, topic: s, columns: [{name: a}]}\nmodels:\n  - {name: n}\n  - {name: m, materialized: topic, from: [{source: §s}], sql: \"SELECT a FROM {{ ref('n') }}\"}\n",
    ),
    row(
        "W209_UNUSED_FROM_REF",
        "models:\n  - {name: n}\n  - {name: o}\n  - {name: m, materialized: topic, from: [{ref: n}, {ref: §o}], sql: \"SELECT a FROM {{ ref('n') }}\"}\n",
    ),
    row(
        "W210_SECURITY_POLICIES_NOT_ENFORCED",
        "models:\n  - {name: m, security: {policies: [{allow: §{roles: [x]}}]}}\n",
    ),
    row(
        "W211_SAMPLE_SIZE_IGNORED",
        "models:\n  - {name: m}\ntests:\n  - {name: t, model: m, type: schema, sample_size: §5}\n",
    ),
    row("W212_SLA_NOT_ENFORCED", "exposures:\n  - {name: e, type: api, sla: §{availability: '99.9'}}\n"),
    row(
        "W213_SELECT_STAR",
        "models:\n  - {name: n}\n  - {name: m, materialized: topic, sql: \"SELECT §* FROM {{ ref('n') }}\"}\n",
    ),
    row("W233_TOPIC_NAMES_COLLIDE", "models:\n  - {name: m, topic: {name: a.b}}\n  - {name: n, topic: {name: §a_b}}\n"),
    row("W236_SCHEMA_NOT_REGISTERED", "models:\n  - {name: m, topic: {name: m}, schema: §{compatibility: BACKWARD}}\n"),
    row(
        "W237_DEAD_LETTERS_NOT_WRITTEN",
        "models:\n  - {name: m}\ntests:\n  - {name: t, model: m, type: schema, on_failure: {actions: [{dlq: §true}]}}\n",
    ),
    row("W217_VERSION_GAP", "models:\n  - {name: m_v1, version: 1}\n  - {name: m_v3, version: §3}\n"),
    row(
        "W218_ML_PREDICT_OPAQUE_OUTPUT",
        flink!(
            "type: confluent, ",
            "models:\n  - {name: n}\n  - {name: m, materialized: flink, sql: \"SELECT ML_PREDICT(§'scam', a) AS p FROM {{ ref('n') }}\"}\n"
        ),
    ),
    Row {
        code: "W220_PROJECT_RUNTIME_IGNORED",
        body: "§runtime: {kafka: {bootstrap_servers: 'x:1'}}\nmodels:\n  - {name: m}\n",
        place: None,
        files: &[ENVIRONMENT],
        environment: Some("dev"),
    },
    row("W221_ENVIRONMENTS_KEY_IGNORED", "§environments: {dev: {}}\nmodels:\n  - {name: m}\n"),
    Row { code: "W222_STREAMT_ENV_IGNORED", body: MODEL, place: None, files: &[], environment: Some("dev") },
    with("W223_SQL_FILES_IGNORED", MODEL, Some("models"), &[("models/m.sql", "SELECT 1")]),
    row(
        "W224_SSL_FILE_MISSING",
        "runtime:\n  kafka: {bootstrap_servers: '127.0.0.1:1', ssl_ca_location: §nowhere.pem}\nmodels:\n  - {name: m}\n",
    ),
    row(
        "W225_YAML_AMBIGUOUS_SCALAR",
        "models:\n  - {name: m, topic: {config: {unclean.leader.election.enable: §no}}}\n",
    ),
    row(
        "W226_PLACEHOLDER_NOT_EXPANDED",
        sink!(
            "  connect: {default: c, clusters: {c: {rest_url: 'http://127.0.0.1:1'}}}\n",
            "    sink: {connector: jdbc-sink, config: {connection.password: §'${SECRET}'}}\n"
        ),
    ),
    row(
        "W227_MASK_METHOD_APPROXIMATED",
        sink!(
            "  connect: {default: c, clusters: {c: {rest_url: 'http://127.0.0.1:1'}}}\n",
            "    sink: {connector: jdbc-sink}\n    security: {policies: [§{mask: {column: a, method: hash}}]}\n"
        ),
    ),
    row(
        "W228_ASSERTION_NOT_EXECUTED",
        "models:\n  - {name: m}\ntests:\n  - {name: t, model: m, type: sample, assertions: [§throughput: {min_per_second: 1}]}\n",
    ),
    row(
        "W229_FIELD_RENAMED",
        "sources:\n  - {name: s, topic: s, columns: [{name: ts, type: TIMESTAMP(3)}], advanced: {event_time: {column: ts}}}\nmodels:\n  - {name: m}\n",
    ),
    row("W302_UNKNOWN_TYPE_TEXT", "models:\n  - {name: m, columns: [{name: b, type: §NUMBER}]}\n"),
    row(
        "W303_CONTRACT_MISSING_COLUMN",
        "models:\n  - {name: m, columns: [{name: a}], contract: {enforced: false, columns: [{name: §b}]}}\n",
    ),
    row(
        "W304_CONTRACT_TYPE_MISMATCH",
        "models:\n  - {name: m, columns: [{name: a, type: INT}], contract: {enforced: false, columns: [{name: a, type: §DATE}]}}\n",
    ),
];

pub fn rows() -> impl Iterator<Item = &'static Row> {
    [REFERENCES, CONFIGURATION, DOCUMENTS, RULES, WARNINGS].into_iter().flatten()
}
