//! Models: topics and processes of the project.

use super::super::shape::*;
use super::declarations::{CLASSIFICATIONS, COLUMN, OWNERSHIP, SCHEMA};

const TEXT: Shape = Shape::Text(STRING);
const REQUIRED_TEXT: Shape = Shape::Text(NON_BLANK);
const NAMES: Shape = Shape::List(&TEXT, usize::MAX);
const COUNT: Shape = int(1, i32::MAX as i64);
const MILLISECONDS: Shape = at_least(1);
const PAUSE: Shape = at_least(0);

pub static MODELS_FILE: Record = Record {
    name: "models_file",
    doc: "A file of the directory `models`.",
    fields: &[def(
        "models",
        Shape::List(&Shape::Record(&MODEL), usize::MAX),
        "[]",
        "Topics and processes of this project.",
    )],
};

pub static MODEL: Record = Record {
    name: "model",
    doc: "A topic, or a process and what it writes. With neither `sql`, `macro` nor `from` it is a bare topic.",
    fields: &[
        req("name", Shape::Text(NAME), "Name in SQL and on the command line."),
        opt("description", TEXT, "What it holds."),
        opt("owner", TEXT, "Who answers for it."),
        opt("group", TEXT, "Group that `access: private` refers to."),
        opt("region", TEXT, "Where its data resides."),
        opt("key", TEXT, "Column that becomes the record key."),
        opt("sql", TEXT, "One query; excludes `macro`."),
        opt("macro", Shape::Text(MACRO), "Template `macros/<macro>.sql.j2` that gives the query."),
        def("params", Shape::Map { key: STRING, value: &TEXT }, "{}", "Variables of the template."),
        opt(
            "from",
            Shape::Either(&REQUIRED_TEXT, &Shape::List(&Shape::Record(&FROM), usize::MAX)),
            "Inputs of a model without SQL; one name alone is a model.",
        ),
        opt("columns", Shape::List(&Shape::Record(&COLUMN), usize::MAX), "Declared output."),
        opt("primary_key", NAMES, "Columns of the primary key."),
        def("ownership", Shape::Record(&OWNERSHIP), "{\"mode\":\"managed\"}", "Who may write to its resources."),
        def("tags", NAMES, "[]", "Labels for selection."),
        opt(
            "materialized",
            Shape::Choice(&["topic", "virtual_topic", "flink", "sink"], Fold::Exact),
            "What it becomes; inferred when absent.",
        ),
        opt("executor", Shape::Choice(&["flink", "kafka_streams"], Fold::Exact), "What runs its SQL."),
        opt("topic", Shape::Record(&TOPIC_BLOCK), "Its output topic."),
        opt("flink", Shape::Record(&FLINK), "Settings of its Flink job."),
        opt("flink_cluster", Shape::Text(NAME), "Flink cluster."),
        opt("connect_cluster", Shape::Text(NAME), "Kafka Connect cluster."),
        opt("gateway", Shape::Record(&GATEWAY), "Conduktor Gateway."),
        opt("sink", Shape::Record(&SINK), "Its connector."),
        opt("schema", Shape::Record(&SCHEMA), "Schema of its output."),
        opt("security", Shape::Record(&SECURITY), "Classification and policies."),
        opt(
            "ml_outputs",
            Shape::Map { key: STRING, value: &Shape::Record(&ML_OUTPUT) },
            "Columns that ML functions return, by ML model.",
        ),
        def(
            "access",
            Shape::Choice(&["private", "protected", "public"], Fold::Exact),
            "\"private\"",
            "Who may refer to it.",
        ),
        opt("version", ANY_INT, "Version of the model."),
        opt("contract", Shape::Record(&CONTRACT), "Columns it promises."),
        opt("connector", Shape::Record(&OLD_CONNECTOR), "Older form of `sink`.").moved("sink"),
        opt(
            "advanced",
            Shape::Record(&ADVANCED),
            "Older place of `flink`, `topic`, `flink_cluster`, `connect_cluster`.",
        )
        .moved(""),
    ],
};

static FROM: Record = Record {
    name: "from",
    doc: "Exactly one of a source and a model.",
    fields: &[opt("source", REQUIRED_TEXT, "A source."), opt("ref", REQUIRED_TEXT, "A model.")],
};

static ADVANCED: Record = Record {
    name: "model_advanced",
    doc: "Older place of four fields.",
    fields: &[
        opt("flink", Shape::Record(&FLINK), "Settings of its Flink job."),
        opt("topic", Shape::Record(&TOPIC_BLOCK), "Its output topic."),
        opt("flink_cluster", Shape::Text(NAME), "Flink cluster."),
        opt("connect_cluster", Shape::Text(NAME), "Kafka Connect cluster."),
    ],
};

static OLD_CONNECTOR: Record = Record {
    name: "model_connector",
    doc: "Older form of `sink`.",
    fields: &[
        req("type", REQUIRED_TEXT, "Connector class."),
        def(
            "config",
            Shape::Map { key: STRING, value: &Shape::Scalar(Scalars::WithFloats) },
            "{}",
            "Connector configuration.",
        ),
    ],
};

static TOPIC_BLOCK: Record = Record {
    name: "topic",
    doc: "An output topic.",
    fields: &[
        opt("name", Shape::Text(TOPIC), "Name; the model's name when absent."),
        opt("partitions", int(1, i32::MAX as i64), "Partitions."),
        opt("replication_factor", int(1, i16::MAX as i64), "Replicas."),
        def(
            "config",
            Shape::Map { key: STRING, value: &Shape::Scalar(Scalars::WithoutFloats) },
            "{}",
            "Topic configuration: strings, integers, booleans.",
        ),
    ],
};

static FLINK: Record = Record {
    name: "flink_settings",
    doc: "Settings of a Flink job.",
    fields: &[
        opt("parallelism", COUNT, "Parallel subtasks."),
        opt("state_ttl_ms", ANY_INT, "How long unused state is kept."),
        opt("state_backend", Shape::Text(STATE_BACKEND), "State backend."),
        opt("checkpoint_interval_ms", MILLISECONDS, "Time between checkpoints."),
        opt("checkpoint", Shape::Record(&CHECKPOINT), "Checkpoints."),
        opt("rocksdb", Shape::Record(&ROCKSDB), "RocksDB."),
        opt("resources", Shape::Record(&RESOURCES), "Process sizes; without effect on a session cluster."),
        opt("restart_strategy", Shape::Tagged(&RESTART_STRATEGY), "What happens after a failure."),
        opt(
            "changelog_mode",
            Shape::Choice(&["append", "upsert"], Fold::Exact),
            "How changes are written; `upsert` needs `primary_key`.",
        ),
    ],
};

static CHECKPOINT: Record = Record {
    name: "checkpoint",
    doc: "Checkpoints.",
    fields: &[
        opt("timeout_ms", MILLISECONDS, "Longest checkpoint."),
        opt("min_pause_ms", PAUSE, "Shortest pause between checkpoints."),
        opt("max_concurrent", COUNT, "Checkpoints at the same time."),
        opt("mode", Shape::Choice(&["EXACTLY_ONCE", "AT_LEAST_ONCE"], Fold::Exact), "Guarantee."),
        opt(
            "externalized",
            Shape::Choice(&["RETAIN_ON_CANCELLATION", "DELETE_ON_CANCELLATION"], Fold::Exact),
            "What happens to checkpoints on cancellation.",
        ),
        opt("unaligned", Shape::Bool, "Unaligned checkpoints."),
        opt("incremental", Shape::Bool, "Incremental checkpoints."),
    ],
};

static ROCKSDB: Record = Record {
    name: "rocksdb",
    doc: "RocksDB.",
    fields: &[
        opt(
            "block_cache_size_mb",
            COUNT,
            "Block cache, MiB; without effect while Flink manages the memory of RocksDB.",
        ),
        opt("write_buffer_size_mb", COUNT, "Write buffer, MiB."),
        opt("predefined_options", REQUIRED_TEXT, "Predefined options."),
    ],
};

static RESOURCES: Record = Record {
    name: "resources",
    doc: "Process sizes.",
    fields: &[
        opt("taskmanager_memory_mb", COUNT, "TaskManager memory, MiB."),
        opt("taskmanager_slots", COUNT, "Slots."),
        opt("jobmanager_memory_mb", COUNT, "JobManager memory, MiB."),
    ],
};

static RESTART_STRATEGY: Tagged = Tagged {
    doc: "What happens after a failure.",
    tag: "type",
    default: Some("fixed-delay"),
    variants: &[
        ("fixed-delay", &FIXED_DELAY),
        ("failure-rate", &FAILURE_RATE),
        ("exponential-delay", &EXPONENTIAL_DELAY),
        ("none", &NO_RESTART),
    ],
    refused: &[],
};

static FIXED_DELAY: Record = Record {
    name: "restart_fixed_delay",
    doc: "A number of attempts with a fixed delay.",
    fields: &[opt("attempts", COUNT, "Attempts."), opt("delay_ms", PAUSE, "Delay.")],
};
static FAILURE_RATE: Record = Record {
    name: "restart_failure_rate",
    doc: "As long as failures are rare.",
    fields: &[
        opt("max_failures_per_interval", COUNT, "Most failures in an interval."),
        opt("failure_rate_interval_ms", MILLISECONDS, "The interval."),
        opt("delay_ms", PAUSE, "Delay."),
    ],
};
static EXPONENTIAL_DELAY: Record = Record {
    name: "restart_exponential_delay",
    doc: "With a growing delay.",
    fields: &[
        opt("initial_backoff_ms", MILLISECONDS, "First delay."),
        opt("max_backoff_ms", MILLISECONDS, "Longest delay."),
        opt("backoff_multiplier", Shape::Number { min: 1.0, max: f64::INFINITY }, "Growth."),
    ],
};
static NO_RESTART: Record = Record { name: "restart_none", doc: "The job fails.", fields: &[] };

static GATEWAY: Record = Record {
    name: "model_gateway",
    doc: "Conduktor Gateway.",
    fields: &[opt("virtual_topic", Shape::Record(&VIRTUAL_TOPIC), "The virtual topic.")],
};

static VIRTUAL_TOPIC: Record = Record {
    name: "virtual_topic",
    doc: "A virtual topic.",
    fields: &[
        opt("name", Shape::Text(TOPIC), "Its alias; equal to `topic.name` when both are set."),
        opt("compression", REQUIRED_TEXT, "Compression."),
    ],
};

static SINK: Record = Record {
    name: "sink",
    doc: "A connector that writes the input elsewhere.",
    fields: &[
        req("connector", REQUIRED_TEXT, "A short name such as `jdbc-sink`, or a connector class."),
        opt("connection", Shape::Text(NAME), "Connection whose configuration comes first."),
        def(
            "config",
            Shape::Map { key: STRING, value: &Shape::Scalar(Scalars::WithFloats) },
            "{}",
            "Connector configuration: strings, integers, booleans, finite numbers.",
        ),
    ],
};

static SECURITY: Record = Record {
    name: "security",
    doc: "Classification and policies.",
    fields: &[
        def("classification", Shape::Map { key: STRING, value: &CLASSIFICATIONS }, "{}", "Level by column."),
        def("policies", Shape::List(&Shape::OneKey(POLICIES), usize::MAX), "[]", "Policies."),
    ],
};

const POLICIES: &[Field] = &[
    req("mask", Shape::Record(&MASK), "Mask a column."),
    req("allow", Shape::Record(&ALLOW), "Documented, not enforced."),
    req("deny", Shape::Record(&DENY), "Documented, not enforced."),
];

static MASK: Record = Record {
    name: "mask",
    doc: "Mask a column.",
    fields: &[
        req("column", REQUIRED_TEXT, "The column."),
        req("method", Shape::Choice(&["hash", "redact", "partial", "tokenize", "null"], Fold::Exact), "How.")
            .nullable(),
        def("for_roles", NAMES, "[]", "Roles it applies to."),
    ],
};
static ALLOW: Record = Record {
    name: "allow",
    doc: "Documented, not enforced.",
    fields: &[req("roles", NAMES, "Roles."), opt("purpose", TEXT, "Purpose.")],
};
static DENY: Record =
    Record { name: "deny", doc: "Documented, not enforced.", fields: &[req("roles", NAMES, "Roles.")] };

static ML_OUTPUT: Record = Record {
    name: "ml_output",
    doc: "What an ML function returns.",
    fields: &[
        req("columns", Shape::List(&Shape::Record(&ML_COLUMN), usize::MAX), "Columns."),
        opt("description", TEXT, "What it is."),
    ],
};
static ML_COLUMN: Record = Record {
    name: "ml_column",
    doc: "A column that an ML function returns.",
    fields: &[
        req("name", REQUIRED_TEXT, "Name."),
        opt("type", REQUIRED_TEXT, "Flink SQL type; STRING when absent."),
        opt("description", TEXT, "What it holds."),
    ],
};

static CONTRACT: Record = Record {
    name: "contract",
    doc: "Columns a model promises.",
    fields: &[
        def("enforced", Shape::Bool, "true", "A breach is an error, not a warning."),
        req("columns", Shape::List(&Shape::Record(&CONTRACT_COLUMN), usize::MAX), "The columns."),
    ],
};
static CONTRACT_COLUMN: Record = Record {
    name: "contract_column",
    doc: "A promised column.",
    fields: &[
        req("name", REQUIRED_TEXT, "Name."),
        opt("type", REQUIRED_TEXT, "Flink SQL type."),
        opt("nullable", Shape::Bool, "May be null."),
        opt("description", TEXT, "What it holds."),
    ],
};
