//! Controls of versions 1 and 2: their frozen bytes, what they may say, and that no later version is inferred from them. The
//! digests were computed by an independent program.

use crate::compiler::artifact::Kind;
use crate::planner::model::Verb;
use crate::state::testing::*;

use super::*;

fn clear() -> Control {
    Control::clear(&address("platform"))
}

fn follow(version: u8, verb: Verb, kind: Kind, name: &str) -> Vec<Control> {
    let intent = golden_intent(actions(&[(verb, kind, name)]));
    let stopped = RecoveryRecord { failed_at: at(2), ..recovery(&intent, FailureCode::OperationInterrupted, None) };
    let mut all = vec![clear().apply_in_version(Event::Intent(intent.clone()), version).unwrap().0];
    for event in [Event::Progress(started(&intent, 0)), Event::RecoveryRequired(stopped)] {
        let next = all.last().unwrap().clone().apply(event).unwrap().0;
        all.push(next);
    }
    all
}

fn assert_golden(version: u8, control: &Control, digest: &str) {
    assert_eq!(control.checksum().as_str(), digest, "version {version}");
    assert_eq!(Checksum::of(&control.to_value()).unwrap(), *control.checksum());
    assert_eq!(Control::read(&address("platform"), &control.to_value()).unwrap(), *control);
    assert_eq!(control.version(), version, "it keeps its version to its end");
}

/// CRM-074, CRM-076, CRM-078
#[test]
fn controls_of_versions_1_and_2_keep_their_bytes() {
    for (version, clear, digests) in [
        (
            1,
            "sha256:cfcf9145cff5d6c8b0b240a7e6ddd1c6e2ba3bcb8c05e643a3a5e0bcca7ed947",
            [
                "sha256:d48dc5e39cee512b4287f099c84935287b872922a56df5d8a5c80ecfaa44744a",
                "sha256:65b367d87811907b6e32281bac9e8d74dfd5447edb286e5f7b618b3a9e1085ac",
                "sha256:b005c90e11ee199b60cf6980d45469a9d5eed32af548e2a1828fee90ce51a548",
            ],
        ),
        (
            2,
            "sha256:53baee490788d21470d684f43a9bb0c266b403453b3337e9172d2a4a90927a01",
            [
                "sha256:0ab52e5517b7f67505bc03582b7976fafd87f2e0ffc9aa41011e6fd327aefc7b",
                "sha256:9b78ee8df2009fa5498db2bb174db31b3eeff6025ae017be8212a6d27dd78b5c",
                "sha256:8ce80ff2c3b820bdd567b9f1f17e743429f179fa9ad2419d5a6c88cfe8addadd",
            ],
        ),
    ] {
        let read = Control::clear_in_version(&address("platform"), version).unwrap();
        assert_eq!((read.checksum().as_str(), read.version()), (clear, version));
        for (control, digest) in follow(version, Verb::Create, Kind::Topic, "orders").iter().zip(digests) {
            assert_golden(version, control, digest);
        }
    }
}

/// CRM-074: each version is named, and nothing beyond them is read.
#[test]
fn no_other_version_is_a_control() {
    let read = |version: u64| {
        let mut document = follow(3, Verb::Create, Kind::Topic, "orders")[1].to_value();
        document["control_version"] = version.into();
        Control::read(&address("platform"), &document)
    };
    assert!(read(3).is_ok());
    for version in [0, 1, 2, 4, 5, 6, 255, 256, u64::MAX] {
        assert!(read(version).is_err(), "{version}: neither another version nor the keys of another");
    }
}

/// CRM-077, REC-065: what an earlier streamt could say of a connector's deletion is read as it was said, without evidence, and
/// with it nowhere but in version 3.
#[test]
fn a_connector_deletion_of_versions_1_and_2_has_no_evidence_and_gets_none() {
    for (version, digests) in [
        (
            1,
            [
                "sha256:3064663453d13997a124c59b516151660076c30ccb7dddf3273581115b42c312",
                "sha256:eb3d26cb61c55a4b2b13e3b66cb7f52285aee277821b22a13e6a00670e1aa79a",
            ],
        ),
        (
            2,
            [
                "sha256:042d3375b470d71762b1e3a45b3aefbbd57a4b377ded6af7b288d080fd9e4e38",
                "sha256:d1208c5fbd02fc186f0f3b209b85770f029af475550e2a7015a367436e15c052",
            ],
        ),
    ] {
        let all = follow(version, Verb::Delete, Kind::Connector, "archive_orders");
        for (control, digest) in all.iter().zip(digests) {
            assert_golden(version, control, digest);
        }
        let mut document = all[0].to_value();
        document["control_version"] = 3.into();
        for (key, value) in
            [("gateway_evidence", serde_json::Value::Null), ("connector_evidence", serde_json::Value::Null)]
        {
            document["intent"]["actions"][0][key] = value;
        }
        assert!(Control::read(&address("platform"), &document).is_err(), "version 3 has it with its evidence only");
    }
    let intent = golden_intent(actions(&[(Verb::Delete, Kind::Connector, "archive_orders")]));
    assert!(clear().apply(Event::Intent(intent)).is_err(), "nobody begins one without evidence");
}
