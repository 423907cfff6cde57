//! The replacement of the golden vectors.

use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::compiler::artifact::{KafkaStreamsJobArtifact, Kind};
use crate::ownership::model::ResourceId;

pub const OPERATION: Uuid = Uuid::from_u128(0x0000_0000_0000_4000_8000_0000_0000_0001);
pub const TOKEN: Uuid = Uuid::from_u128(0x0000_0000_0000_4000_8000_0000_0000_0002);
pub const RESUME: Uuid = Uuid::from_u128(0x0000_0000_0000_4000_8000_0000_0000_0003);
pub const STORE: Uuid = Uuid::from_u128(0x0000_0000_0000_4000_8000_0000_0000_00aa);
pub const BACKEND: &str = "kafka-streams-docker:v1:023421b6fbdc745444030981f2210f29a832542d22574c086e772aa824d0002c";

pub fn resource() -> ResourceId {
    ResourceId::new("payments", "prod", Kind::KafkaStreamsJob, "filtered").unwrap()
}

pub fn application() -> ApplicationId {
    ApplicationId::of("payments", "prod", "filtered").unwrap()
}

pub fn backend() -> BackendIdentity {
    BackendIdentity::parse(BACKEND).unwrap()
}

/// 64 times one hex digit.
pub fn docker_id(digit: char) -> DockerId {
    DockerId::parse(&digit.to_string().repeat(64)).unwrap()
}

pub fn image() -> ImageId {
    ImageId::parse(&format!("sha256:{}", "a".repeat(64))).unwrap()
}

/// The job that keeps amounts of at least so much.
pub fn job(least: u32) -> KafkaStreamsJobArtifact {
    let artifact = json!({
        "name": "filtered", "application_id": application(), "image": image(), "network": "bridge",
        "initial_offset": "earliest",
        "ownership": {"mode": "managed", "project": "payments", "type": "model", "name": "filtered"},
        "plan": {
            "version": 1, "input_topic": "orders.input", "output_topic": "orders.output",
            "schema": {"amount": {"nullable": false, "type": "BIGINT"}, "id": {"nullable": false, "type": "STRING"}},
            "projection": [{"as": "id", "column": "id"}, {"as": "amount", "column": "amount"}],
            "predicates": [{"column": "amount", "op": "ge", "value": least}],
        },
    });
    serde_json::from_value(artifact).unwrap()
}

pub fn progress(committed: u64, active_members: u64) -> GroupProgress {
    GroupProgress {
        cluster_id: ClusterId::parse("cluster-a").unwrap(),
        input_topic_id: TopicId::parse("AAAAAAAAAAAAAAAAAAAAAQ").unwrap(),
        output_topic_id: TopicId::parse("AAAAAAAAAAAAAAAAAAAAAg").unwrap(),
        group_exists: true,
        active_members,
        partitions: vec![PartitionProgress { partition: 0, low: 0, high: 100, committed }],
    }
}

pub fn evidence() -> Evidence {
    Evidence {
        version: 1,
        backend_identity: backend(),
        prior_container_id: docker_id('c'),
        prior_artifact: job(50),
        desired_artifact: job(75),
        image_id: image(),
        network_id: docker_id('e'),
        volume: Volume {
            name: format!("{}-state", application().as_str()),
            driver: "local".to_owned(),
            created_at: DockerTime::parse("2026-09-05T12:00:00Z").unwrap(),
            application_id: application(),
            backend_identity: backend(),
            token: TOKEN,
        },
        progress: progress(10, 1),
    }
}

/// The three boundaries between `started` and `completed`, in order.
pub fn checkpoints() -> [Checkpoint; 3] {
    let evidence = evidence();
    [
        Checkpoint::old_closed(&evidence, OPERATION, 0, 143, progress(20, 0)),
        Checkpoint::old_removed(&evidence, OPERATION, 0),
        Checkpoint::replacement_created(&evidence, OPERATION, 0, docker_id('d')),
    ]
}
