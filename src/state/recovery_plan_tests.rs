//! The golden file, what survives writing and reading, and that any change is refused.

use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use super::*;
use crate::compiler::artifact::Kind;
use crate::state::control::Event;
use crate::state::model::BackendKind;
use crate::state::step::{control_revision, state_revision};
use crate::state::store::{ControlObservation, StateObservation};
use crate::state::testing::{self, actions, address, empty_state_checksum, golden_intent, id, owning, started};

const RECOVERY: Uuid = Uuid::from_u128(0x0a7a_c3f4_7d52_4d26_8a9b_2f6a_4c1d_9e10);

fn blocked(start: bool) -> Snapshot {
    let address = address("platform");
    let intent = golden_intent(actions(&[(Verb::Create, Kind::Topic, "orders")]));
    let mut control = Control::clear(&address).apply(Event::Intent(intent.clone())).unwrap().0;
    if start {
        control = control.apply(Event::Progress(started(&intent, 0))).unwrap().0;
    }
    let store = StoreIdentity {
        backend: BackendKind::Postgres,
        store_id: Uuid::parse_str("2b1e8a5e-9e1a-4e49-9b39-3b9b0f0b7c11").unwrap(),
    };
    let checksum = empty_state_checksum();
    Snapshot {
        state: StateObservation {
            store,
            address,
            state: Arc::new(OwnershipState::empty("payments", "prod")),
            revision: state_revision(&checksum),
            checksum,
        },
        control: ControlObservation { revision: control_revision(&control), control },
    }
}

fn observed() -> RecoveryPlan {
    let snapshot = blocked(true);
    let next = owning(&snapshot, "orders");
    let targets = testing::recovery_intent(&snapshot, Resolution::Observed, AcceptedAs::Candidate, Some(&next)).targets;
    let basis = Basis {
        environment_fingerprint: Checksum::of_bytes(b"environment"),
        manifest_checksum: Checksum::of_bytes(b"manifest"),
    };
    let proof = Proof { targets, candidate: Some(next) };
    RecoveryPlan::of(&snapshot, Resolution::Observed, RECOVERY, Some((proof, basis))).unwrap()
}

/// REC-024: G26
#[test]
fn golden_digest_of_an_abandoned_operation() {
    let plan = RecoveryPlan::of(&blocked(false), Resolution::AbandonedBeforeMutation, RECOVERY, None).unwrap();
    let plan = RecoveryPlan { streamt_version: "0.2.0".into(), ..plan };
    assert_eq!(
        Checksum::of(&plan.document().unwrap()).unwrap().as_str(),
        "sha256:b14efd4bc674d15a3a9d138a8945d482a27bf06508f568f84625bec524d0a0fc"
    );
}

/// REC-013
#[test]
fn a_started_operation_cannot_be_planned_as_abandoned() {
    let refused = RecoveryPlan::of(&blocked(true), Resolution::AbandonedBeforeMutation, RECOVERY, None).unwrap_err();
    assert_eq!(refused.code, Code::E408PlanFileInvalid);
}

/// REC-022, REC-023, SEC-010, SEC-011
#[test]
fn a_file_is_private_new_and_reached_by_no_link() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("r.json");
    let plan = observed();
    write(&path, &plan).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
    assert_eq!(read(&path).unwrap(), plan);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "no stage is left");
    let link = directory.path().join("link.json");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert_eq!(read(&link).unwrap_err().code, Code::E408PlanFileInvalid);
    let dangling = directory.path().join("dangling.json");
    std::os::unix::fs::symlink(directory.path().join("nowhere"), &dangling).unwrap();
    for taken in [&path, &link, &dangling, &directory.path().to_path_buf()] {
        assert_eq!(write(taken, &plan).unwrap_err().code, Code::E408PlanFileInvalid, "{taken:?}");
    }
    assert_eq!(read(&path).unwrap(), plan);
    assert!(!directory.path().join("nowhere").exists());
}

/// REC-026: every byte of the file is covered.
#[test]
fn any_change_or_truncation_is_refused() {
    let whole = observed().to_bytes().unwrap();
    for at in 0..whole.len() - 2 {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        if serde_json::from_slice::<Value>(&changed).ok() != serde_json::from_slice::<Value>(&whole).ok() {
            assert!(RecoveryPlan::parse(&changed).is_err(), "byte {at}");
        }
        assert!(RecoveryPlan::parse(&whole[..at]).is_err(), "cut at {at}");
    }
}

/// REC-024, REC-025, REC-030, REC-069: a file that was changed together with its checksum still has to make sense.
#[test]
fn a_file_whose_parts_contradict_each_other_is_refused() {
    let whole: Value = serde_json::from_slice(&observed().to_bytes().unwrap()).unwrap();
    let refused = |why: &str, change: &dyn Fn(&mut Value)| {
        let mut file = whole.clone();
        change(&mut file);
        file.as_object_mut().unwrap().shift_remove("evidence_checksum");
        let sum = Checksum::of(&file).unwrap();
        file["evidence_checksum"] = json!(sum);
        let error = RecoveryPlan::parse(&serde_json::to_vec(&file).unwrap());
        assert_eq!(error.map(|_| ()).unwrap_err().code, Code::E408PlanFileInvalid, "{why}");
    };
    let orders = id(Kind::Topic, "orders").to_string();
    refused("kind", &|f| f["kind"] = json!("streamt.reviewed-plan"));
    refused("old format", &|f| f["format_version"] = json!(2));
    refused("first format", &|f| f["format_version"] = json!(1));
    refused("no format", &|f| f["format_version"] = json!(0));
    refused("next format", &|f| f["format_version"] = json!(4));
    refused("other operation", &|f| f["blocked_operation_id"] = json!(RECOVERY));
    refused("same ids", &|f| f["recovery_operation_id"] = f["blocked_operation_id"].clone());
    refused("hyphen", &|f| f["resolution"] = json!("rolled-back"));
    refused("other resolution", &|f| f["resolution"] = json!("rolled_back"));
    refused("abandoned", &|f| f["resolution"] = json!("abandoned_before_mutation"));
    refused("no targets", &|f| f["targets"] = json!([]));
    refused("form of a target", &|f| f["targets"][0]["accepted_as"] = json!("prior"));
    refused("presence of a target", &|f| f["targets"][0]["presence"] = json!("absent"));
    refused("no candidate", &|f| f["candidate_state"] = Value::Null);
    refused("serial", &|f| f["candidate_state"]["serial"] = json!(2));
    refused("stranger", &|f| {
        let record = f["candidate_state"]["resources"][&orders].clone();
        f["candidate_state"]["resources"]["streamt://payments/prod/topic/stranger"] = record;
    });
    refused("no manifest", &|f| f["manifest_checksum"] = Value::Null);
    refused("state", &|f| f["snapshot"]["state"]["serial"] = json!(3));
    refused("control", &|f| f["snapshot"]["control"]["progress"] = json!([]));
    refused("control status", &|f| f["snapshot"]["control"]["status"] = json!("clear"));
    refused("control digest", &|f| f["snapshot"]["control_checksum"] = json!(empty_state_checksum()));
    refused("address", &|f| f["snapshot"]["address"] = json!("streamt-state://platform/payments/dev"));
    refused("unknown key", &|f| f["more"] = json!(1));
    refused("missing key", &|f| {
        f.as_object_mut().unwrap().shift_remove("candidate_state");
    });
    refused("credential", &|f| {
        f["candidate_state"]["resources"][&orders]["physical_name"] = json!("password=hunter2");
    });
}

/// REC-037
#[test]
fn only_its_own_record_is_its_execution() {
    let plan = observed();
    let record = plan.intent(testing::at(9)).unwrap().record;
    record.check().unwrap();
    assert!(record.state_changed && plan.was_carried_out_by(&record));
    let other = ResolutionRecord { evidence_checksum: empty_state_checksum(), ..record };
    assert!(!plan.was_carried_out_by(&other));
}

/// A plan of a format, for an operation that was begun in a control version.
fn of_format(format: u8, version: u8) -> RecoveryPlan {
    let mut snapshot = blocked(true);
    let intent = golden_intent(actions(&[(Verb::Create, Kind::Topic, "orders")]));
    let begun =
        Control::clear(&address("platform")).apply_in_version(Event::Intent(intent.clone()), version).unwrap().0;
    snapshot.control.control = begun.apply(Event::Progress(started(&intent, 0))).unwrap().0;
    let mut intent = testing::recovery_intent(&snapshot, Resolution::RolledBack, AcceptedAs::Prior, None);
    let digits = |digit: &str| Checksum::parse(&format!("sha256:{}", digit.repeat(64))).unwrap();
    intent.targets[0].fingerprint = digits("5");
    let basis = Basis { environment_fingerprint: digits("2"), manifest_checksum: digits("3") };
    let proof = Proof { targets: intent.targets, candidate: None };
    let plan = RecoveryPlan::of(&snapshot, Resolution::RolledBack, RECOVERY, Some((proof, basis))).unwrap();
    assert_eq!(plan.format, FORMAT);
    sealed(RecoveryPlan { format, streamt_version: "0.2.0".into(), ..plan })
}

fn sealed(plan: RecoveryPlan) -> RecoveryPlan {
    RecoveryPlan { evidence_checksum: Checksum::of(&plan.document().unwrap()).unwrap(), ..plan }
}

/// CRM-073, CRM-074, CRM-076, CRM-078: the digests were computed by an independent program.
#[test]
fn plans_of_formats_1_to_3_keep_their_bytes_and_are_read() {
    for (format, keys, digest) in [
        (1, "index,resource_id,action", "sha256:cc6a5ba82b413735ff2683f6d340e109d93c269cbd748d8d4fdee7c6e6e4b837"),
        (
            2,
            "index,resource_id,action,gateway_evidence",
            "sha256:dce3b0072d1dc339d8064b6a0a276d8cba3add027186c9fe6217c1e4d5cbed29",
        ),
        (
            3,
            "index,resource_id,action,gateway_evidence,connector_evidence",
            "sha256:cc6a19c8ef169db817818f76f3e553b7e1e7f1495a95baf5e28110018d65d924",
        ),
    ] {
        let plan = of_format(format, format);
        assert_eq!(plan.evidence_checksum.as_str(), digest, "format {format}");
        let action = plan.document().unwrap()["targets"][0]["action"].clone();
        assert_eq!(action.as_object().unwrap().keys().map(String::as_str).collect::<Vec<_>>().join(","), keys);
        let bytes = plan.to_bytes().unwrap();
        let read = RecoveryPlan::parse(&bytes).unwrap();
        assert_eq!((&read, read.to_bytes().unwrap()), (&plan, bytes));
    }
}

/// CRM-076, CRM-077, REC-065: a format ends operations of its own version and of earlier ones, with the actions of its own, and
/// resolves no connector deletion before 3.
#[test]
fn a_format_ends_no_operation_that_it_cannot_represent() {
    for (format, version) in [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3)] {
        assert!(RecoveryPlan::parse(&of_format(format, version).to_bytes().unwrap()).is_ok(), "{format} of {version}");
    }
    for (format, version) in [(1, 2), (1, 3), (2, 3)] {
        let refused = RecoveryPlan::parse(&of_format(format, version).to_bytes().unwrap()).unwrap_err();
        assert!(refused.message.contains("older than the operation"), "{}", refused.message);
    }
    // The actions of another format under the checksum that belongs to them.
    for (format, other) in [(1, 2), (1, 3), (2, 1), (2, 3), (3, 1), (3, 2)] {
        let mut file = of_format(format, 1).document().unwrap();
        file["targets"] = of_format(other, 1).document().unwrap()["targets"].clone();
        let sum = Checksum::of(&file).unwrap();
        file["evidence_checksum"] = json!(sum);
        assert!(RecoveryPlan::parse(&serde_json::to_vec(&file).unwrap()).is_err(), "{format} with actions of {other}");
    }
    for version in [1, 2] {
        let mut snapshot = blocked(true);
        let intent = golden_intent(actions(&[(Verb::Delete, Kind::Connector, "archive")]));
        let begun =
            Control::clear(&address("platform")).apply_in_version(Event::Intent(intent.clone()), version).unwrap().0;
        snapshot.control.control = begun.clone();
        let abandoned = RecoveryPlan::of(&snapshot, Resolution::AbandonedBeforeMutation, RECOVERY, None).unwrap();
        assert_eq!(RecoveryPlan::parse(&abandoned.to_bytes().unwrap()).unwrap(), abandoned);
        snapshot.control.control = begun.apply(Event::Progress(started(&intent, 0))).unwrap().0;
        for (resolution, form) in
            [(Resolution::Observed, AcceptedAs::Candidate), (Resolution::RolledBack, AcceptedAs::Prior)]
        {
            let candidate = (resolution == Resolution::Observed).then(|| (*snapshot.state.state).clone());
            let targets = testing::recovery_intent(&snapshot, resolution, form, None).targets;
            let basis = Basis {
                environment_fingerprint: Checksum::of_bytes(b"environment"),
                manifest_checksum: Checksum::of_bytes(b"manifest"),
            };
            let made = RecoveryPlan::of(&snapshot, resolution, RECOVERY, Some((Proof { targets, candidate }, basis)));
            assert!(made.unwrap_err().message.contains("without the evidence"), "{version}");
        }
    }
}
