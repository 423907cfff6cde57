//! The grammar of operations: golden digests, every short sequence of events against a plain model, and random long ones.

use proptest::prelude::*;

use super::*;
use crate::compiler::artifact::Kind;
use crate::planner::model::{Action, Verb};
use crate::state::model::ResourceId;
use crate::state::testing::*;

fn clear() -> Control {
    Control::clear(&address("platform"))
}

fn begun(intent: &Intent) -> Control {
    clear().apply(Event::Intent(intent.clone())).unwrap().0
}

fn golden_pair() -> Intent {
    golden_intent(actions(&[(Verb::Create, Kind::Topic, "orders"), (Verb::Create, Kind::Topic, "payments")]))
}

fn digest_of_whole(control: &Control) -> Checksum {
    Checksum::of(&control.to_value()).unwrap()
}

/// SAF-029
#[test]
fn golden_digests_of_a_single_action() {
    let intent = golden_intent(actions(&[(Verb::Create, Kind::Topic, "orders")]));
    let mut control = clear();
    assert_eq!(control.checksum().as_str(), "sha256:1a586904829a399cb0a2912f1f606055e4f3616894be5c89ba3a6f1f35799f31");
    let stopped = recovery(&intent, FailureCode::OperationInterrupted, None);
    let stopped = RecoveryRecord { failed_at: at(2), ..stopped };
    for (event, digest) in [
        (Event::Intent(intent.clone()), "sha256:a8f3f61e734e7e01adc8a1dd47a4ffb041e51008c99febcd97c46bc7891d4cb5"),
        (
            Event::Progress(started(&intent, 0)),
            "sha256:3b243f38d80871cdfecb96f1981470b77cd9055b2653cf32779d7bbaff8c74fb",
        ),
        (Event::RecoveryRequired(stopped), "sha256:cf8817e7c44ef1c82736ac7ec43a241d1729b4186144ffec9563401c1bf28741"),
    ] {
        let (next, stored) = control.apply(event).unwrap();
        assert_eq!(next.checksum().as_str(), digest);
        assert_eq!(stored.control_checksum, *next.checksum());
        assert_eq!(digest_of_whole(&next), *next.checksum());
        control = next;
    }
    let status = control.status();
    assert_eq!(status.status, Status::RecoveryRequired);
    assert_eq!(status.failure_code, Some(FailureCode::OperationInterrupted));
}

/// SAF-029
#[test]
fn golden_digests_of_a_group() {
    let intent = golden_pair();
    let run = |outcome: &dyn Fn(u32) -> ProgressEntry| (0..2).map(|i| Event::Progress(outcome(i))).collect::<Vec<_>>();
    let control = begun(&intent);
    assert_eq!(control.checksum().as_str(), "sha256:13793ccdf1eb806de730df3f952e9aa468bffcb4789e1dca31999eefe8bc404b");
    let (control, _) = control.apply_step(run(&|i| started(&intent, i))).unwrap();
    assert_eq!(control.checksum().as_str(), "sha256:081effeb2013cadf330beb664201b079cac718e032ada54af544c06d8746fed5");
    let (all, _) = control.clone().apply_step(run(&|i| completed(&intent, i, true))).unwrap();
    assert_eq!(all.checksum().as_str(), "sha256:9a808ec9bcc620efaba4834244d94a810c859807143455d0ec98644b047f4bef");
    let (refused, _) = control.apply_step(run(&|i| completed(&intent, i, i == 0))).unwrap();
    assert_eq!(refused.checksum().as_str(), "sha256:64638ab949facca7c4fb1e9958cbb9c4ac46b61ae3603567f0611242f289683a");
    let record = recovery(&intent, FailureCode::RuntimeActionFailed, Some(0));
    let (stopped, _) = refused.apply_step(vec![Event::RecoveryRequired(record)]).unwrap();
    assert_eq!(stopped.checksum().as_str(), "sha256:8084212f82bf89ad058bc46877f12e55f16dad5dedc591df13f032d82ebcf703");
}

#[test]
fn older_versions_are_read_with_their_own_action_keys_and_newer_ones_are_refused() {
    let intent = golden_intent(actions(&[(Verb::Create, Kind::Topic, "orders")]));
    let keys = |version| {
        let (control, _) = clear().apply_in_version(Event::Intent(intent.clone()), version).unwrap();
        assert_eq!(control.version(), version);
        assert_eq!(digest_of_whole(&control), *control.checksum());
        let document = control.to_value();
        let action = document["intent"]["actions"][0].as_object().unwrap();
        action.keys().map(String::as_str).collect::<Vec<_>>().join(",")
    };
    assert_eq!(keys(1), "index,resource_id,action");
    assert_eq!(keys(2), "index,resource_id,action,gateway_evidence");
    assert_eq!(keys(3), "index,resource_id,action,gateway_evidence,connector_evidence");
    for version in [0, 4, 5, 6] {
        assert!(clear().apply_in_version(Event::Intent(intent.clone()), version).is_err(), "{version}");
    }
}

#[test]
fn a_clear_control_of_an_older_version_is_read_and_left_in_the_current_one() {
    let intent = golden_intent(actions(&[(Verb::Create, Kind::Topic, "orders")]));
    assert_eq!(Control::clear_in_version(&address("platform"), CURRENT_VERSION).unwrap(), clear());
    for version in [1, 2, 4] {
        let old = Control::clear_in_version(&address("platform"), version).unwrap();
        assert_eq!((old.version(), old.is_clear()), (version, true));
        assert_eq!(digest_of_whole(&old), *old.checksum());
        assert_ne!(old.checksum(), clear().checksum());
        let (begun, _) = old.apply(Event::Intent(intent.clone())).unwrap();
        assert_eq!(begun.version(), CURRENT_VERSION);
        let cleared = Event::ClearedBeforeMutation(Cleared { cleared_at: at(3) });
        assert_eq!(begun.apply(cleared).unwrap().0, clear());
    }
    for version in [0, 5, 6] {
        assert!(Control::clear_in_version(&address("platform"), version).is_err(), "{version}");
    }
}

/// SEC-007
#[test]
fn an_intent_outside_its_rules_is_refused() {
    let good = golden_pair();
    let refused = |change: &dyn Fn(&mut Intent)| {
        let mut intent = good.clone();
        change(&mut intent);
        clear().apply(Event::Intent(intent)).unwrap_err().0
    };
    assert_eq!(refused(&|i| i.operation_id = Uuid::nil()), "an operation id is a random uuid");
    assert_eq!(refused(&|i| i.actor = String::new()), "an actor is printable text of at most 128 characters");
    assert_eq!(refused(&|i| i.actor = "a".repeat(129)), "an actor is printable text of at most 128 characters");
    assert_eq!(refused(&|i| i.actor = "a\nb".into()), "an actor is printable text of at most 128 characters");
    assert_eq!(refused(&|i| i.prior_state_serial = 1 << 53), "a serial is out of range");
    assert_eq!(refused(&|i| i.actions[1].index = 2), "actions are numbered from 0");
    assert_eq!(
        refused(&|i| i.actions[1].resource_id = i.actions[0].resource_id.clone()),
        "an intent names a resource twice"
    );
    for other in ["streamt://payments/dev/topic/orders", "streamt://orders/prod/topic/orders"] {
        assert_eq!(
            refused(&|i| i.actions[0].resource_id = ResourceId::parse(other).unwrap()),
            "an intent names a resource of another project or environment"
        );
    }
    assert_eq!(
        refused(&|i| i.actions[0].action = Verb::Delete),
        "an intent holds an action that its kind does not know"
    );
    assert_eq!(
        refused(&|i| i.actions[0].gateway_evidence = Some(serde_json::json!({}))),
        "the operation carries evidence that this version of streamt cannot read"
    );
    let removal = actions(&[(Verb::Delete, Kind::Connector, "sink")]);
    assert_eq!(refused(&|i| i.actions = removal.clone()), "an action lacks its evidence");
}

/// The golden connector deletion.
fn deletion() -> Action {
    serde_json::from_value(serde_json::json!({
        "index": 0,
        "resource_id": "streamt://payments/prod/connector/archive_orders",
        "action": "delete",
        "gateway_evidence": null,
        "connector_evidence": {
            "version": 1,
            "backend_identity": GOLDEN_BACKEND,
            "connector_name": "archive-orders-sink",
            "prior_artifact_checksum": GOLDEN_ARTIFACT,
            "current": {"exists": true, "fingerprint": GOLDEN_PRESENT},
            "desired": {"exists": false, "fingerprint": GOLDEN_ABSENT},
        },
    }))
    .unwrap()
}

const GOLDEN_BACKEND: &str =
    "kafka-connect:v1:primary-connect:sha256:cfc6dbc9f9dcd92ed8163e7460332257b4542844d9458029a78d18bddf241407";
const GOLDEN_ARTIFACT: &str = "sha256:b3c793b83f7d24dee53590d6ab7cbdc72c9ea69c77b50f51c443e537cd1677ce";
const GOLDEN_PRESENT: &str = "sha256:e2184ae1f3db22063538918247b64b89c4ccf38425421e254a569237bcfef9ce";
const GOLDEN_ABSENT: &str = "sha256:61627642aceb299fae5343e6cef290603021be2348d8a74a635db6798fc691a7";

/// CRM-064, CRM-066, CRM-070
#[test]
fn the_golden_connector_deletion_keeps_its_digest() {
    assert_eq!(
        Checksum::of(&deletion()).unwrap().as_str(),
        "sha256:7e92ef3ca8f12fa4778e1086195d63038e33d87d1f2aad611841907cd47fdf18"
    );
}

/// CRM-065, CRM-072, CRM-077
#[test]
fn only_version_3_holds_a_connector_deletion_and_nothing_else_carries_its_evidence() {
    let intent = golden_intent(vec![deletion()]);
    let (control, _) = clear().apply(Event::Intent(intent.clone())).unwrap();
    assert_eq!(control.version(), 3);
    assert_eq!(digest_of_whole(&control), *control.checksum());
    for version in [1, 2] {
        assert!(clear().apply_in_version(Event::Intent(intent.clone()), version).is_err(), "{version}");
    }
    for other in [Verb::Create, Verb::Update, Verb::Adopt] {
        let action = Action { action: other, ..deletion() };
        assert!(clear().apply(Event::Intent(golden_intent(vec![action]))).is_err(), "{other}");
    }
    let both = Action { gateway_evidence: Some(serde_json::json!({})), ..deletion() };
    assert!(clear().apply(Event::Intent(golden_intent(vec![both]))).is_err());
}

#[test]
fn every_verb_stands_only_with_its_kinds() {
    let allowed = |kind: Kind| {
        [Verb::Register, Verb::Create, Verb::Update, Verb::Submit, Verb::Delete, Verb::Cancel, Verb::Adopt]
            .into_iter()
            .filter(|verb| {
                let intent = golden_intent(actions(&[(*verb, kind, "x")]));
                // Version 1 has no evidence to miss, but does not hold the replacement of a runner.
                clear().apply_in_version(Event::Intent(intent), 1).is_ok()
            })
            .map(Verb::as_str)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(allowed(Kind::Schema), "register update delete adopt");
    assert_eq!(allowed(Kind::Topic), "create update adopt");
    assert_eq!(allowed(Kind::FlinkJob), "update submit cancel");
    assert_eq!(allowed(Kind::KafkaStreamsJob), "create");
    assert_eq!(allowed(Kind::Connector), "create update delete adopt");
    assert_eq!(allowed(Kind::GatewayRule), "create update delete adopt");
}

#[test]
fn progress_that_differs_from_its_intent_is_refused() {
    let intent = golden_pair();
    let refused = |change: &dyn Fn(&mut ProgressEntry)| {
        let mut entry = started(&intent, 0);
        change(&mut entry);
        begun(&intent).apply(Event::Progress(entry)).unwrap_err().0
    };
    assert_eq!(refused(&|e| e.operation_id = Uuid::new_v4()), "progress differs from the intent");
    assert_eq!(refused(&|e| e.resource_id = id(Kind::Topic, "other")), "progress differs from the intent");
    assert_eq!(refused(&|e| e.action = Verb::Update), "progress differs from the intent");
    assert_eq!(refused(&|e| e.action_index = 7), "progress differs from the intent");
    assert_eq!(refused(&|e| e.succeeded = Some(true)), "an outcome stands exactly in completed progress");
    assert_eq!(refused(&|e| e.status = ProgressStatus::Completed), "an outcome stands exactly in completed progress");
}

#[test]
fn a_recovery_record_that_differs_from_progress_is_refused() {
    let intent = golden_pair();
    let control = begun(&intent).apply(Event::Progress(started(&intent, 0))).unwrap().0;
    let refused = |change: &dyn Fn(&mut RecoveryRecord)| {
        let mut record = recovery(&intent, FailureCode::RuntimeActionFailed, None);
        change(&mut record);
        control.clone().apply(Event::RecoveryRequired(record)).is_err()
    };
    assert!(!refused(&|_| {}));
    assert!(refused(&|r| r.operation_id = Uuid::new_v4()));
    assert!(refused(&|r| r.last_completed_action_index = Some(0)));
    assert!(refused(&|r| r.mutation_may_have_succeeded = false));
    assert!(refused(&|r| r.failure_code = FailureCode::AdoptionOperationInterrupted));
    assert!(refused(&|r| r.failure_code = FailureCode::RunnerOperationInterrupted));
}

#[test]
fn the_serial_steps_exactly_when_ownership_changes() {
    let intent = golden_intent(Vec::new());
    let end = |serial, checksum: Checksum| {
        let end = Succeeded { completed_at: at(3), state_checksum: checksum, state_serial: serial };
        begun(&intent).apply(Event::Succeeded(end)).is_ok()
    };
    let (same, other) = (empty_state_checksum(), Checksum::of_bytes(b"other"));
    assert!(end(0, same.clone()) && end(1, other.clone()));
    assert!(!end(0, other.clone()) && !end(1, same) && !end(2, other));
}

/// SAF-029, SAF-030: every sequence of up to seven events over two intents, against a plain statement of the rules.
#[test]
fn every_short_sequence_of_events_is_judged_as_the_rules_say() {
    let groupable = golden_pair();
    let single =
        golden_intent(actions(&[(Verb::Update, Kind::Topic, "orders"), (Verb::Create, Kind::Topic, "payments")]));
    for (intent, groups) in [(groupable, true), (single, false)] {
        walk(&intent, groups, &clear(), &mut Vec::new(), 7);
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Token {
    Intent,
    Started(u32),
    Completed(u32, bool),
    Incident,
    Cleared,
    Succeeded,
}

fn walk(intent: &Intent, groups: bool, control: &Control, path: &mut Vec<Token>, depth: usize) {
    let mut tokens = vec![Token::Intent, Token::Incident, Token::Cleared, Token::Succeeded];
    for index in 0..2 {
        tokens.extend([Token::Started(index), Token::Completed(index, true), Token::Completed(index, false)]);
    }
    for token in tokens {
        let event = match token {
            Token::Intent => Event::Intent(intent.clone()),
            Token::Started(index) => Event::Progress(started(intent, index)),
            Token::Completed(index, succeeded) => Event::Progress(completed(intent, index, succeeded)),
            Token::Incident => {
                let last = control.last_completed_action_index();
                Event::RecoveryRequired(recovery(intent, FailureCode::RuntimeActionFailed, last))
            }
            Token::Cleared => Event::ClearedBeforeMutation(Cleared { cleared_at: at(3) }),
            Token::Succeeded => Event::Succeeded(Succeeded {
                completed_at: at(3),
                state_checksum: empty_state_checksum(),
                state_serial: 0,
            }),
        };
        path.push(token);
        let judged = control.clone().apply(event);
        assert_eq!(judged.is_ok(), legal(path, groups), "{path:?}, groups: {groups}");
        if let Ok((next, stored)) = judged {
            assert_eq!(digest_of_whole(&next), *next.checksum());
            assert_eq!(stored.control_checksum, *next.checksum());
            // A clear control is where every other operation starts: nothing new is behind it.
            if depth > 1 && !next.is_clear() {
                walk(intent, groups, &next, path, depth - 1);
            }
        }
        path.pop();
    }
}

/// The rules once more, over whole sequences: which ones may stand in a store.
fn legal(path: &[Token], groups: bool) -> bool {
    use Token::{Cleared, Completed, Incident, Intent, Started, Succeeded};
    let [Intent, rest @ ..] = path else { return false };
    let (body, end) = match rest {
        [body @ .., last @ (Incident | Cleared | Succeeded)] => (body, Some(*last)),
        _ => (rest, None),
    };
    let mut sequences = vec![
        vec![Started(0), Completed(0, true), Started(1), Completed(1, true)],
        vec![Started(0), Completed(0, true), Started(1), Completed(1, false)],
        vec![Started(0), Completed(0, false)],
    ];
    if groups {
        for (first, second) in [(true, true), (true, false), (false, true), (false, false)] {
            sequences.push(vec![Started(0), Started(1), Completed(0, first), Completed(1, second)]);
        }
    }
    let is_prefix = sequences.iter().any(|sequence| sequence.starts_with(body));
    let all_succeeded = body.iter().filter(|token| matches!(token, Completed(_, true))).count() == 2;
    // Between the outcomes of a group: it is one durable step, nothing else may follow its first outcome.
    let inside_run = matches!(body, [Started(0), Started(1), Completed(0, _)]);
    is_prefix
        && match end {
            None => true,
            Some(Cleared) => body.is_empty(),
            Some(Succeeded) => all_succeeded,
            Some(_) => !inside_run,
        }
}

#[test]
fn a_group_is_topic_creates_only_and_bounded() {
    let run = |actions: Vec<Action>, from: u32, to: u32| {
        let intent = golden_intent(actions);
        begun(&intent).apply_step((from..to).map(|index| Event::Progress(started(&intent, index))).collect()).is_ok()
    };
    let most = MAX_GROUP as u32;
    assert!(run(topic_creates(MAX_GROUP + 1), 0, most));
    assert!(!run(topic_creates(MAX_GROUP + 1), 0, most + 1));
    assert!(!run(topic_creates(3), 1, 3));
    let mixed =
        |verb, kind| actions(&[(Verb::Create, Kind::Topic, "a"), (verb, kind, "b"), (Verb::Create, Kind::Topic, "c")]);
    assert!(!run(mixed(Verb::Update, Kind::Topic), 0, 2));
    assert!(!run(mixed(Verb::Register, Kind::Schema), 0, 2));
    assert!(!run(mixed(Verb::Create, Kind::KafkaStreamsJob), 0, 2));
    assert!(run(mixed(Verb::Create, Kind::Topic), 0, 3));
}

#[test]
fn a_step_is_one_run_and_never_a_part_of_one() {
    let intent = golden_pair();
    let s = |index| Event::Progress(started(&intent, index));
    let c = |index| Event::Progress(completed(&intent, index, true));
    let group = begun(&intent).apply_step(vec![s(0), s(1)]).unwrap().0;
    assert!(group.clone().apply_step(vec![c(0), c(1)]).is_ok());
    assert!(group.clone().apply_step(vec![c(0)]).is_err(), "part of the outcomes");
    assert!(begun(&intent).apply_step(vec![s(0), c(0)]).is_err(), "two runs");
    assert!(begun(&intent).apply_step(Vec::new()).is_err(), "nothing");
    assert!(clear().apply_step(vec![Event::Intent(intent.clone()), s(0)]).is_err(), "an intent and its first action");
    assert!(begun(&intent).apply_step(vec![s(0)]).unwrap().0.apply_step(vec![s(1)]).is_err(), "a run in two steps");
}

#[test]
fn an_adoption_may_be_recorded_and_ended_in_one_step() {
    let adopted = actions(&[(Verb::Adopt, Kind::Topic, "orders")]);
    let intent = Intent { kind: OperationKind::Adopt, ..golden_intent(adopted) };
    let end = Succeeded { completed_at: at(3), state_checksum: Checksum::of_bytes(b"next"), state_serial: 1 };
    let whole = |intent: &Intent| {
        vec![
            Event::Progress(started(intent, 0)),
            Event::Progress(completed(intent, 0, true)),
            Event::Succeeded(end.clone()),
        ]
    };
    assert!(begun(&intent).apply_step(whole(&intent)).unwrap().0.is_clear());
    let apply = Intent { kind: OperationKind::Apply, ..intent };
    assert!(begun(&apply).apply_step(whole(&apply)).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// SAF-029
    #[test]
    fn any_legal_operation_has_the_digest_of_its_whole_document((list, sizes) in operation(), fail in any::<proptest::sample::Index>()) {
        let intent = golden_intent(list.clone());
        let failing = (!list.is_empty()).then(|| u32::try_from(fail.index(list.len() * 2)).unwrap());
        let mut control = begun(&intent);
        for step in steps(&intent, &sizes, failing) {
            control = control.apply_step(step).unwrap().0;
            prop_assert_eq!(&digest_of_whole(&control), control.checksum());
        }
        let failed = failing.is_some_and(|index| (index as usize) < list.len());
        let end = Succeeded { completed_at: at(3), state_checksum: empty_state_checksum(), state_serial: 0 };
        prop_assert_eq!(control.clone().apply(Event::Succeeded(end)).is_ok(), !failed);
        let next = u32::try_from(control.progress().len() / 2).unwrap();
        if (next as usize) < list.len() {
            let more = control.clone().apply_step(vec![Event::Progress(started(&intent, next))]);
            prop_assert!(more.is_err(), "an action started after a failed one");
        }
    }
}
