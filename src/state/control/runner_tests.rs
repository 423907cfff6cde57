//! Control versions 4 and 5: golden digests, and what the grammar of a runner's replacement forbids.

use super::runner_testing::*;
use super::*;
use crate::ownership::runner::Checkpoint;
use crate::ownership::runner::testing::{OPERATION, TOKEN, checkpoints, docker_id, evidence};
use crate::planner::model::{Action, Verb};
use crate::state::model::StoreIdentity;
use crate::state::testing;

fn digest_of_whole(control: &Control) -> Checksum {
    Checksum::of(&control.to_value()).unwrap()
}

fn refused(control: Control, event: Event) -> &'static str {
    control.apply(event).map(|_| ()).unwrap_err().0
}

#[test]
fn golden_digests_of_the_action_and_of_ownership() {
    let digest = |text: &str| Checksum::parse(&format!("sha256:{text}")).unwrap();
    let typed = digest("2dd8a23c35f107b7035e6797d460def9ef34e60ff96e57bd926cf48e62798904");
    assert_eq!(Checksum::of(&action()).unwrap(), typed);
    assert_eq!(prior(), digest("ef11cf16d8015307d66f4c2758e694c28eb5a2a4ea639f92d3876058f9f8bf02"));
    assert_eq!(result(), digest("c24123798b6a79ebb2ef4dd193fb3aec09447273a86abfb74ad7e5301d4fa213"));
    let value = serde_json::to_value(action()).unwrap();
    assert_eq!(serde_json::from_value::<Action>(value).unwrap(), action());
}

#[test]
fn golden_digests_at_every_boundary_of_a_replacement() {
    for (count, digest) in [
        "da13899022c4e08a8072c8e896a5c03ea8c18730114048bbc9b65b0614c908ca",
        "f1b10409e0b655355b9141d6d3aebb9771f3f158e97682451f0b5c773ec5dad5",
        "e175fe6b4b25999b458165b4a19832edbb21cba2042993def198aeda49ff43a8",
        "57d4a45d4dd195b85a5566b68f02866994ede35cee1cc79116a3bc054486a12e",
        "b17e83e2f8839a9bfb7213d52dd817d7c9b5fa87dd61ef797b7a70528cc277ba",
        "6697fc5697aa0a41b311b3b44f7283ac4fa904271679a60efd15b5ee8b2f3fa8",
    ]
    .into_iter()
    .enumerate()
    {
        let control = behind(count);
        assert_eq!(control.version(), 4);
        assert_eq!(control.checksum().as_str(), format!("sha256:{digest}"), "{count} boundaries");
    }
    for (control, version, digest) in [
        (interrupted(), 4, "42f4f0b92f59a5117f57eacd53a6202e55262bc03df2076c37732c38063e103b"),
        (resumed(), 5, "1a445417a44f2b01938de7594b1ef210da075e8b8b0e1dd7629cb09376e95c53"),
        (terminal(), 5, "ae53e87950dff4b4b1c19c410eb0606f0c5dee9dd852de3d6c38549aedc6d39b"),
    ] {
        assert_eq!((control.version(), control.checksum().as_str()), (version, &*format!("sha256:{digest}")));
    }
}

#[test]
fn every_control_of_a_replacement_reads_back_and_any_other_is_refused() {
    let twice = {
        let again = terminal_but_one().apply(Event::RecoveryRequired(interruption())).unwrap().0;
        let record = ResumeRecord {
            resume_id: TOKEN,
            progress_count: 4,
            source_control_checksum: again.checksum().clone(),
            ..resume()
        };
        again.apply(Event::Resumed(Box::new(record))).unwrap().0
    };
    assert_eq!(twice.resumes().len(), 2);
    let controls = (0..=5).map(behind).chain([interrupted(), resumed(), terminal(), twice]);
    for control in controls {
        let document = control.to_value();
        assert_eq!(digest_of_whole(&control), *control.checksum());
        assert_eq!(Control::read(&address(), &document).unwrap(), control);
        let changed = |change: &dyn Fn(&mut serde_json::Value)| {
            let mut document = document.clone();
            change(&mut document);
            Control::read(&address(), &document).is_err()
        };
        for version in [0, 1, 2, 3, 6] {
            assert!(changed(&|document| document["control_version"] = version.into()), "{version}");
        }
        assert!(changed(&|document| document["control_version"] = (9 - control.version()).into()), "4 for 5, 5 for 4");
        assert!(changed(&|document| document["resume_history"] = serde_json::json!([])));
        assert!(changed(&|document| document["intent"]["actions"][0]["kafka_streams_evidence"]["version"] = 2.into()));
        if !control.progress().is_empty() {
            assert!(changed(&|document| document["progress"][0]["kafka_streams_checkpoint"] = serde_json::Value::Null));
        }
        if !control.resumes().is_empty() {
            assert!(changed(&|document| document["resume_history"][0]["progress_count"] = 2.into()));
        }
    }
}

/// Resumed, and behind the checkpoint before its last boundary.
fn terminal_but_one() -> Control {
    resumed().apply(Event::Progress(boundaries().remove(3))).unwrap().0
}

/// SAF-029: an operation is version 4 exactly when it replaces one runner, as it was reviewed.
#[test]
fn evidence_of_a_runner_stands_in_version_4_alone() {
    let clear = || Control::clear(&address());
    for version in [1, 2, 3, 5, 6] {
        assert!(clear().apply_in_version(Event::Intent(intent()), version).is_err(), "{version}");
    }
    let topics = testing::golden_intent(testing::topic_creates(1));
    assert!(clear().apply_in_version(Event::Intent(topics), 4).is_err(), "no runner");
    let changed = |change: &dyn Fn(&mut Intent)| {
        let mut intent = intent();
        change(&mut intent);
        clear().apply(Event::Intent(intent)).is_err()
    };
    assert!(!changed(&|_| {}));
    assert!(changed(&|intent| intent.kind = OperationKind::Adopt));
    assert!(changed(&|intent| intent.reviewed_plan_checksum = None));
    assert!(changed(&|intent| intent.actions[0].action = Verb::Create));
    assert!(changed(&|intent| intent.actions[0].kafka_streams_evidence = None), "an update without evidence");
    assert!(changed(&|intent| intent.actions[0].gateway_evidence = Some(serde_json::json!({}))));
    let topic = || Action { index: 1, ..testing::topic_creates(1).remove(0) };
    assert!(changed(&|intent| intent.actions.push(topic())), "nothing beside it");
    let on_a_topic = |intent: &mut Intent| intent.actions[0].resource_id = topic().resource_id;
    assert!(changed(&on_a_topic));
    let mut update = intent().actions;
    update[0].kafka_streams_evidence = None;
    for version in 1..=5 {
        let without = Intent { actions: update.clone(), ..intent() };
        assert!(clear().apply_in_version(Event::Intent(without), version).is_err(), "{version}");
    }
}

#[test]
fn the_boundaries_of_a_replacement_have_one_order() {
    let all = boundaries();
    for count in 0..5 {
        for (next, entry) in all.iter().enumerate() {
            let legal = behind(count).apply(Event::Progress(entry.clone())).is_ok();
            assert_eq!(legal, next == count, "boundary {next} behind {count}");
        }
        let failed = ProgressEntry::completed(&intent(), 0, false, noon()).unwrap();
        assert_eq!(behind(count).apply(Event::Progress(failed)).is_ok(), count > 0, "it may fail behind {count}");
    }
    assert!(boundaries().into_iter().all(|entry| behind(5).apply(Event::Progress(entry)).is_err()), "nothing follows");
    let entry = |change: &dyn Fn(&mut ProgressEntry)| {
        let mut entry = boundaries().remove(1);
        change(&mut entry);
        behind(1).apply(Event::Progress(entry)).is_err()
    };
    assert!(!entry(&|_| {}));
    assert!(entry(&|entry| entry.succeeded = Some(true)));
    assert!(entry(&|entry| entry.kafka_streams_checkpoint = None));
    assert!(entry(&|entry| entry.status = ProgressStatus::Completed));
    assert!(entry(&|entry| entry.kafka_streams_checkpoint.as_mut().unwrap().operation_id = TOKEN));
    let [closed, ..] = checkpoints();
    assert!(entry(&|entry| {
        entry.kafka_streams_checkpoint = Some(Box::new(Checkpoint { exit_code: Some(137), ..closed.clone() }));
    }));
    // An ordinary action has none.
    let topics = testing::golden_intent(testing::topic_creates(1));
    let (begun, _) = Control::clear(&address()).apply(Event::Intent(topics.clone())).unwrap();
    let (started, _) = begun.apply(Event::Progress(testing::started(&topics, 0))).unwrap();
    let own = Checkpoint::old_removed(&evidence(), topics.operation_id, 0);
    let stray = ProgressEntry::checkpoint(&topics, own, testing::at(3)).unwrap();
    assert_eq!(refused(started, Event::Progress(stray)), "only the replacement of a runner has checkpoints");
}

#[test]
fn a_resumption_names_exactly_what_was_interrupted() {
    let changed = |change: &dyn Fn(&mut ResumeRecord)| {
        let mut record = resume();
        change(&mut record);
        interrupted().apply(Event::Resumed(Box::new(record))).is_err()
    };
    assert!(!changed(&|_| {}));
    assert!(changed(&|record| record.resume_id = OPERATION));
    assert!(changed(&|record| record.resume_id = Uuid::nil()));
    assert!(changed(&|record| record.operation_id = TOKEN));
    assert!(changed(&|record| record.address = "streamt-state://local/payments/test".to_owned()));
    assert!(changed(&|record| record.prior_state_serial = 2));
    assert!(changed(&|record| record.prior_state_checksum = result()));
    assert!(changed(&|record| record.source_control_checksum = behind(3).checksum().clone()));
    assert!(changed(&|record| record.progress_count = 2));
    assert!(changed(&|record| record.actor = "token=abc".to_owned()));
    assert!(changed(&|record| record.actor = String::new()));
    assert!(changed(&|record| record.recovery.failure_code = FailureCode::RunnerInterruptionAcknowledged));
    let resume = || Event::Resumed(Box::new(resume()));
    assert!(behind(3).apply(resume()).is_err(), "nothing was interrupted");
    assert!(resumed().apply(resume()).is_err() && terminal().apply(resume()).is_err());
    let store = StoreIdentity { store_id: TOKEN, ..store() };
    let again = resumed().apply(Event::RecoveryRequired(interruption())).unwrap().0;
    let second = |change: &dyn Fn(&mut ResumeRecord)| {
        let mut record = ResumeRecord {
            resume_id: TOKEN,
            source_control_checksum: again.checksum().clone(),
            ..runner_testing::resume()
        };
        change(&mut record);
        again.clone().apply(Event::Resumed(Box::new(record))).is_err()
    };
    assert!(!second(&|_| {}));
    assert!(second(&|record| record.store = store.clone()), "another store than the first");
    assert!(second(&|record| record.resume_id = runner_testing::resume().resume_id));
}

#[test]
fn an_operation_is_resumed_at_most_32_times() {
    let mut control = behind(1);
    for count in 0..=MAX_RESUMES {
        let stopped = control.apply(Event::RecoveryRequired(interruption())).unwrap().0;
        let record = ResumeRecord {
            resume_id: Uuid::from_u128(0x0000_0000_0000_4000_8000_0000_0000_0100 + count as u128),
            progress_count: 1,
            source_control_checksum: stopped.checksum().clone(),
            ..resume()
        };
        match stopped.apply(Event::Resumed(Box::new(record))) {
            Ok((next, _)) if count < MAX_RESUMES => control = next,
            Err(_) if count == MAX_RESUMES => return,
            other => panic!("{count}: {other:?}"),
        }
    }
}

#[test]
fn a_replacement_ends_behind_its_last_boundary_and_with_one_change_of_ownership() {
    let end = |serial, checksum: Checksum| {
        Event::Succeeded(Succeeded { completed_at: noon(), state_checksum: checksum, state_serial: serial })
    };
    for control in [behind(5), terminal()] {
        assert!(control.clone().apply(end(1, prior())).is_err(), "ownership must change");
        assert!(control.clone().apply(end(3, result())).is_err());
        let (clear, stored) = control.apply(end(2, result())).unwrap();
        assert!(clear.is_clear() && clear.version() == CURRENT_VERSION && stored.event.kind() == EventKind::Succeeded);
    }
    let done = RecoveryRecord { last_completed_action_index: Some(0), ..interruption() };
    let stopped = behind(5).apply(Event::RecoveryRequired(done)).unwrap().0;
    assert!(stopped.apply(end(2, result())).is_ok(), "interrupted behind its last boundary, it is finished");
    for count in 0..5 {
        assert!(behind(count).apply(end(2, result())).is_err(), "{count}");
    }
}

/// REC-012: nobody takes a replacement for abandoned once it was started or taken up again.
#[test]
fn a_replacement_is_cleared_only_before_its_first_boundary() {
    let cleared = || Event::ClearedBeforeMutation(Cleared { cleared_at: noon() });
    assert!(behind(0).apply(cleared()).is_ok() && behind(0).is_unstarted());
    assert!(behind(1).apply(cleared()).is_err() && !behind(1).is_unstarted());
    let stopped = behind(0).apply(Event::RecoveryRequired(interruption())).unwrap().0;
    let record = ResumeRecord { progress_count: 0, source_control_checksum: stopped.checksum().clone(), ..resume() };
    let again = stopped.apply(Event::Resumed(Box::new(record))).unwrap().0;
    assert!(!again.is_unstarted() && again.apply(cleared()).is_err());
}

#[test]
fn a_replacement_is_interrupted_in_its_own_words() {
    for code in [FailureCode::RuntimeActionFailed, FailureCode::OperationInterrupted, FailureCode::StateCommitUncertain]
    {
        let record = RecoveryRecord { failure_code: code, ..interruption() };
        assert_eq!(
            refused(behind(1), Event::RecoveryRequired(record)),
            "a runner's replacement is interrupted in its own words"
        );
    }
    let topics = testing::golden_intent(testing::topic_creates(1));
    let (begun, _) = Control::clear(&address()).apply(Event::Intent(topics.clone())).unwrap();
    let record = testing::recovery(&topics, FailureCode::RunnerOperationInterrupted, None);
    assert!(begun.apply(Event::RecoveryRequired(record)).is_err());
}

/// REC-009: evidence of how a runner looks decides nothing about a replacement.
#[test]
fn a_replacement_is_recovered_by_no_observation() {
    let recovery = |resolution, state_changed| {
        let control = interrupted();
        let record = ResolutionRecord {
            address: address().to_string(),
            blocked_operation_id: OPERATION,
            evidence_checksum: prior(),
            prior_state_checksum: prior(),
            prior_state_serial: 1,
            recovery_operation_id: TOKEN,
            resolution,
            resolved_at: noon(),
            result_state_checksum: if state_changed { result() } else { prior() },
            result_state_serial: if state_changed { 2 } else { 1 },
            state_changed,
        };
        let target = Target {
            action: action(),
            presence: Presence::Present,
            accepted_as: AcceptedAs::Prior,
            fingerprint: prior(),
        };
        let targets = if resolution.observes() { vec![target] } else { Vec::new() };
        control.clone().recover(RecoveryIntent { control_checksum: control.checksum().clone(), record, targets })
    };
    for (resolution, changed) in
        [(Resolution::Observed, true), (Resolution::Observed, false), (Resolution::RolledBack, false)]
    {
        let error = recovery(resolution, changed).map(|_| ()).unwrap_err();
        assert_eq!(error.0, "the replacement of a runner is resumed, not recovered");
    }
    assert!(recovery(Resolution::AbandonedBeforeMutation, false).is_err(), "an action was started");
    assert_ne!(docker_id('c'), docker_id('d'));
}
