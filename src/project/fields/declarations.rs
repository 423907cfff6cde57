//! Sources, tests, exposures, user-defined functions, and the blocks that sources and models share.

use super::super::shape::*;

const TEXT: Shape = Shape::Text(STRING);
const REQUIRED_TEXT: Shape = Shape::Text(NON_BLANK);
const NAMES: Shape = Shape::List(&TEXT, usize::MAX);
pub(super) const CLASSIFICATIONS: Shape =
    Shape::Choice(&["public", "internal", "confidential", "sensitive", "highly_sensitive"], Fold::Exact);

pub static SOURCES_FILE: Record = Record {
    name: "sources_file",
    doc: "A file of the directory `sources`.",
    fields: &[def("sources", Shape::List(&Shape::Record(&SOURCE), usize::MAX), "[]", "Topics that others write.")],
};

pub static TESTS_FILE: Record = Record {
    name: "tests_file",
    doc: "A file of the directory `tests`.",
    fields: &[def("tests", Shape::List(&Shape::Record(&TEST), usize::MAX), "[]", "Assertions about data.")],
};

pub static EXPOSURES_FILE: Record = Record {
    name: "exposures_file",
    doc: "A file of the directory `exposures`.",
    fields: &[def(
        "exposures",
        Shape::List(&Shape::Record(&EXPOSURE), usize::MAX),
        "[]",
        "Applications that use the data.",
    )],
};

pub(super) static OWNERSHIP: Record = Record {
    name: "ownership",
    doc: "Who may write to the resource.",
    fields: &[req(
        "mode",
        Shape::Choice(&["external", "managed", "adopted"], Fold::Exact),
        "`external` is only observed; `managed` and `adopted` are created and updated.",
    )],
};

pub static SOURCE: Record = Record {
    name: "source",
    doc: "A topic that others write.",
    fields: &[
        req("name", Shape::Text(NAME), "Name in SQL and on the command line."),
        req("topic", Shape::Text(SOURCE_TOPIC), "Topic on the cluster."),
        opt("description", TEXT, "What it holds."),
        opt("owner", TEXT, "Who answers for it."),
        opt("region", TEXT, "Where its data resides."),
        opt("cluster", TEXT, "A label."),
        def("tags", NAMES, "[]", "Labels for selection."),
        def("ownership", Shape::Record(&OWNERSHIP), "{\"mode\":\"external\"}", "Who may write to its schema."),
        opt("schema", Shape::Record(&SCHEMA), "Schema of its values."),
        def(
            "columns",
            Shape::List(&Shape::Record(&COLUMN), usize::MAX),
            "[]",
            "Its columns; `schema.fields` when empty.",
        ),
        opt("freshness", Shape::Record(&FRESHNESS), "How late data may be; metadata."),
        opt("event_time", Shape::Record(&EVENT_TIME), "Its event time."),
        opt("advanced", Shape::Record(&SOURCE_ADVANCED), "Older place of `event_time`.").moved("event_time"),
    ],
};

static SOURCE_ADVANCED: Record = Record {
    name: "source_advanced",
    doc: "Older place of `event_time`.",
    fields: &[opt("event_time", Shape::Record(&EVENT_TIME), "Its event time.")],
};

pub(super) static SCHEMA: Record = Record {
    name: "schema",
    doc: "Schema of a topic's values.",
    fields: &[
        opt("registry", TEXT, "`confluent` or absent."),
        opt("subject", Shape::Text(NON_BLANK), "Subject; `<topic>-value` when absent."),
        def("version", Shape::PositiveOr("latest"), "\"latest\"", "Version to read."),
        opt("format", Shape::Choice(&["avro", "json", "protobuf"], Fold::Lower), "Format."),
        opt("definition", TEXT, "The schema's text."),
        opt("fields", Shape::List(&Shape::Record(&COLUMN), usize::MAX), "Columns; excludes `definition`."),
        opt(
            "compatibility",
            Shape::Choice(
                &[
                    "NONE",
                    "BACKWARD",
                    "BACKWARD_TRANSITIVE",
                    "FORWARD",
                    "FORWARD_TRANSITIVE",
                    "FULL",
                    "FULL_TRANSITIVE",
                ],
                Fold::Upper,
            ),
            "Compatibility level of the subject; absent: the level is not managed.",
        ),
        def("references", Shape::List(&Shape::Record(&REFERENCE), usize::MAX), "[]", "Schemas that the text imports."),
        opt(
            "timestamp_format",
            Shape::Choice(&["sql", "iso_8601"], Fold::Exact),
            "How timestamps are written; JSON only. `sql` when absent.",
        ),
    ],
};

static REFERENCE: Record = Record {
    name: "schema_reference",
    doc: "A schema that a text imports.",
    fields: &[
        req("name", REQUIRED_TEXT, "The import name used in the text."),
        req("subject", REQUIRED_TEXT, "Subject of the imported schema."),
        req("version", int(1, i32::MAX as i64), "Its version; never `latest`."),
    ],
};

pub(super) static COLUMN: Record = Record {
    name: "column",
    doc: "A column.",
    fields: &[
        req("name", REQUIRED_TEXT, "Name."),
        opt("type", REQUIRED_TEXT, "Flink SQL type."),
        opt("classification", CLASSIFICATIONS, "How sensitive it is."),
        opt("description", TEXT, "What it holds."),
        def("required", Shape::Bool, "false", "Never null."),
        def("proctime", Shape::Bool, "false", "The processing time."),
        opt(
            "metadata",
            Shape::Choice(
                &["timestamp", "offset", "partition", "headers", "topic", "leader-epoch", "timestamp-type"],
                Fold::Exact,
            ),
            "A metadata column of the Kafka connector; needs `type`.",
        ),
        opt("expression", REQUIRED_TEXT, "SQL of a computed column."),
    ],
};

static FRESHNESS: Record = Record {
    name: "freshness",
    doc: "How late data may be; metadata.",
    fields: &[
        opt("max_lag_seconds", at_least(0), "Longest lag."),
        opt("warn_after_seconds", at_least(0), "Lag that is worth a warning."),
    ],
};

static EVENT_TIME: Record = Record {
    name: "event_time",
    doc: "The event time of a source.",
    fields: &[
        req("column", REQUIRED_TEXT, "The column."),
        opt("watermark", Shape::Record(&WATERMARK), "How late events may be."),
        opt("allowed_lateness_ms", at_least(0), "Metadata."),
    ],
};

static WATERMARK: Record = Record {
    name: "watermark",
    doc: "How late events may be.",
    fields: &[
        def(
            "strategy",
            Shape::Choice(&["bounded_out_of_orderness", "monotonously_increasing", "custom"], Fold::Exact),
            "\"bounded_out_of_orderness\"",
            "How the watermark is computed.",
        ),
        def("max_out_of_orderness_ms", int(0, 8_639_999_999), "5000", "Longest delay.").nullable(),
        opt("expression", REQUIRED_TEXT, "SQL of the watermark; only with `custom`."),
    ],
};

pub static TEST: Record = Record {
    name: "test",
    doc: "Assertions about the data of a model or a source.",
    fields: &[
        req("name", Shape::Text(NAME), "Name."),
        req("model", REQUIRED_TEXT, "The model or source."),
        req("type", Shape::Choice(&["schema", "sample", "continuous"], Fold::Exact), "When and how it runs."),
        def("assertions", Shape::List(&Shape::OneKey(ASSERTIONS), usize::MAX), "[]", "What must hold."),
        opt("sample_size", int(1, i32::MAX as i64), "Records a `sample` test reads; 100 when absent."),
        opt("flink_cluster", Shape::Text(NAME), "Cluster of a `continuous` test."),
        opt("on_failure", Shape::Record(&ON_FAILURE), "What a failure means."),
    ],
};

static ON_FAILURE: Record = Record {
    name: "on_failure",
    doc: "What a failure means.",
    fields: &[
        def("severity", Shape::Choice(&["error", "warning"], Fold::Exact), "\"error\"", "Severity."),
        def(
            "actions",
            Shape::List(&Shape::OneKey(ACTIONS), usize::MAX),
            "[]",
            "Kept for documents; nothing is done with failing records.",
        ),
    ],
};

static DLQ_BLOCK: Shape = Shape::Record(&DLQ);
const ACTIONS: &[Field] =
    &[req("dlq", Shape::Either(&Shape::True, &DLQ_BLOCK), "A topic for them, which is created; nothing writes to it.")];

static DLQ: Record = Record {
    name: "dlq",
    doc: "A dead-letter topic for an application of yours; `<model>__dlq` when it names none.",
    fields: &[opt("model", REQUIRED_TEXT, "A model."), opt("topic", Shape::Text(TOPIC), "A topic.")],
};

const ASSERTIONS: &[Field] = &[
    req("not_null", Shape::Record(&NOT_NULL), "Columns are never null."),
    req("accepted_values", Shape::Record(&ACCEPTED_VALUES), "A column holds only these values."),
    req("accepted_types", Shape::Record(&ACCEPTED_TYPES), "Columns have these types."),
    req("range", Shape::Record(&RANGE), "A column stays within bounds."),
    req("unique_key", Shape::Record(&UNIQUE_KEY), "A key occurs once."),
    req("custom_sql", Shape::Record(&CUSTOM_SQL), "A condition of your own."),
    req("max_lag", Shape::Record(&MAX_LAG), "A time column is not older than this."),
    req("throughput", Shape::Record(&THROUGHPUT), "Records per second."),
    req("distribution", Shape::Record(&DISTRIBUTION), "Shares of value ranges."),
    req("foreign_key", Shape::Record(&FOREIGN_KEY), "Values occur in another model."),
];

static NOT_NULL: Record =
    Record { name: "not_null", doc: "Columns are never null.", fields: &[req("columns", NAMES, "The columns.")] };
static ACCEPTED_VALUES: Record = Record {
    name: "accepted_values",
    doc: "A column holds only these values.",
    fields: &[
        req("column", REQUIRED_TEXT, "The column."),
        req("values", Shape::List(&Shape::Scalar(Scalars::WithFloats), usize::MAX), "The values."),
    ],
};
static ACCEPTED_TYPES: Record = Record {
    name: "accepted_types",
    doc: "Columns have these types.",
    fields: &[req("types", Shape::Map { key: STRING, value: &TEXT }, "Type by column.")],
};
static RANGE: Record = Record {
    name: "range",
    doc: "A column stays within bounds; at least one of them.",
    fields: &[
        req("column", REQUIRED_TEXT, "The column."),
        opt("min", ANY_NUMBER, "Lowest value."),
        opt("max", ANY_NUMBER, "Highest value."),
    ],
};
static UNIQUE_KEY: Record = Record {
    name: "unique_key",
    doc: "A key occurs once.",
    fields: &[
        req("key", REQUIRED_TEXT, "The column."),
        opt("window", TEXT, "Time span it is unique in."),
        def("tolerance", Shape::Number { min: 0.0, max: 1.0 }, "0.0", "Share of duplicates that passes."),
    ],
};
static CUSTOM_SQL: Record = Record {
    name: "custom_sql",
    doc: "A condition of your own.",
    fields: &[
        def("name", TEXT, "\"custom\"", "Name in results."),
        req("where", REQUIRED_TEXT, "SQL that is true for a failing record."),
        opt("detail_column", TEXT, "Column shown for a failing record."),
    ],
};
static MAX_LAG: Record = Record {
    name: "max_lag",
    doc: "A time column is not older than this.",
    fields: &[
        req("column", REQUIRED_TEXT, "The column."),
        req("max_seconds", Shape::Number { min: 0.0, max: f64::INFINITY }, "Seconds."),
    ],
};
static THROUGHPUT: Record = Record {
    name: "throughput",
    doc: "Records per second.",
    fields: &[
        opt("min_per_second", Shape::Number { min: 0.0, max: f64::INFINITY }, "Fewest."),
        opt("max_per_second", Shape::Number { min: 0.0, max: f64::INFINITY }, "Most."),
    ],
};
static DISTRIBUTION: Record = Record {
    name: "distribution",
    doc: "Shares of value ranges.",
    fields: &[
        req("column", REQUIRED_TEXT, "The column."),
        req("buckets", Shape::List(&Shape::Record(&BUCKET), usize::MAX), "The ranges."),
    ],
};
static BUCKET: Record = Record {
    name: "bucket",
    doc: "One range of values and its share.",
    fields: &[
        opt("min", ANY_NUMBER, "Lowest value."),
        opt("max", ANY_NUMBER, "Highest value."),
        opt("expected_ratio", Shape::Number { min: 0.0, max: 1.0 }, "Expected share."),
        opt("max_ratio", Shape::Number { min: 0.0, max: 1.0 }, "Largest share."),
        opt("tolerance", Shape::Number { min: 0.0, max: 1.0 }, "Deviation that passes."),
    ],
};
static FOREIGN_KEY: Record = Record {
    name: "foreign_key",
    doc: "Values occur in another model.",
    fields: &[
        req("column", REQUIRED_TEXT, "The column."),
        req("ref_model", REQUIRED_TEXT, "The other model."),
        req("ref_key", REQUIRED_TEXT, "Its column."),
        opt("window", TEXT, "Time span."),
        opt("match_rate", Shape::Number { min: 0.0, max: 1.0 }, "Smallest share that must match."),
    ],
};

/// Entries without exactly one name are findings of validation.
static EXPOSURE_REFERENCE: Record = Record {
    name: "exposure_reference",
    doc: "Exactly one of a source and a model.",
    fields: &[opt("source", TEXT, "A source."), opt("ref", TEXT, "A model.")],
};
const REFERENCES: Shape = Shape::List(&Shape::Record(&EXPOSURE_REFERENCE), usize::MAX);

pub static EXPOSURE: Record = Record {
    name: "exposure",
    doc: "An application that uses the data. It never creates anything.",
    fields: &[
        req("name", Shape::Text(NAME), "Name."),
        req(
            "type",
            Shape::Choice(&["application", "dashboard", "ml_training", "ml_inference", "api"], Fold::Exact),
            "What it is.",
        ),
        opt("role", Shape::Choice(&["producer", "consumer", "both"], Fold::Exact), "Which way data flows."),
        opt("description", TEXT, "What it does."),
        opt("owner", TEXT, "Who answers for it."),
        def(
            "owners",
            Shape::List(&Shape::Map { key: STRING, value: &TEXT }, usize::MAX),
            "[]",
            "Owners; the first one's `name` fills `owner`.",
        ),
        opt("url", TEXT, "Where it runs."),
        opt("repo", TEXT, "Where its code is."),
        opt("language", TEXT, "Programming language."),
        opt("tool", TEXT, "Tool."),
        opt("consumer_group", TEXT, "Kafka consumer group."),
        opt("schedule", TEXT, "When it runs."),
        def("produces", REFERENCES, "[]", "What it writes."),
        def("consumes", REFERENCES, "[]", "What it reads."),
        def("depends_on", REFERENCES, "[]", "What else it needs."),
        def(
            "columns",
            Shape::List(&Shape::Record(&EXPOSURE_COLUMN), usize::MAX),
            "[]",
            "Columns it needs of every input.",
        ),
        opt("sla", Shape::Record(&SLA), "What it promises; not enforced."),
        opt("contracts", Shape::Record(&EXPOSURE_CONTRACTS), "Metadata."),
        opt("access", Shape::Record(&EXPOSURE_ACCESS), "Metadata."),
        opt("freshness", Shape::Record(&FRESHNESS), "How late data may be; metadata."),
        opt("data_requirements", Shape::AnyMap, "Metadata of any form."),
    ],
};

static EXPOSURE_COLUMN: Record = Record {
    name: "exposure_column",
    doc: "A column that is needed.",
    fields: &[req("name", REQUIRED_TEXT, "Name."), opt("type", REQUIRED_TEXT, "Flink SQL type.")],
};
static SLA: Record = Record {
    name: "sla",
    doc: "What an application promises; not enforced.",
    fields: &[
        opt("availability", TEXT, "For example '99.9%'."),
        opt("max_produce_latency_ms", at_least(0), "Milliseconds."),
        opt("max_end_to_end_latency_ms", at_least(0), "Milliseconds."),
        opt("max_lag_messages", at_least(0), "Records."),
        opt("max_lag_minutes", at_least(0), "Minutes."),
        opt("freshness_minutes", at_least(0), "Minutes."),
        opt("max_error_rate", Shape::Number { min: 0.0, max: 1.0 }, "Share."),
    ],
};
static EXPOSURE_CONTRACTS: Record = Record {
    name: "exposure_contracts",
    doc: "Metadata.",
    fields: &[opt("schema", TEXT, "A schema."), opt("compatibility", TEXT, "A level.")],
};
static EXPOSURE_ACCESS: Record = Record {
    name: "exposure_access",
    doc: "Metadata.",
    fields: &[def("roles", NAMES, "[]", "Roles."), opt("purpose", TEXT, "Purpose.")],
};

pub static UDF: Record = Record {
    name: "udf",
    doc: "A user-defined function that SQL may call.",
    fields: &[
        req("name", Shape::Text(NAME), "Name, matched without regard to case."),
        req("return_type", REQUIRED_TEXT, "Flink SQL type."),
        opt("class", REQUIRED_TEXT, "Its class; every job that calls it registers it."),
        opt(
            "language",
            Shape::Choice(&["java", "scala", "python"], Fold::Exact),
            "Language of the class; java when absent.",
        ),
    ],
};
