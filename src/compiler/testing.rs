//! Declarations for tests, built by hand: the smallest of each, to be changed by the test.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Map;

use crate::compiler::{Compiled, compile};
use crate::project::model::*;
use crate::project::origin::Origin;

pub fn project(name: &str) -> Project {
    Project {
        root: "/project".into(),
        name: name.into(),
        version: None,
        description: None,
        environment: Environment::single(),
        runtime: Runtime::default(),
        runtime_document: Default::default(),
        deployment_state: DeploymentState::Local { lock_timeout: 30 },
        state_variables: Default::default(),
        defaults: Defaults::default(),
        rules: Rules::default(),
        connector_removals: Vec::new(),
        gateway_rule_removals: Vec::new(),
        connections: BTreeMap::new(),
        sources: Vec::new(),
        models: Vec::new(),
        tests: Vec::new(),
        exposures: Vec::new(),
        udfs: Vec::new(),
        macros: BTreeMap::new(),
    }
}

pub fn source(name: &str, topic: &str) -> Source {
    Source {
        name: name.into(),
        topic: topic.into(),
        description: None,
        owner: None,
        region: None,
        cluster: None,
        tags: Vec::new(),
        ownership: OwnershipBlock { mode: OwnershipMode::External },
        schema: None,
        columns: Vec::new(),
        freshness: None,
        event_time: None,
        origin: Origin::default(),
    }
}

pub fn model(name: &str) -> Model {
    Model {
        name: name.into(),
        description: None,
        owner: None,
        group: None,
        region: None,
        key: None,
        sql: None,
        macro_name: None,
        params: BTreeMap::new(),
        from: None,
        columns: Vec::new(),
        primary_key: None,
        ownership: OwnershipBlock { mode: OwnershipMode::Managed },
        tags: Vec::new(),
        materialized: None,
        executor: None,
        topic: None,
        flink: None,
        flink_cluster: None,
        connect_cluster: None,
        gateway: None,
        sink: None,
        schema: None,
        security: None,
        ml_outputs: None,
        access: Access::Private,
        version: None,
        contract: None,
        origin: Origin::default(),
    }
}

pub fn sql_model(name: &str, sql: &str) -> Model {
    Model { sql: Some(sql.into()), ..model(name) }
}

pub fn sink(name: &str, from: &[Reference], connector: &str) -> Model {
    let sink = SinkBlock { connector: connector.into(), connection: None, config: Map::new() };
    Model { from: Some(from.to_vec()), sink: Some(sink), ..model(name) }
}

pub fn topic(name: &str) -> TopicBlock {
    TopicBlock { name: Some(name.into()), partitions: None, replication_factor: None, config: Map::new() }
}

pub fn column(name: &str, data_type: &str) -> Column {
    Column {
        name: name.into(),
        data_type: Some(data_type.into()),
        classification: None,
        description: None,
        required: false,
        proctime: false,
        metadata: None,
        expression: None,
    }
}

pub fn schema() -> SchemaBlock {
    SchemaBlock {
        registry: None,
        subject: None,
        version: SchemaVersion::Latest,
        format: None,
        definition: None,
        fields: None,
        compatibility: None,
        references: Vec::new(),
        timestamp_format: None,
    }
}

pub fn test(name: &str, target: &str, test_type: TestType) -> Test {
    Test {
        name: name.into(),
        model: target.into(),
        test_type,
        assertions: Vec::new(),
        sample_size: None,
        flink_cluster: None,
        on_failure: None,
        origin: Origin::default(),
    }
}

pub fn exposure(name: &str) -> Exposure {
    Exposure {
        name: name.into(),
        exposure_type: ExposureType::Application,
        role: None,
        description: None,
        owner: None,
        owners: Vec::new(),
        url: None,
        repo: None,
        language: None,
        tool: None,
        consumer_group: None,
        schedule: None,
        produces: Vec::new(),
        consumes: Vec::new(),
        depends_on: Vec::new(),
        columns: Vec::new(),
        sla: None,
        contracts: None,
        access: None,
        freshness: None,
        data_requirements: None,
        origin: Origin::default(),
    }
}

pub fn connect_runtime() -> ConnectRuntime {
    let cluster = ConnectCluster {
        rest_url: "http://connect.example.test".into(),
        auth: BasicAuth::default(),
        tls: Tls::default(),
    };
    ConnectRuntime { default: Some("main".into()), clusters: BTreeMap::from([("main".into(), cluster)]) }
}

pub fn gateway_runtime() -> GatewayRuntime {
    GatewayRuntime {
        admin_url: Some("http://gateway.example.test:8888".into()),
        proxy_bootstrap: None,
        auth: BasicAuth::default(),
        virtual_cluster: None,
        tls: Tls::default(),
    }
}

pub fn kafka_runtime() -> KafkaRuntime {
    KafkaRuntime::plain("localhost:9092")
}

pub fn flink_runtime() -> FlinkRuntime {
    FlinkRuntime { default: None, clusters: BTreeMap::new() }
}

pub fn flink_cluster() -> FlinkCluster {
    FlinkCluster {
        cluster_type: FlinkClusterType::Rest,
        rest_url: Some("http://flink.example.test:8081".into()),
        sql_gateway_url: Some("http://flink.example.test:8083".into()),
        version: None,
        environment: None,
        kafka_connector: KafkaConnectorFlavour::Sql,
        api_key: None,
        api_secret: None,
        auth: BasicAuth::default(),
        tls: Tls::default(),
        confluent: BTreeMap::new(),
        timeout: 30,
        retries: 0,
        statement_timeout: 60,
    }
}

pub fn source_ref(name: &str) -> Reference {
    Reference::Source(name.into())
}

pub fn model_ref(name: &str) -> Reference {
    Reference::Model(name.into())
}

/// Compiles or shows why not.
#[track_caller]
pub fn compiled(project: Project) -> Compiled {
    match compile(Arc::new(project)) {
        Ok(compiled) => compiled,
        Err(findings) => panic!("{findings:?}"),
    }
}

/// The errors as `CODE message`.
#[track_caller]
pub fn refused(project: Project) -> Vec<String> {
    match compile(Arc::new(project)) {
        Ok(_) => panic!("it compiles"),
        Err(findings) => {
            findings.errors().map(|finding| format!("{} {}", finding.code.number(), finding.message)).collect()
        }
    }
}
