//! Settings of a project as a whole: where state is kept, defaults, rules, removals, connections, environment files.

use super::super::shape::*;
use super::RUNTIME;

const TEXT: Shape = Shape::Text(STRING);
const NAMES: Shape = Shape::List(&TEXT, usize::MAX);

pub static DEPLOYMENT_STATE: Tagged = Tagged {
    doc: "Where ownership is recorded.",
    tag: "backend",
    default: None,
    variants: &[("local", &LOCAL_STATE), ("postgres", &POSTGRES_STATE)],
    refused: &[],
};

static LOCAL_STATE: Record =
    Record { name: "deployment_state_local", doc: "Files in `.streamt/`, for one machine.", fields: &[] };

static POSTGRES_STATE: Record = Record {
    name: "deployment_state_postgres",
    doc: "A PostgreSQL database shared by all who deploy. Holds names of variables, never values.",
    fields: &[
        req("namespace", Shape::Text(NAMESPACE), "Separates projects that share a database."),
        def("lock_timeout_seconds", int(1, 300), "30", "How long to wait for another operation to end."),
        req("postgres", Shape::Record(&POSTGRES), "Variables that hold the connection."),
    ],
};

static POSTGRES: Record = Record {
    name: "deployment_state_postgres_variables",
    doc: "Variables that hold the connection.",
    fields: &[
        req("dsn_env", Shape::Text(VARIABLE), "Variable with the connection string."),
        opt(
            "writer_dsn_env",
            Shape::Text(VARIABLE),
            "Variable with the writer's connection string; another one than `dsn_env`.",
        ),
        opt("writer_role_env", Shape::Text(VARIABLE), "Variable with the writer's role."),
        def("schema", Shape::Text(SQL_SCHEMA), "\"streamt\"", "Schema of the tables."),
    ],
};

pub static DEFAULTS: Record = Record {
    name: "defaults",
    doc: "Values for what declarations leave open.",
    fields: &[
        opt("topic", Shape::Record(&TOPIC_DEFAULTS), "For every topic."),
        opt("models", Shape::Record(&MODEL_DEFAULTS), "For models; beats `topic`."),
        opt("tests", Shape::Record(&TEST_DEFAULTS), "For tests."),
    ],
};

static TOPIC_DEFAULTS: Record = Record {
    name: "topic_defaults",
    doc: "Size of topics.",
    fields: &[
        opt("partitions", int(1, i32::MAX as i64), "Partitions; 1 when nothing says otherwise."),
        opt("replication_factor", int(1, i16::MAX as i64), "Replicas; 1 when nothing says otherwise."),
    ],
};

static MODEL_DEFAULTS: Record = Record {
    name: "model_defaults",
    doc: "For models.",
    fields: &[
        opt("topic", Shape::Record(&TOPIC_DEFAULTS), "For output topics."),
        opt("cluster", Shape::Text(NAME), "Flink cluster."),
    ],
};

static TEST_DEFAULTS: Record = Record {
    name: "test_defaults",
    doc: "For tests.",
    fields: &[opt("flink_cluster", Shape::Text(NAME), "Flink cluster of continuous tests.")],
};

pub static RULES: Record = Record {
    name: "rules",
    doc: "Governance rules that validation enforces.",
    fields: &[
        opt("topics", Shape::Record(&TOPIC_RULES), "For the topics that models write."),
        opt("models", Shape::Record(&MODEL_RULES), "For models."),
        opt("sources", Shape::Record(&SOURCE_RULES), "For sources."),
        opt("security", Shape::Record(&SECURITY_RULES), "For classified columns."),
        opt("data_residency", Shape::Record(&RESIDENCY_RULES), "For regions."),
    ],
};

static TOPIC_RULES: Record = Record {
    name: "topic_rules",
    doc: "For the topics that models write.",
    fields: &[
        opt("min_partitions", ANY_INT, "Fewest partitions."),
        opt("max_partitions", ANY_INT, "Most partitions."),
        opt("min_replication_factor", ANY_INT, "Fewest replicas."),
        opt("max_replication_factor", ANY_INT, "Most replicas."),
        opt("max_retention_ms", ANY_INT, "Longest `retention.ms`; -1 passes."),
        def("required_config", NAMES, "[]", "Configuration keys that must be set."),
        opt(
            "naming_pattern",
            TEXT,
            "Regular expression, anchored at the start, without look-around and back references.",
        ),
        def("forbidden_prefixes", NAMES, "[]", "Beginnings no topic name may have."),
        def("forbidden_suffixes", NAMES, "[]", "Endings no topic name may have."),
    ],
};

static MODEL_RULES: Record = Record {
    name: "model_rules",
    doc: "For models.",
    fields: &[
        def("require_description", Shape::Bool, "false", "Every model has a description."),
        def("require_owner", Shape::Bool, "false", "Every model has an owner."),
        def("require_tests", Shape::Bool, "false", "Every model has a test."),
        def("valid_owners", NAMES, "[]", "Owners that exist; empty: any."),
        opt("max_dependencies", at_least(0), "Most inputs of one model."),
    ],
};

static SOURCE_RULES: Record = Record {
    name: "source_rules",
    doc: "For sources.",
    fields: &[
        def("require_schema", Shape::Bool, "false", "Every source has a schema."),
        def("require_freshness", Shape::Bool, "false", "Every source has a freshness block."),
    ],
};

static SECURITY_RULES: Record = Record {
    name: "security_rules",
    doc: "For classified columns.",
    fields: &[
        def("require_classification", Shape::Bool, "false", "Every column of a source is classified."),
        def(
            "sensitive_columns_require_masking",
            Shape::Bool,
            "false",
            "Sensitive columns are masked wherever they are output.",
        ),
    ],
};

static RESIDENCY_RULES: Record = Record {
    name: "data_residency_rules",
    doc: "For regions.",
    fields: &[def("allowed_regions", NAMES, "[]", "Regions that models and sources may name; empty: any.")],
};

pub static LIFECYCLE: Record = Record {
    name: "lifecycle",
    doc: "Explicit removals. Taking a declaration out of the project never deletes anything.",
    fields: &[
        def("connector_removals", Shape::List(&Shape::Record(&CONNECTOR_REMOVAL), 256), "[]", "Connectors to delete."),
        def(
            "gateway_rule_removals",
            Shape::List(&Shape::Record(&GATEWAY_RULE_REMOVAL), 256),
            "[]",
            "Gateway rules to delete.",
        ),
    ],
};

static CONNECTOR_REMOVAL: Record = Record {
    name: "connector_removal",
    doc: "One connector to delete.",
    fields: &[
        req("logical_owner", Shape::Text(OWNER), "The model that owned it."),
        req("name", Shape::Text(CONNECTOR), "Name of the connector on its cluster."),
        req("cluster", Shape::Text(CLUSTER), "Alias of its cluster; never inferred."),
    ],
};

static GATEWAY_RULE_REMOVAL: Record = Record {
    name: "gateway_rule_removal",
    doc: "One Gateway rule to delete.",
    fields: &[
        req("logical_owner", Shape::Text(RULE_OWNER), "The model that owned it."),
        req("prior_artifact", Shape::Record(&PRIOR_ARTIFACT), "The rule as an older manifest holds it."),
    ],
};

static PRIOR_ARTIFACT: Record = Record {
    name: "gateway_prior_artifact",
    doc: "The rule as an older manifest holds it.",
    fields: &[
        req("name", Shape::Text(GATEWAY_NAME), "Name of the rule."),
        req("virtualTopic", Shape::Text(GATEWAY_NAME), "Its alias."),
        req("physicalTopic", Shape::Text(GATEWAY_NAME), "The topic behind it."),
        req(
            "interceptors",
            Shape::List(&Shape::Tagged(&INTERCEPTOR), usize::MAX),
            "Its interceptors, in order; may be empty.",
        ),
    ],
};

static INTERCEPTOR: Tagged = Tagged {
    doc: "One interceptor of a rule.",
    tag: "type",
    default: None,
    variants: &[("filter", &FILTER), ("mask", &MASK)],
    refused: &[],
};

static FILTER: Record = Record {
    name: "gateway_filter",
    doc: "A filter.",
    fields: &[req("config", Shape::Record(&FILTER_CONFIG), "Its configuration.")],
};

static FILTER_CONFIG: Record = Record {
    name: "gateway_filter_config",
    doc: "Configuration of a filter.",
    fields: &[req("where", Shape::Text(NON_BLANK), "Its condition.")],
};

static MASK: Record = Record {
    name: "gateway_mask",
    doc: "A mask.",
    fields: &[req("config", Shape::Record(&MASK_CONFIG), "Its configuration.")],
};

static MASK_CONFIG: Record = Record {
    name: "gateway_mask_config",
    doc: "Configuration of a mask.",
    fields: &[
        req("field", Shape::Text(NON_BLANK), "The field."),
        req("method", Shape::Text(NON_BLANK), "How it is masked."),
        def("forRoles", Shape::List(&Shape::Text(NON_BLANK), usize::MAX), "[]", "Roles it applies to, each once."),
    ],
};

pub static CONNECTION: Record = Record {
    name: "connection",
    doc: "Configuration shared by sinks.",
    fields: &[
        req("type", TEXT, "A label."),
        def(
            "config",
            Shape::Map { key: STRING, value: &Shape::Scalar(Scalars::WithFloats) },
            "{}",
            "Connector configuration.",
        ),
    ],
};

pub static ENVIRONMENT_FILE: Record = Record {
    name: "environment_file",
    doc: "A file of the directory `environments`; its stem is the environment's name.",
    fields: &[
        def("environment", Shape::Record(&ENVIRONMENT), "{}", "Name, description, protection."),
        req("runtime", Shape::Record(&RUNTIME), "The services to deploy to."),
        def("safety", Shape::Record(&SAFETY), "{}", "What deploying to it requires."),
        def("deployment_state", Shape::Tagged(&DEPLOYMENT_STATE), "null", "Replaces the project's block whole."),
    ],
};

static ENVIRONMENT: Record = Record {
    name: "environment",
    doc: "Name, description, protection.",
    fields: &[
        opt("name", TEXT, "The file's stem; anything else is refused."),
        def("description", TEXT, "\"\"", "What the environment is for."),
        def("protected", Shape::Bool, "false", "Applying requires a reviewed plan and a confirmation."),
    ],
};

static SAFETY: Record = Record {
    name: "safety",
    doc: "What deploying to an environment requires.",
    fields: &[
        opt("confirm_apply", Shape::Bool, "Applying requires a confirmation; as `protected` when absent."),
        def("allow_destructive", Shape::Bool, "false", "Destructive changes need no `--force`."),
        def("forbid_deletion", Shape::Bool, "false", "Nothing is deleted, whatever else allows it."),
        def("require_reviewed_plan", Shape::Bool, "false", "Applying requires a reviewed plan."),
        def("require_remote_state", Shape::Bool, "false", "Applying requires a shared state store."),
        opt("reviewed_plan_max_age_minutes", int(1, 525_600), "Older plans are refused; absent: no limit."),
    ],
};
