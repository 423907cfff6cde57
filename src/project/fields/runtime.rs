//! `runtime`: the services a project is deployed to. The only section whose strings may hold `${NAME}`.

use super::super::shape::*;

const OPTIONAL_TEXT: Shape = Shape::Text(STRING);

const TLS: [Field; 4] = [
    opt("ssl_ca_location", OPTIONAL_TEXT, "PEM file of the certificate authorities to trust; relative to the project."),
    opt("ssl_certificate_location", OPTIONAL_TEXT, "PEM file of the client's certificate chain."),
    opt("ssl_key_location", OPTIONAL_TEXT, "PEM file of the client's private key."),
    opt("ssl_key_password", OPTIONAL_TEXT, "Password of the private key.").secret(),
];
const USERNAME: Field = opt("username", OPTIONAL_TEXT, "User name of HTTP basic authentication.");
const PASSWORD: Field = opt("password", OPTIONAL_TEXT, "Password of HTTP basic authentication.").secret();

pub static RUNTIME: Record = Record {
    name: "runtime",
    doc: "The services to deploy to. String values may hold `${NAME}` and `${NAME:-default}`.",
    fields: &[
        opt("kafka", Shape::Record(&KAFKA), "The Kafka cluster."),
        opt("schema_registry", Shape::Record(&SCHEMA_REGISTRY), "The schema registry (Confluent API)."),
        opt("flink", Shape::Record(&FLINK), "Flink clusters."),
        opt("connect", Shape::Record(&CONNECT), "Kafka Connect clusters."),
        opt("conduktor", Shape::Record(&CONDUKTOR), "Conduktor Gateway and Console."),
        opt("kafka_streams", Shape::Record(&KAFKA_STREAMS), "The Kafka Streams runner."),
    ],
};

static KAFKA: Record = Record {
    name: "kafka",
    doc: "The Kafka cluster.",
    fields: &[
        req("bootstrap_servers", Shape::Text(NON_BLANK), "Brokers as `host:port`, separated by commas."),
        opt("bootstrap_servers_internal", OPTIONAL_TEXT, "Brokers as Flink reaches them; used in generated DDL."),
        opt(
            "security_protocol",
            Shape::Choice(&["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"], Fold::Upper),
            "Transport and authentication.",
        ),
        opt(
            "sasl_mechanism",
            Shape::Choice(&["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "AWS_MSK_IAM"], Fold::Upper),
            "SASL mechanism.",
        ),
        opt("sasl_username", OPTIONAL_TEXT, "User of PLAIN and SCRAM."),
        opt("sasl_password", OPTIONAL_TEXT, "Password of PLAIN and SCRAM.").secret(),
        opt("sasl_oauth_token_url", Shape::Text(HTTPS_URL), "Token endpoint of OAUTHBEARER (OIDC client credentials)."),
        opt("sasl_oauth_client_id", OPTIONAL_TEXT, "Client id of OAUTHBEARER."),
        opt("sasl_oauth_client_secret", OPTIONAL_TEXT, "Client secret of OAUTHBEARER.").secret(),
        opt("sasl_oauth_scope", OPTIONAL_TEXT, "Scope of OAUTHBEARER."),
        opt("aws_region", OPTIONAL_TEXT, "Region of AWS_MSK_IAM."),
        TLS[0],
        TLS[1],
        TLS[2],
        TLS[3],
    ],
};

static SCHEMA_REGISTRY: Record = Record {
    name: "schema_registry",
    doc: "The schema registry (Confluent API).",
    fields: &[
        req("url", Shape::Text(URL), "Base URL."),
        USERNAME,
        PASSWORD,
        opt("token", OPTIONAL_TEXT, "Bearer token; excludes `username` and `password`.").secret(),
        TLS[0],
        TLS[1],
        TLS[2],
        TLS[3],
    ],
};

static FLINK: Record = Record {
    name: "flink",
    doc: "Flink clusters.",
    fields: &[
        opt("default", Shape::Text(NAME), "Cluster of jobs that name none."),
        def("clusters", Shape::Map { key: NAME, value: &Shape::Tagged(&FLINK_CLUSTER) }, "{}", "Clusters by alias."),
    ],
};

static FLINK_CLUSTER: Tagged = Tagged {
    doc: "One Flink cluster.",
    tag: "type",
    default: Some("rest"),
    variants: &[("rest", &FLINK_REST), ("confluent", &FLINK_CONFLUENT)],
    refused: &[
        ("docker", "'docker' is not a supported Flink target; use 'rest' with the cluster's REST and SQL Gateway URLs"),
        (
            "kubernetes",
            "'kubernetes' is not a supported Flink target; use 'rest' with the cluster's REST and SQL Gateway URLs",
        ),
    ],
};

const TIMEOUT: Field = def("timeout", int(0, 86_400), "30", "Seconds for one request.");
const RETRIES: Field = def("retries", int(0, 100), "3", "Retries of requests that change nothing.");
const STATEMENT_TIMEOUT: Field = def("statement_timeout", int(0, 86_400), "60", "Seconds for one SQL statement.");

static FLINK_REST: Record = Record {
    name: "flink_rest",
    doc: "A Flink session cluster with its SQL Gateway.",
    fields: &[
        opt("rest_url", Shape::Text(URL), "JobManager REST API."),
        opt("sql_gateway_url", Shape::Text(URL), "SQL Gateway."),
        opt("version", OPTIONAL_TEXT, "Flink version; quote it."),
        opt("environment", OPTIONAL_TEXT, "A label."),
        def(
            "kafka_connector",
            Shape::Choice(&["sql", "plain"], Fold::Exact),
            "\"sql\"",
            "Which Kafka connector jar the cluster has.",
        ),
        opt("api_key", OPTIONAL_TEXT, "Bearer token.").secret(),
        USERNAME,
        PASSWORD,
        TLS[0],
        TLS[1],
        TLS[2],
        TLS[3],
        TIMEOUT,
        RETRIES,
        STATEMENT_TIMEOUT,
    ],
};

static FLINK_CONFLUENT: Record = Record {
    name: "flink_confluent",
    doc: "Confluent Cloud for Apache Flink.",
    fields: &[
        opt("rest_url", Shape::Text(URL), "Statements REST API."),
        opt("sql_gateway_url", Shape::Text(URL), "When set, the cluster is used like `rest`."),
        opt("organization_id", OPTIONAL_TEXT, "Organization."),
        opt("environment_id", OPTIONAL_TEXT, "Environment."),
        opt("compute_pool_id", OPTIONAL_TEXT, "Compute pool."),
        opt("catalog", OPTIONAL_TEXT, "Catalog."),
        opt("database", OPTIONAL_TEXT, "Database."),
        opt("api_key", OPTIONAL_TEXT, "API key.").secret(),
        opt("api_secret", OPTIONAL_TEXT, "API secret.").secret(),
        opt("principal", OPTIONAL_TEXT, "Principal that runs statements."),
        TIMEOUT,
        RETRIES,
        STATEMENT_TIMEOUT,
    ],
};

static CONNECT: Record = Record {
    name: "connect",
    doc: "Kafka Connect clusters.",
    fields: &[
        opt("default", Shape::Text(NAME), "The cluster that connectors go to."),
        def("clusters", Shape::Map { key: NAME, value: &Shape::Record(&CONNECT_CLUSTER) }, "{}", "Clusters by alias."),
    ],
};

static CONNECT_CLUSTER: Record = Record {
    name: "connect_cluster",
    doc: "One Kafka Connect cluster.",
    fields: &[req("rest_url", Shape::Text(URL), "REST API."), USERNAME, PASSWORD, TLS[0], TLS[1], TLS[2], TLS[3]],
};

static CONDUKTOR: Record = Record {
    name: "conduktor",
    doc: "Conduktor Gateway and Console.",
    fields: &[
        opt("gateway", Shape::Record(&GATEWAY), "The Gateway that serves virtual topics."),
        opt("console", Shape::Record(&CONSOLE), "Accepted, not used."),
    ],
};

static GATEWAY: Record = Record {
    name: "gateway",
    doc: "Conduktor Gateway.",
    fields: &[
        opt("admin_url", Shape::Text(URL), "Admin API; needed for every call."),
        opt("proxy_bootstrap", OPTIONAL_TEXT, "Kafka address of the proxy."),
        USERNAME,
        PASSWORD,
        opt("virtual_cluster", OPTIONAL_TEXT, "Virtual cluster."),
        TLS[0],
        TLS[1],
        TLS[2],
        TLS[3],
    ],
};

static CONSOLE: Record = Record {
    name: "console",
    doc: "Conduktor Console; accepted, not used.",
    fields: &[req("url", Shape::Text(URL), "Base URL."), opt("api_key", OPTIONAL_TEXT, "API key.").secret()],
};

static KAFKA_STREAMS: Record = Record {
    name: "kafka_streams",
    doc: "The Kafka Streams runner.",
    fields: &[
        def("backend", Shape::Choice(&["docker"], Fold::Exact), "\"docker\"", "Where runners run."),
        req("image", Shape::Text(IMAGE), "Runner image, pinned by digest."),
        def("network", Shape::Text(NETWORK), "\"bridge\"", "Docker network."),
        def(
            "initial_offset",
            Shape::Choice(&["earliest", "latest"], Fold::Exact),
            "\"earliest\"",
            "Where a new runner begins.",
        ),
        def("startup_timeout", int(1, 300), "60", "Seconds until a runner must be running."),
        def("stop_timeout", int(1, 300), "30", "Seconds until a runner must have stopped."),
    ],
};
