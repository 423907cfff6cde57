use serde_json::json;

use crate::codes::Code;
use crate::compiler::Compiled;
use crate::compiler::testing::*;
use crate::project::model::*;
use crate::project::secret::Secret;

/// A source of orders with event time, and the model under test.
fn shop(model: Model) -> Project {
    let mut project = project("shop");
    project.runtime.kafka = Some(kafka_runtime());
    project.runtime.flink = Some(flink_runtime());
    let mut raw = source("raw", "raw.v1");
    raw.columns = vec![
        column("id", "STRING"),
        column("amount", "DECIMAL(10, 2)"),
        column("n", "INT"),
        column("ts", "TIMESTAMP(3)"),
    ];
    raw.event_time = Some(EventTime {
        column: "ts".into(),
        watermark: Some(Watermark {
            strategy: WatermarkStrategy::BoundedOutOfOrderness,
            max_out_of_orderness_ms: 2_000,
            expression: None,
        }),
        allowed_lateness_ms: None,
    });
    project.sources.push(raw);
    project.models.push(Model { materialized: Some(Materialized::Flink), ..model });
    project
}

fn job(compiled: &Compiled, name: &str) -> String {
    let jobs = compiled.artifacts.flink_jobs.iter().chain(&compiled.artifacts.test_jobs);
    jobs.clone().find(|job| job.name == name).unwrap_or_else(|| panic!("no job {name}")).sql.clone()
}

/// The text between one table's name and the next empty line.
fn table<'a>(sql: &'a str, name: &str) -> &'a str {
    let start = sql.find(&format!("CREATE TABLE IF NOT EXISTS `{name}`")).unwrap_or_else(|| panic!("{name}: {sql}"));
    sql[start..].split("\n\n").next().unwrap()
}

fn select(sql: &str) -> &str {
    &sql[sql.find("INSERT INTO").unwrap()..]
}

fn schema_block(format: SchemaFormat, definition: Option<&str>) -> SchemaBlock {
    SchemaBlock { format: Some(format), definition: definition.map(str::to_owned), ..schema() }
}

#[test]
fn a_continuous_test_is_a_job_over_the_records_that_come_from_now_on() {
    let mut project = shop(sql_model("valid", "SELECT id, amount, ts FROM {{ source(\"raw\") }}"));
    let mut checked = test("valid_amount", "valid", TestType::Continuous);
    checked.assertions = vec![
        json!({"range": {"column": "amount", "min": 0}}),
        json!({"not_null": {"columns": ["id", "nothing"]}}),
        json!({"accepted_types": {"types": {"ts": "timestamp"}}}),
        json!({"custom_sql": {"where": "`amount` <> ''"}}),
    ];
    project.tests.push(checked);
    let sql = job(&compiled(project), "test_valid_amount");
    let expected = "\
CREATE TABLE IF NOT EXISTS `test_source_valid_amount` (
    `id` STRING,
    `amount` STRING,
    `ts` STRING
) WITH (
    'connector' = 'kafka',
    'topic' = 'valid',
    'properties.bootstrap.servers' = 'localhost:9092',
    'scan.startup.mode' = 'latest-offset',
    'format' = 'json'
);

CREATE TABLE IF NOT EXISTS `test_failures_valid_amount` (
    `test_name` STRING,
    `violation_type` STRING,
    `violation_details` STRING,
    `record` STRING,
    `detected_at` TIMESTAMP(3)
) WITH (
    'connector' = 'kafka',
    'topic' = '_streamt_test_failures',
    'properties.bootstrap.servers' = 'localhost:9092',
    'format' = 'json'
);

INSERT INTO `test_failures_valid_amount`
SELECT
    'valid_amount' AS test_name,
    'range_min:amount' AS violation_type,
    CAST(`amount` AS STRING) AS violation_details,
    '' AS record,
    CAST(CURRENT_TIMESTAMP AS TIMESTAMP(3)) AS detected_at
FROM `test_source_valid_amount`
WHERE TRY_CAST(`amount` AS DOUBLE) < 0
UNION ALL
";
    assert!(sql.starts_with(expected), "{sql}");
    assert_eq!(sql.matches("UNION ALL").count(), 3, "{sql}");
    assert!(sql.contains("TRY_CAST(`ts` AS TIMESTAMP(3)) IS NULL AND `ts` IS NOT NULL"), "{sql}");
}

/// What stands behind WHERE could give another query's columns to the topic of failures, or begin another statement.
#[test]
fn a_condition_of_ones_own_is_one_condition() {
    let of = |text: &str| {
        let mut project = shop(sql_model("valid", "SELECT id FROM {{ source(\"raw\") }}"));
        let mut checked = test("t", "valid", TestType::Continuous);
        checked.assertions = vec![json!({"custom_sql": {"where": text}})];
        project.tests.push(checked);
        project
    };
    for good in ["id <> 'UNION; )'", "(id = 'a' OR id IN (SELECT 'x' UNION SELECT 'y')) -- ;", "`union` = 1"] {
        assert!(job(&compiled(of(good)), "test_t").contains(good), "{good}");
    }
    for bad in [
        "TRUE UNION ALL SELECT 'a', 'b', id, '', NOW() FROM t",
        "TRUE except SELECT 1",
        "TRUE; SELECT 1",
        "TRUE) OR (TRUE",
        "(TRUE",
        "id = 'a",
    ] {
        let found = refused(of(bad));
        assert!(found[0].starts_with("E119") && found[0].contains("no single condition"), "{bad}: {found:?}");
    }
}

#[test]
fn a_condition_over_a_column_that_the_job_does_not_read_is_told() {
    let mut project = shop(sql_model("valid", "SELECT id FROM {{ source(\"raw\") }}"));
    let mut checked = test("t", "valid", TestType::Continuous);
    checked.assertions = vec![json!({"not_null": {"columns": ["nothing"]}})];
    project.tests.push(checked);
    let compiled = compiled(project);
    assert!(compiled.artifacts.test_jobs.is_empty());
    let told: Vec<(Code, &str)> = compiled.warnings.iter().map(|f| (f.code, f.message.as_str())).collect();
    let expected = "Test 't': not_null:nothing is not executed: its job does not read column 'nothing'";
    assert_eq!(told, [(Code::W228AssertionNotExecuted, expected)]);
}

/// CRM-010: no secret is in an artifact.
#[test]
fn a_login_is_written_in_order_and_without_its_secret() {
    let mut project = shop(sql_model("m", "SELECT id FROM {{ source(\"raw\") }}"));
    let kafka = project.runtime.kafka.as_mut().unwrap();
    kafka.security_protocol = Some(SecurityProtocol::SaslSsl);
    kafka.sasl_mechanism = Some(SaslMechanism::ScramSha512);
    kafka.sasl_username = Some("svc".into());
    kafka.sasl_password = Some(Secret::new("p\"w-sentinel"));
    kafka.tls.ca_location = Some("/etc/ca.pem".into());
    kafka.tls.key_password = Some(Secret::new("key-sentinel"));
    let sql = job(&compiled(project), "m");
    let expected = "    'properties.bootstrap.servers' = 'localhost:9092',
    'properties.security.protocol' = 'SASL_SSL',
    'properties.sasl.mechanism' = 'SCRAM-SHA-512',
    'properties.sasl.jaas.config' = '***',
    'properties.ssl.truststore.location' = '/etc/ca.pem',
    'properties.ssl.truststore.type' = 'PEM',
    'properties.ssl.key.password' = '***',
    'scan.startup.mode' = 'earliest-offset',
";
    assert!(table(&sql, "raw").contains(expected), "{sql}");
    assert!(!sql.contains("sentinel"), "{sql}");
}

#[test]
fn a_mask_changes_its_item_and_nothing_else() {
    let sql = "SELECT id, lower(e.id) AS email, -- kept\n  n FROM {{ source(\"raw\") }} AS e;  -- end";
    let mask = |policy: serde_json::Value| {
        let security = SecurityBlock { classification: Default::default(), policies: vec![json!({"mask": policy})] };
        shop(Model { security: Some(security), ..sql_model("m", sql) })
    };
    let masked = |method: &str| {
        let compiled = compiled(mask(json!({"column": "email", "method": method})));
        let approximate = compiled.warnings.iter().any(|finding| finding.code == Code::W227MaskMethodApproximated);
        (select(&job(&compiled, "m")).to_owned(), approximate)
    };
    let (text, approximate) = masked("partial");
    let expected = "INSERT INTO `m_sink`\nSELECT id, CASE WHEN CHAR_LENGTH(lower(e.id)) > 4 THEN \
                    CONCAT(REPEAT('*', CHAR_LENGTH(lower(e.id)) - 4), RIGHT(lower(e.id), 4)) \
                    ELSE REPEAT('*', CHAR_LENGTH(lower(e.id))) END AS email, -- kept\n  n FROM `raw` AS e;";
    assert_eq!((text.as_str(), approximate), (expected, false));
    assert!(masked("hash").0.contains("SELECT id, SHA256(lower(e.id)) AS email,"));
    assert!(masked("null").0.contains("SELECT id, CAST(NULL AS STRING) AS email,"));
    assert!(masked("redact").0.contains("THEN CAST(NULL AS STRING) ELSE '***' END AS email"));
    assert!(masked("tokenize").1);
    let refused_codes = |policy| refused(mask(policy)).remove(0);
    assert!(refused_codes(json!({"column": "nothing", "method": "null"})).starts_with("E219"));
    assert!(refused_codes(json!({"column": "n", "method": "hash"})).starts_with("E219"));
    let roles = compiled(mask(json!({"column": "email", "method": "null", "for_roles": ["a"]})));
    assert_eq!(roles.warnings.iter().filter(|f| f.code == Code::W227MaskMethodApproximated).count(), 1);
}

/// A mask of the first query of a union would leave the second bare.
#[test]
fn a_union_is_not_masked_by_halves() {
    let union = "SELECT id FROM {{ source('raw') }} UNION ALL SELECT CAST(n AS STRING) AS id FROM {{ source('raw') }}";
    let security = SecurityBlock {
        classification: Default::default(),
        policies: vec![json!({"mask": {"column": "id", "method": "hash"}})],
    };
    let project = shop(Model { security: Some(security), ..sql_model("m", union) });
    assert!(refused(project)[0].starts_with("E219"));
}

#[test]
fn columns_of_a_source_are_written_as_flink_reads_them() {
    let mut project = shop(sql_model("m", "SELECT a, p, o, e FROM {{ source('raw') }}"));
    project.sources[0].columns = vec![
        column("a", "LONG"),
        Column { data_type: None, ..column("u", "") },
        Column { proctime: true, data_type: None, ..column("p", "") },
        Column { metadata: Some("offset".into()), ..column("o", "BIGINT") },
        Column { expression: Some("TO_TIMESTAMP_LTZ(a, 3)".into()), data_type: None, ..column("e", "") },
        column("q`t", "ROW<f TEXT>"),
    ];
    project.sources[0].event_time = Some(EventTime { column: "e".into(), watermark: None, allowed_lateness_ms: None });
    let sql = job(&compiled(project), "m");
    let expected = "CREATE TABLE IF NOT EXISTS `raw` (
    `a` BIGINT,
    `u` STRING,
    `p` AS PROCTIME(),
    `o` BIGINT METADATA FROM 'offset' VIRTUAL,
    `e` AS TO_TIMESTAMP_LTZ(a, 3),
    `q``t` ROW<`f` STRING>,
    WATERMARK FOR `e` AS `e` - INTERVAL '5' SECOND
) WITH (";
    assert!(sql.starts_with(expected), "{sql}");
    let sink = table(&sql, "m_sink");
    for line in ["`a` BIGINT", "`p` TIMESTAMP_LTZ(3)", "`o` BIGINT", "`e` TIMESTAMP_LTZ(3)"] {
        assert!(sink.contains(line), "{sink}");
    }
}

#[test]
fn an_upsert_model_is_written_and_read_by_key() {
    let upsert = Model {
        primary_key: Some(vec!["id".into()]),
        flink: Some(FlinkBlock { changelog_mode: Some(ChangelogMode::Upsert), ..FlinkBlock::default() }),
        ..sql_model("counts", "SELECT id, COUNT(*) AS n FROM {{ source('raw') }} GROUP BY id")
    };
    let mut project = shop(upsert);
    project.models.push(sql_model("reader", "SELECT id, n FROM {{ ref('counts') }} WHERE n > 1"));
    let compiled = compiled(project);
    let written = job(&compiled, "counts");
    let read = job(&compiled, "reader");
    let expected = " (
    `id` STRING,
    `n` BIGINT,
    PRIMARY KEY (`id`) NOT ENFORCED
) WITH (
    'connector' = 'upsert-kafka',
    'topic' = 'counts',
    'properties.bootstrap.servers' = 'localhost:9092',
    'key.format' = 'json',
    'value.format' = 'json'
);";
    assert_eq!(table(&written, "counts_sink"), format!("CREATE TABLE IF NOT EXISTS `counts_sink`{expected}"));
    assert_eq!(table(&read, "counts"), format!("CREATE TABLE IF NOT EXISTS `counts`{expected}"));
}

#[test]
fn event_time_is_passed_on_through_a_model() {
    let mut project = shop(sql_model("clean", "SELECT id, ts AS at_ FROM {{ source('raw') }} WHERE amount > 0"));
    let windowed = "SELECT window_start, window_end, window_time, COUNT(*) AS n \
                    FROM TABLE(TUMBLE(TABLE {{ ref('clean') }}, DESCRIPTOR(at_), INTERVAL '1' HOUR)) \
                    GROUP BY window_start, window_end, window_time";
    project.models.push(Model { materialized: Some(Materialized::Flink), ..sql_model("hourly", windowed) });
    project.models.push(Model {
        materialized: Some(Materialized::Flink),
        ..sql_model("last", "SELECT n FROM {{ ref('hourly') }}")
    });
    let compiled = compiled(project);
    let hourly = job(&compiled, "hourly");
    assert!(table(&hourly, "clean").contains("WATERMARK FOR `at_` AS `at_` - INTERVAL '2' SECOND"), "{hourly}");
    assert!(hourly.contains("TUMBLE(TABLE `clean`, DESCRIPTOR(at_)"), "{hourly}");
    let last = job(&compiled, "last");
    assert!(table(&last, "hourly").contains("WATERMARK FOR `window_time` AS `window_time`\n"), "{last}");
}

#[test]
fn avro_is_read_and_written_through_the_registry() {
    let definition = r#"{"type": "record", "name": "m", "fields": [
        {"name": "id", "type": "string"}, {"name": "n", "type": ["null", "int"]}]}"#;
    let model = |definition: &str, sql: &str| Model {
        schema: Some(SchemaBlock {
            subject: Some("other".into()),
            ..schema_block(SchemaFormat::Avro, Some(definition))
        }),
        ..sql_model("m", sql)
    };
    let with_registry = |model: Model| {
        let mut project = shop(model);
        project.runtime.schema_registry = Some(SchemaRegistryRuntime {
            url: "http://registry:8081".into(),
            auth: BasicAuth { username: Some("u".into()), password: Some(Secret::new("registry-sentinel")) },
            token: None,
            tls: Tls::default(),
        });
        project
    };
    let mut project = with_registry(model(definition, "SELECT id, n FROM {{ source('raw') }}"));
    project
        .models
        .push(Model { materialized: Some(Materialized::Flink), ..sql_model("r", "SELECT id FROM {{ ref('m') }}") });
    let compiled = compiled(project);
    let sql = job(&compiled, "m");
    let sink = table(&sql, "m_sink");
    assert!(sink.contains("    `id` STRING NOT NULL,\n    `n` INT\n"), "{sink}");
    let expected = "    'format' = 'avro-confluent',
    'avro-confluent.url' = 'http://registry:8081',
    'avro-confluent.subject' = 'other',
    'avro-confluent.schema' = '{\"fields\":[{\"name\":\"id\",\"type\":\"string\"},{\"name\":\"n\",\"type\":[\"null\",\"int\"]}],\"name\":\"m\",\"type\":\"record\"}',
    'avro-confluent.basic-auth.credentials-source' = 'USER_INFO',
    'avro-confluent.basic-auth.user-info' = '***'
);";
    assert!(sink.ends_with(expected), "{sink}");
    let reader = job(&compiled, "r");
    assert!(table(&reader, "m").contains("'avro-confluent.url' = 'http://registry:8081'"), "{reader}");
    assert!(!table(&reader, "m").contains("avro-confluent.schema"), "{reader}");
    assert!(!sql.contains("sentinel"));
    let other = refused(with_registry(model(definition, "SELECT n, id FROM {{ source('raw') }}")));
    assert!(other[0].starts_with("E119") && other[0].contains("id, n instead of n, id"), "{other:?}");
    let without = refused(shop(model(definition, "SELECT id, n FROM {{ source('raw') }}")));
    assert!(without[0].contains("no schema registry"), "{without:?}");
    let mut protobuf = shop(sql_model("m", "SELECT id FROM {{ source('raw') }}"));
    protobuf.sources[0].schema = Some(schema_block(SchemaFormat::Protobuf, Some("syntax = \"proto3\";")));
    assert!(refused(protobuf)[0].contains("Protobuf"));
}

#[test]
fn a_result_whose_columns_cannot_be_named_is_refused() {
    for (sql, part) in [
        ("SELECT id, amount + 1 FROM {{ source('raw') }}", "has no name"),
        ("SELECT id, n AS id FROM {{ source('raw') }}", "the name 'id'"),
    ] {
        let found = refused(shop(sql_model("m", sql)));
        assert!(found[0].starts_with("E119") && found[0].contains(part), "{found:?}");
    }
    let mut opaque = shop(sql_model("m", "SELECT *, 1 AS one_ FROM {{ source('raw') }}"));
    opaque.sources[0].columns.clear();
    opaque.sources[0].event_time = None;
    assert!(refused(opaque)[0].contains("cannot be told"));
}

#[test]
fn a_query_that_is_not_understood_is_still_a_job() {
    let sql = "SELECT id, NEW_SYNTAX 'x' y AS z FROM {{ source('raw') }}";
    let declared = vec![column("id", "STRING"), column("z", "BIGINT")];
    let project = shop(Model { columns: declared, ..sql_model("m", sql) });
    let text = job(&compiled(project), "m");
    assert!(table(&text, "m_sink").contains("    `id` STRING,\n    `z` BIGINT\n"), "{text}");
    assert!(text.ends_with("SELECT id, NEW_SYNTAX 'x' y AS z FROM `raw`;"), "{text}");
}

#[test]
fn a_declared_function_is_created_for_the_jobs_that_call_it() {
    let mut project = shop(sql_model("m", "SELECT Mask_It(id) AS k FROM {{ source('raw') }}"));
    project.udfs.push(Udf {
        name: "mask_it".into(),
        return_type: "INT".into(),
        class: Some("com.acme.Mask".into()),
        language: None,
        origin: Default::default(),
    });
    let sql = job(&compiled(project), "m");
    let create = "CREATE TEMPORARY SYSTEM FUNCTION IF NOT EXISTS `mask_it` AS 'com.acme.Mask' LANGUAGE JAVA;\n\n";
    assert!(sql.starts_with(create), "{sql}");
    assert!(table(&sql, "m_sink").contains("`k` INT"), "{sql}");
}

#[test]
fn a_virtual_topic_is_read_through_the_gateway() {
    let mut project = shop(sql_model("m", "SELECT id FROM {{ ref('eu') }}"));
    let mut gateway = gateway_runtime();
    gateway.proxy_bootstrap = Some("gateway:6969".into());
    project.runtime.gateway = Some(gateway);
    project.models.push(sql_model("eu", "SELECT * FROM {{ source('raw') }} WHERE n = 1"));
    let sql = job(&compiled(project), "m");
    let read = table(&sql, "eu");
    assert!(read.contains("'topic' = 'eu',\n    'properties.bootstrap.servers' = 'gateway:6969'"), "{read}");
    assert!(table(&sql, "m_sink").contains("'properties.bootstrap.servers' = 'localhost:9092'"), "{sql}");
}

/// Each assertion becomes the condition of its violation, and no value ends the text that it stands in.
#[test]
fn a_condition_says_what_its_assertion_forbids() {
    let mut project = shop(sql_model("valid", "SELECT id, n FROM {{ source('raw') }}"));
    let mut checked = test("it's", "valid", TestType::Continuous);
    checked.assertions = vec![
        json!({"accepted_values": {"column": "id", "values": ["a'b", 1, true]}}),
        json!({"range": {"column": "n", "min": -1, "max": 5}}),
        json!({"not_null": {"columns": ["n"]}}),
        json!({"accepted_types": {"types": {"n": "int"}}}),
    ];
    project.tests.push(checked);
    let sql = job(&compiled(project), "test_it's");
    let of = |violation: &str| {
        let select = sql.split("SELECT\n").find(|part| part.contains(&format!("'{violation}' AS violation_type")));
        let select = select.unwrap_or_else(|| panic!("{violation}: {sql}"));
        assert!(select.starts_with("    'it''s' AS test_name"), "{select}");
        let condition = select.split("\nWHERE ").nth(1).unwrap();
        condition.trim_end_matches("\nUNION ALL\n").trim_end_matches(';').to_owned()
    };
    assert_eq!(of("accepted_values:id"), "`id` NOT IN ('a''b', '1', 'true')");
    assert_eq!(of("range_min:n"), "TRY_CAST(`n` AS DOUBLE) < -1");
    assert_eq!(of("range_max:n"), "TRY_CAST(`n` AS DOUBLE) > 5");
    assert_eq!(of("not_null:n"), "`n` IS NULL");
    assert_eq!(of("accepted_types:n"), "TRY_CAST(`n` AS INT) IS NULL AND `n` IS NOT NULL");
}

#[test]
fn flink_is_given_the_brokers_that_it_can_reach() {
    let mut project = shop(sql_model("m", "SELECT id FROM {{ source('raw') }}"));
    project.runtime.kafka.as_mut().unwrap().bootstrap_servers_internal = Some("kafka:29092".into());
    let sql = job(&compiled(project), "m");
    assert_eq!(sql.matches("'properties.bootstrap.servers' = 'kafka:29092'").count(), 2, "{sql}");
    assert!(!sql.contains("localhost"), "{sql}");
}

#[test]
fn a_login_by_iam_needs_the_jar_that_has_it() {
    let iam = |flavour: KafkaConnectorFlavour| {
        let mut project = shop(sql_model("m", "SELECT id FROM {{ source('raw') }}"));
        let kafka = project.runtime.kafka.as_mut().unwrap();
        kafka.security_protocol = Some(SecurityProtocol::SaslSsl);
        kafka.sasl_mechanism = Some(SaslMechanism::AwsMskIam);
        let cluster = FlinkCluster { kafka_connector: flavour, ..flink_cluster() };
        project.runtime.flink = Some(FlinkRuntime {
            default: Some("local".into()),
            clusters: std::collections::BTreeMap::from([("local".into(), cluster)]),
        });
        project
    };
    let found = refused(iam(KafkaConnectorFlavour::Sql));
    assert!(found[0].starts_with("E501") && found[0].contains("kafka_connector: plain"), "{found:?}");
    let sql = job(&compiled(iam(KafkaConnectorFlavour::Plain)), "m");
    assert!(sql.contains("'properties.sasl.mechanism' = 'AWS_MSK_IAM'"), "{sql}");
}

/// A name that is a word of the language stands quoted behind AS.
#[test]
fn a_masked_column_keeps_a_name_that_needs_quotes() {
    for (name, written) in [("order", "`order`"), ("per cent", "`per cent`"), ("plain_1", "plain_1")] {
        let sql = format!("SELECT id AS `{name}` FROM {{{{ source('raw') }}}}");
        let security = SecurityBlock {
            classification: Default::default(),
            policies: vec![json!({"mask": {"column": name, "method": "null"}})],
        };
        let text = job(&compiled(shop(Model { security: Some(security), ..sql_model("m", &sql) })), "m");
        assert!(select(&text).contains(&format!("SELECT CAST(NULL AS STRING) AS {written} FROM")), "{text}");
    }
}

/// A text that is not understood is masked all the same, at each item of the name.
#[test]
fn every_item_of_a_masked_name_is_masked() {
    let sql = "SELECT id AS e, NEW_SYNTAX 'x' y AS e FROM {{ source('raw') }}";
    let security = SecurityBlock {
        classification: Default::default(),
        policies: vec![json!({"mask": {"column": "e", "method": "redact"}})],
    };
    let text = job(&compiled(shop(Model { security: Some(security), ..sql_model("m", sql) })), "m");
    assert_eq!(select(&text).matches("ELSE '***' END AS e").count(), 2, "{text}");
}

/// A watermark is of at most three digits.
#[test]
fn an_event_time_is_read_with_the_digits_that_a_watermark_takes() {
    for (declared, read) in [
        ("TIMESTAMP(6)", "TIMESTAMP(3)"),
        ("TIMESTAMP", "TIMESTAMP(3)"),
        ("STRING", "TIMESTAMP(3)"),
        ("TIMESTAMP(0)", "TIMESTAMP(0)"),
        ("TIMESTAMP_LTZ(3)", "TIMESTAMP_LTZ(3)"),
    ] {
        let mut project = shop(sql_model("m", "SELECT id FROM {{ source('raw') }}"));
        project.sources[0].columns[3] = column("ts", declared);
        let sql = job(&compiled(project), "m");
        assert!(table(&sql, "raw").contains(&format!("    `ts` {read},\n")), "{declared}: {sql}");
    }
}
