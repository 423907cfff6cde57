//! Golden digests, and every part of the evidence made wrong on its own.

use serde_json::{Value, json};

use super::testing::*;
use super::*;
use crate::compiler::canonical::{Checksum, to_canonical};
use crate::project::model::OwnershipMode;

fn digest<T: serde::Serialize>(value: &T) -> String {
    Checksum::of(value).unwrap().to_string()
}

#[test]
fn an_application_has_one_id_in_each_environment() {
    for (parts, id) in [
        (("payments", "prod", "filtered"), "streamt-602c1152c212a7af26b72a2fcdb003b9"),
        (("orders", "default", "eligible_orders"), "streamt-8d24d78f8373b9ba15a2927df0596540"),
        (("größe", "prod", "été"), "streamt-84834d2629a9c17cc5174c62dc7fdfb8"),
    ] {
        assert_eq!(ApplicationId::of(parts.0, parts.1, parts.2).unwrap().as_str(), id);
    }
    assert_eq!(ApplicationId::of("payments", " ", "filtered"), None);
}

#[test]
fn golden_digests_of_plans_artifacts_and_evidence() {
    let hash = |least| plan_hash(&job(least).plan).unwrap().to_string();
    assert_eq!(hash(50), "sha256:376aea2ccf476787c7ab8f95aeb725380f5e2f8b04384ac40cb40887f2dc1e6f");
    assert_eq!(hash(75), "sha256:6044457c728ded63d60a0d5661207fe555eac81b917471ba1b2579b4ee188d9b");
    assert_eq!(digest(&job(50)), "sha256:47102d49fc4e227793e0bfbf09baf542d97640b055f33420969db9759761a781");
    assert_eq!(to_canonical(&job(50)).unwrap().len(), 600);
    assert_eq!(digest(&job(75)), "sha256:c2eeef2ce58821ebeb917ff2c551436530741947ae998d9904c9e54e245982fb");
    let fingerprint = evidence().immutable_fingerprint().unwrap();
    assert_eq!(fingerprint.as_str(), "sha256:687d100d1d09a35eb91909599533bd2b80a4784d86297693c86c1b265cd518b7");
    let moved = Evidence { progress: progress(99, 1), ..evidence() };
    assert_eq!(moved.immutable_fingerprint().unwrap(), fingerprint, "offsets may move");
}

#[test]
fn evidence_and_checkpoints_read_back_as_they_were_written() {
    let value = serde_json::to_value(evidence()).unwrap();
    assert_eq!(serde_json::from_value::<Evidence>(value.clone()).unwrap(), evidence());
    for checkpoint in checkpoints() {
        let value = serde_json::to_value(&checkpoint).unwrap();
        assert_eq!(value.as_object().unwrap().len(), 9, "every key is written: {value}");
        assert_eq!(serde_json::from_value::<Checkpoint>(value).unwrap(), checkpoint);
    }
    let mut more = value;
    more["note"] = json!(1);
    assert!(serde_json::from_value::<Evidence>(more).is_err(), "an unknown key");
}

/// Sets one member of the evidence, as a file that somebody edited would hold it.
fn edited(path: &str, value: Value) -> Option<Evidence> {
    let mut whole = serde_json::to_value(evidence()).unwrap();
    *whole.pointer_mut(path).unwrap_or_else(|| panic!("{path}")) = value;
    serde_json::from_value(whole).ok()
}

/// Refused when it is read, or by its check.
fn is_refused(path: &str, value: &Value) -> bool {
    edited(path, value.clone()).is_none_or(|evidence| evidence.check(&resource()).is_err())
}

#[test]
fn evidence_that_contradicts_itself_is_refused() {
    assert_eq!(evidence().check(&resource()), Ok(()));
    let hex = |digit: &str| digit.repeat(64);
    for (path, value) in [
        ("/version", json!(2)),
        ("/backend_identity", json!(format!("kafka-streams-docker:v1:{}", hex("1")))),
        ("/backend_identity", json!("kafka-streams-docker:v2:1")),
        ("/prior_container_id", json!(hex("C"))),
        ("/prior_container_id", json!("c")),
        ("/image_id", json!(format!("sha256:{}", hex("b")))),
        ("/image_id", json!("latest")),
        ("/network_id", json!("bridge")),
        ("/prior_artifact/name", json!("other")),
        ("/prior_artifact/image", json!(format!("sha256:{}", hex("b")))),
        ("/prior_artifact/network", json!("host")),
        ("/prior_artifact/initial_offset", json!("latest")),
        ("/prior_artifact/application_id", json!(format!("streamt-{}", "0".repeat(32)))),
        ("/prior_artifact/ownership/mode", json!("adopted")),
        ("/prior_artifact/ownership/project", json!("another")),
        ("/prior_artifact/plan/input_topic", json!("elsewhere")),
        ("/prior_artifact/plan/schema/id/type", json!("BIGINT")),
        ("/prior_artifact/plan/projection", json!([])),
        ("/prior_artifact/plan/version", json!(2)),
        ("/prior_artifact/plan/predicates", json!([{"column": "amount", "op": "ge", "value": 75}])),
        ("/prior_artifact/plan/predicates", json!("none")),
        ("/desired_artifact/plan", json!({"version": 1})),
        ("/volume/name", json!("another-state")),
        ("/volume/driver", json!("nfs")),
        ("/volume/created_at", json!("yesterday")),
        ("/volume/created_at", json!("2026-09-05T12:00:00.1234567890Z")),
        ("/volume/application_id", json!(format!("streamt-{}", "0".repeat(32)))),
        ("/volume/backend_identity", json!(format!("kafka-streams-docker:v1:{}", hex("1")))),
        ("/volume/token", json!("00000000-0000-0000-0000-000000000000")),
        ("/volume/token", json!("00000000-0000-4000-8000-00000000000A")),
        ("/progress/group_exists", json!(false)),
        ("/progress/active_members", json!(-1)),
        ("/progress/active_members", json!(true)),
        ("/progress/cluster_id", json!("")),
        ("/progress/cluster_id", json!("a b")),
        ("/progress/input_topic_id", json!("AAAAAAAAAAAAAAAAAAAAAA")),
        ("/progress/input_topic_id", json!("AAAAAAAAAAAAAAAAAAAAAB")),
        ("/progress/partitions", json!([])),
        ("/progress/partitions/0/partition", json!(1)),
        ("/progress/partitions/0/low", json!(11)),
        ("/progress/partitions/0/committed", json!(101)),
        ("/progress/partitions/0/high", json!(1_u64 << 53)),
        ("/progress/partitions/0/high", json!(100.5)),
    ] {
        assert!(is_refused(path, &value), "{path} = {value}");
    }
    for good in ["2026-09-05T12:00:00.123456789Z", "2026-09-05T12:00:00.1Z"] {
        assert!(!is_refused("/volume/created_at", &json!(good)), "{good}");
    }
    let both = |change: &dyn Fn(&mut Evidence)| {
        let mut evidence = evidence();
        change(&mut evidence);
        evidence.check(&resource())
    };
    let external = both(&|e| {
        e.prior_artifact.ownership.mode = OwnershipMode::External;
        e.desired_artifact.ownership.mode = OwnershipMode::External;
    });
    assert!(external.is_err());
    let resized = both(&|e| {
        for artifact in [&mut e.prior_artifact, &mut e.desired_artifact] {
            artifact.plan["schema"]["filler"] = json!("x".repeat(70_000));
        }
    });
    assert_eq!(resized, Err("the artifact of a runner is larger than its bound"));
    let named = |project: &str, model: &str| {
        let other = crate::ownership::model::ResourceId::new(project, "prod", resource().kind(), model).unwrap();
        evidence().check(&other)
    };
    assert!(named("another", "filtered").is_err() && named("payments", "another").is_err());
    let thousand: Vec<PartitionProgress> =
        (0..1025).map(|partition| PartitionProgress { partition, low: 0, high: 0, committed: 0 }).collect();
    assert!(both(&|e| e.progress.partitions = thousand[..1024].to_vec()).is_ok());
    assert!(both(&|e| e.progress.partitions = thousand.clone()).is_err());
}

#[test]
fn progress_is_kept_only_where_nothing_went_back() {
    let then = progress(10, 1);
    let moved = |change: &dyn Fn(&mut GroupProgress)| {
        let mut now = then.clone();
        change(&mut now);
        now.is_at_least(&then)
    };
    assert!(moved(&|_| {}) && moved(&|now| now.partitions[0].committed = 11) && moved(&|now| now.active_members = 0));
    assert!(!moved(&|now| now.partitions[0].committed = 9));
    assert!(!moved(&|now| now.partitions[0].high = 99));
    assert!(!moved(&|now| now.partitions.clear()));
    assert!(!moved(&|now| now.cluster_id = ClusterId::parse("cluster-b").unwrap()));
    assert!(!moved(&|now| now.output_topic_id = now.input_topic_id.clone()));
}

#[test]
fn a_checkpoint_proves_its_phase_and_nothing_else() {
    let good = checkpoints();
    let checked = |checkpoint: &Checkpoint| checkpoint.check(&evidence(), OPERATION, 0);
    for (checkpoint, phase) in good.iter().zip(Phase::ALL) {
        assert_eq!((checked(checkpoint), checkpoint.phase), (Ok(()), phase));
        assert!(checkpoint.check(&evidence(), TOKEN, 0).is_err());
        assert!(checkpoint.check(&evidence(), OPERATION, 1).is_err());
        let other = Checkpoint { prior_container_id: docker_id('f'), ..checkpoint.clone() };
        assert!(checked(&other).is_err());
        assert!(checked(&Checkpoint { version: 2, ..checkpoint.clone() }).is_err());
        for other in Phase::ALL.into_iter().filter(|other| *other != phase) {
            assert!(checked(&Checkpoint { phase: other, ..checkpoint.clone() }).is_err(), "{phase:?} as {other:?}");
        }
    }
    let [closed, _, created] = good;
    let by_itself = Checkpoint { exit_code: Some(0), ..closed.clone() };
    assert_eq!(checked(&by_itself), Ok(()));
    for bad in [
        Checkpoint { exit_code: Some(137), ..closed.clone() },
        Checkpoint { exit_code: Some(1), ..closed.clone() },
        Checkpoint { progress: Some(progress(20, 1)), ..closed.clone() },
        Checkpoint { progress: Some(progress(9, 0)), ..closed.clone() },
        Checkpoint { closed_plan_hash: plan_hash(&job(75).plan), ..closed.clone() },
        Checkpoint { replacement_container_id: Some(docker_id('c')), ..created },
    ] {
        assert!(checked(&bad).is_err(), "{bad:?}");
    }
}
