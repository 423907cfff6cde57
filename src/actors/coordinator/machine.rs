//! The states of one operation. Pure: the coordinator feeds events and runs the one effect that each answers with.
//!
//! A block is one action, or one group of topic creates. `plan` and `--dry-run` end after the gates; an apply walks on.

use crate::state::control::FailureCode;

/// Where an operation stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum State {
    /// The gates before the durable intent.
    Preparing,
    Beginning,
    /// The `started` entries of a block are being written.
    Starting {
        block: usize,
    },
    Mutating {
        block: usize,
    },
    /// The `completed` entries of a block are being written.
    Completing {
        block: usize,
        succeeded: bool,
    },
    /// The recovery marker is being written.
    Marking,
    /// The intent is being taken back: no action was started.
    Clearing,
    Committing,
    Releasing(Verdict),
    Ended {
        verdict: Verdict,
        released: bool,
    },
}

/// What is durable when an operation ends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Verdict {
    /// A gate refused; nothing was written.
    Stopped,
    /// A plan or a dry run; nothing was written.
    Looked,
    Committed,
    /// Something was started and something failed: the marker says so.
    RecoveryRequired,
    /// The intent was taken back before anything was started.
    Cleared,
    /// A durable step failed: what stands is told by its error.
    Unresolved,
    /// The lock was lost while a mutation was in flight; nothing more is recorded.
    Abandoned,
}

/// What happened to it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// The gates passed and an apply goes on.
    Ready,
    /// The gates passed and nothing more was asked for.
    Enough,
    /// A gate refused under the lock.
    Refused,
    /// The lock was never taken, or is lost before anything was durable.
    NotHeld,
    Acked,
    /// The step failed; `held`: the lock stands and the step was not written.
    StepFailed {
        held: bool,
    },
    /// Every member of the block took effect.
    Applied,
    /// A member of the block failed.
    Failed,
    /// The lease was closed while the block was in flight.
    Lost,
    Released,
    NotReleased,
}

/// What a transition depends on besides state and event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Situation {
    pub blocks: usize,
    /// A first signal arrived.
    pub interrupted: bool,
    /// The block that failed was a connector deletion whose outcome is not proved.
    pub drifted: bool,
}

/// The one thing to do next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Effect {
    Begin,
    Start {
        block: usize,
    },
    Mutate {
        block: usize,
    },
    Complete {
        block: usize,
    },
    /// The block was started and is not sent any more.
    CompleteUnsent {
        block: usize,
    },
    Mark(FailureCode),
    Clear,
    Commit,
    Release,
    /// Nothing follows.
    End,
}

/// The whole table. None for an event that the state does not expect: the driver never makes one, and the tests say so.
pub fn transition(state: State, event: Event, situation: Situation) -> Option<(State, Effect)> {
    let release = |verdict| (State::Releasing(verdict), Effect::Release);
    let end = |verdict| (State::Ended { verdict, released: false }, Effect::End);
    let mark = |code| (State::Marking, Effect::Mark(code));
    let next = match (state, event) {
        (State::Preparing, Event::Ready) => (State::Beginning, Effect::Begin),
        (State::Preparing, Event::Enough) => release(Verdict::Looked),
        (State::Preparing, Event::Refused) => release(Verdict::Stopped),
        (State::Preparing, Event::NotHeld) => end(Verdict::Stopped),

        (State::Beginning, Event::Acked) if situation.interrupted => (State::Clearing, Effect::Clear),
        (State::Beginning, Event::Acked) => start_or_commit(0, situation),

        (State::Starting { block }, Event::Acked) if situation.interrupted => {
            (State::Completing { block, succeeded: false }, Effect::CompleteUnsent { block })
        }
        (State::Starting { block }, Event::Acked) => (State::Mutating { block }, Effect::Mutate { block }),
        // The entries were not written: with no earlier block nothing was started at all.
        (State::Starting { block: 0 }, Event::StepFailed { held: true }) => (State::Clearing, Effect::Clear),
        (State::Starting { .. }, Event::StepFailed { held: true }) => mark(FailureCode::OperationInterrupted),

        (State::Mutating { block }, Event::Applied) => {
            (State::Completing { block, succeeded: true }, Effect::Complete { block })
        }
        (State::Mutating { block }, Event::Failed) => {
            (State::Completing { block, succeeded: false }, Effect::Complete { block })
        }
        (State::Mutating { .. }, Event::Lost) => end(Verdict::Abandoned),

        (State::Completing { block, succeeded: true }, Event::Acked) => {
            let last = block + 1 >= situation.blocks;
            match situation.interrupted && !last {
                true => mark(FailureCode::OperationInterrupted),
                false => start_or_commit(block + 1, situation),
            }
        }
        (State::Completing { succeeded: false, .. }, Event::Acked) => {
            mark(match (situation.drifted, situation.interrupted) {
                (true, _) => FailureCode::ConnectorRemovalDrift,
                (false, true) => FailureCode::OperationInterrupted,
                (false, false) => FailureCode::RuntimeActionFailed,
            })
        }

        (State::Marking, Event::Acked) => release(Verdict::RecoveryRequired),
        (State::Clearing, Event::Acked) => release(Verdict::Cleared),
        (State::Committing, Event::Acked) => release(Verdict::Committed),
        // Nothing was started, so nothing is left to decide.
        (State::Committing, Event::StepFailed { held: true }) if situation.blocks == 0 => {
            (State::Clearing, Effect::Clear)
        }

        (
            State::Beginning | State::Completing { .. } | State::Marking | State::Clearing | State::Committing,
            Event::StepFailed { held: true },
        ) => release(Verdict::Unresolved),
        (
            State::Beginning
            | State::Starting { .. }
            | State::Completing { .. }
            | State::Marking
            | State::Clearing
            | State::Committing,
            Event::StepFailed { held: false },
        ) => end(Verdict::Unresolved),

        (State::Releasing(verdict), Event::Released) => (State::Ended { verdict, released: true }, Effect::End),
        (State::Releasing(verdict), Event::NotReleased) => (State::Ended { verdict, released: false }, Effect::End),

        (
            State::Preparing,
            Event::Acked
            | Event::StepFailed { .. }
            | Event::Applied
            | Event::Failed
            | Event::Lost
            | Event::Released
            | Event::NotReleased,
        )
        | (
            State::Mutating { .. },
            Event::Ready
            | Event::Enough
            | Event::Refused
            | Event::NotHeld
            | Event::Acked
            | Event::StepFailed { .. }
            | Event::Released
            | Event::NotReleased,
        )
        | (
            State::Beginning
            | State::Starting { .. }
            | State::Completing { .. }
            | State::Marking
            | State::Clearing
            | State::Committing,
            Event::Ready
            | Event::Enough
            | Event::Refused
            | Event::NotHeld
            | Event::Applied
            | Event::Failed
            | Event::Lost
            | Event::Released
            | Event::NotReleased,
        )
        | (
            State::Releasing(_),
            Event::Ready
            | Event::Enough
            | Event::Refused
            | Event::NotHeld
            | Event::Acked
            | Event::StepFailed { .. }
            | Event::Applied
            | Event::Failed
            | Event::Lost,
        )
        | (
            State::Ended { .. },
            Event::Ready
            | Event::Enough
            | Event::Refused
            | Event::NotHeld
            | Event::Acked
            | Event::StepFailed { .. }
            | Event::Applied
            | Event::Failed
            | Event::Lost
            | Event::Released
            | Event::NotReleased,
        ) => return None,
    };
    Some(next)
}

fn start_or_commit(block: usize, situation: Situation) -> (State, Effect) {
    match block < situation.blocks {
        true => (State::Starting { block }, Effect::Start { block }),
        false => (State::Committing, Effect::Commit),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const EVENTS: [Event; 12] = [
        Event::Ready,
        Event::Enough,
        Event::Refused,
        Event::NotHeld,
        Event::Acked,
        Event::StepFailed { held: true },
        Event::StepFailed { held: false },
        Event::Applied,
        Event::Failed,
        Event::Lost,
        Event::Released,
        Event::NotReleased,
    ];

    /// What the driver can answer an effect with.
    fn answers(effect: Option<Effect>) -> &'static [Event] {
        match effect {
            None => &[Event::Ready, Event::Enough, Event::Refused, Event::NotHeld],
            Some(Effect::Mutate { .. }) => &[Event::Applied, Event::Failed, Event::Lost],
            Some(Effect::Release) => &[Event::Released, Event::NotReleased],
            Some(Effect::End) => &[],
            Some(
                Effect::Begin
                | Effect::Start { .. }
                | Effect::Complete { .. }
                | Effect::CompleteUnsent { .. }
                | Effect::Mark(_)
                | Effect::Clear
                | Effect::Commit,
            ) => &[Event::Acked, Event::StepFailed { held: true }, Event::StepFailed { held: false }],
        }
    }

    /// Every path of every operation of `blocks` blocks, a signal arriving at any moment.
    fn paths(blocks: usize) -> Vec<Vec<(State, Event, Effect)>> {
        fn walk(
            state: State,
            effect: Option<Effect>,
            interrupted: bool,
            blocks: usize,
            path: &mut Vec<(State, Event, Effect)>,
            all: &mut Vec<Vec<(State, Event, Effect)>>,
        ) {
            let events = answers(effect);
            if events.is_empty() {
                all.push(path.clone());
            }
            for event in events {
                for signal in [interrupted, true] {
                    let situation = Situation { blocks, interrupted: signal, drifted: false };
                    let (next, following) = transition(state, *event, situation)
                        .unwrap_or_else(|| panic!("{state:?} does not expect {event:?}"));
                    path.push((next, *event, following));
                    walk(next, Some(following), signal, blocks, path, all);
                    path.pop();
                    if interrupted {
                        break;
                    }
                }
            }
        }
        let mut all = Vec::new();
        walk(State::Preparing, None, false, blocks, &mut Vec::new(), &mut all);
        all
    }

    fn effects(path: &[(State, Event, Effect)]) -> Vec<Effect> {
        path.iter().map(|(_, _, effect)| *effect).collect()
    }

    fn every_path() -> impl Iterator<Item = Vec<(State, Event, Effect)>> {
        (0..=3).flat_map(paths)
    }

    #[test]
    fn every_path_ends_and_every_answer_of_an_effect_is_expected() {
        for path in every_path() {
            assert_eq!(effects(&path).last(), Some(&Effect::End));
            assert!(matches!(path.last(), Some((State::Ended { .. }, _, _))));
        }
    }

    #[test]
    fn an_ended_operation_expects_nothing_and_no_state_expects_a_foreign_answer() {
        let mut seen = HashSet::new();
        for path in every_path() {
            let mut state = State::Preparing;
            let mut effect = None;
            for (next, _, following) in path {
                seen.insert((state, effect));
                (state, effect) = (next, Some(following));
            }
            seen.insert((state, effect));
        }
        for (state, effect) in seen {
            for event in EVENTS {
                let expected = answers(effect).contains(&event);
                for interrupted in [false, true] {
                    let outcome = transition(state, event, Situation { blocks: 3, interrupted, drifted: false });
                    assert_eq!(outcome.is_some(), expected, "{state:?} {event:?}");
                }
            }
        }
    }

    /// SAF-029, I2: intent, then per block started, mutation, completed, in order.
    #[test]
    fn no_block_is_sent_without_its_intent_and_its_started_entries_before_it() {
        for path in every_path() {
            let mut begun = false;
            let mut started = None;
            let mut completed = 0;
            for (_, event, effect) in &path {
                match effect {
                    Effect::Begin => begun = true,
                    Effect::Start { block } => {
                        assert!(begun && *block == completed);
                        started = Some(*block);
                    }
                    Effect::Mutate { block } => {
                        assert_eq!((started, *event), (Some(*block), Event::Acked));
                    }
                    Effect::Complete { block } => {
                        assert_eq!(started, Some(*block));
                        completed = block + 1;
                    }
                    Effect::CompleteUnsent { block } => assert_eq!(started, Some(*block)),
                    Effect::Mark(_) | Effect::Clear | Effect::Commit | Effect::Release | Effect::End => {}
                }
            }
        }
    }

    /// I14
    #[test]
    fn after_a_failure_nothing_is_sent_any_more() {
        for path in every_path() {
            let failed = path.iter().position(|(_, event, _)| {
                matches!(
                    event,
                    Event::Failed | Event::Lost | Event::StepFailed { .. } | Event::Refused | Event::NotHeld
                )
            });
            if let Some(failed) = failed {
                let after = &effects(&path)[failed..];
                assert!(
                    !after.iter().any(|e| matches!(e, Effect::Mutate { .. } | Effect::Start { .. } | Effect::Begin))
                );
            }
        }
    }

    #[test]
    fn ownership_is_committed_only_after_every_block_succeeded() {
        for blocks in 0..=3 {
            for path in paths(blocks) {
                if effects(&path).contains(&Effect::Commit) {
                    let applied = path.iter().filter(|(_, event, _)| *event == Event::Applied).count();
                    assert_eq!(applied, blocks);
                    assert!(!path.iter().any(|(_, event, _)| *event == Event::Failed));
                }
            }
        }
    }

    #[test]
    fn the_intent_is_taken_back_only_when_no_started_entry_stands() {
        for path in every_path() {
            if effects(&path).contains(&Effect::Clear) {
                let started =
                    path.windows(2).any(|pair| matches!(pair[0].2, Effect::Start { .. }) && pair[1].1 == Event::Acked);
                assert!(!started);
            }
        }
    }

    /// SAF-030: whatever was started and did not commit is marked, or its error says that it could not be.
    #[test]
    fn a_started_operation_ends_committed_marked_unresolved_or_abandoned() {
        for path in every_path() {
            let started = path.windows(2).any(|p| matches!(p[0].2, Effect::Start { .. }) && p[1].1 == Event::Acked);
            let Some((State::Ended { verdict, .. }, _, _)) = path.last() else { panic!("not ended") };
            if started {
                assert!(matches!(
                    verdict,
                    Verdict::Committed | Verdict::RecoveryRequired | Verdict::Unresolved | Verdict::Abandoned
                ));
            } else {
                assert!(!matches!(verdict, Verdict::RecoveryRequired | Verdict::Abandoned));
            }
        }
    }

    #[test]
    fn a_signal_starts_no_further_action() {
        for (state, event) in [
            (State::Beginning, Event::Acked),
            (State::Starting { block: 0 }, Event::Acked),
            (State::Completing { block: 0, succeeded: true }, Event::Acked),
        ] {
            let (_, effect) =
                transition(state, event, Situation { blocks: 3, interrupted: true, drifted: false }).expect("expected");
            assert!(!matches!(effect, Effect::Start { .. } | Effect::Mutate { .. }), "{state:?} {effect:?}");
        }
    }

    #[test]
    fn a_signal_during_the_last_action_does_not_keep_a_finished_operation_from_its_commit() {
        let situation = Situation { blocks: 2, interrupted: true, drifted: false };
        let outcome = transition(State::Completing { block: 1, succeeded: true }, Event::Acked, situation);
        assert_eq!(outcome, Some((State::Committing, Effect::Commit)));
    }

    /// An apply without actions is still a durable operation.
    #[test]
    fn an_operation_without_actions_begins_and_commits() {
        let situation = Situation { blocks: 0, interrupted: false, drifted: false };
        assert_eq!(transition(State::Preparing, Event::Ready, situation), Some((State::Beginning, Effect::Begin)));
        assert_eq!(transition(State::Beginning, Event::Acked, situation), Some((State::Committing, Effect::Commit)));
    }
}
