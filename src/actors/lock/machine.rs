//! The states of a lock hold. Pure: the actor feeds events and runs the effects, in order.
//!
//! What a store does inside one call is its own: it proves its right inside `Acquiring`, and inside `Stepping` it verifies a
//! commit, or finds out what became of one without an answer. A session that ends meanwhile closes the lease without waiting
//! for this table, which then only agrees.

use crate::actors::lease::Lost;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    Idle,
    Acquiring,
    Held,
    /// One durable step is being written.
    Stepping,
    /// An operation is committed under this hold; only the release is left.
    Finalized,
    Releasing {
        committed: bool,
    },
    Released,
    Lost {
        committed: bool,
    },
    /// The lock was never taken.
    Closed,
}

/// How a durable step ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepEnd {
    Acked,
    /// Acknowledged, and it commits the operation.
    Committed,
    /// Not written, and the hold stands.
    Refused,
    /// Acknowledged and committing, and the lock could not be proved afterwards.
    CommittedLost,
    /// Written or not: the hold cannot be used any more.
    Lost,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    Acquire,
    Taken,
    NotTaken,
    /// Observe, ensure ready or check.
    Read,
    /// A read found that the lock is gone.
    ReadLost,
    Step,
    StepEnded(StepEnd),
    /// The heartbeat could not prove the lock.
    Unproved(Lost),
    Release,
    Unlocked,
    NotUnlocked,
}

/// Why a message is refused without being tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// E423.
    LockLost,
    /// E426.
    CommittedNotReleased,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    TakeLock,
    OpenLease,
    /// Begin the heartbeat.
    StartProofs,
    RunRead,
    RunStep,
    CloseLease(Lost),
    /// Tell the subscribers.
    PublishLost,
    Unlock,
    Refuse(Refusal),
}

const fn refusal(committed: bool) -> Effect {
    Effect::Refuse(if committed { Refusal::CommittedNotReleased } else { Refusal::LockLost })
}

/// The whole table. An event that a state does not expect changes nothing: a message is refused, a late answer is dropped.
pub fn transition(state: State, event: Event) -> (State, Vec<Effect>) {
    use Effect::{CloseLease, OpenLease, PublishLost, RunRead, RunStep, StartProofs, TakeLock, Unlock};
    match (state, event) {
        (State::Idle, Event::Acquire) => (State::Acquiring, vec![TakeLock]),
        (State::Acquiring, Event::Taken) => (State::Held, vec![OpenLease, StartProofs]),
        (State::Acquiring, Event::NotTaken) => (State::Closed, vec![]),

        (State::Held, Event::Read) => (State::Held, vec![RunRead]),
        (State::Held, Event::ReadLost) => lost(Lost::ProofFailed, false),
        (State::Held, Event::Step) => (State::Stepping, vec![RunStep]),
        (State::Stepping, Event::StepEnded(StepEnd::Acked | StepEnd::Refused)) => (State::Held, vec![]),
        (State::Stepping, Event::StepEnded(StepEnd::Committed)) => (State::Finalized, vec![]),
        (State::Stepping, Event::StepEnded(StepEnd::Lost)) => lost(Lost::StepFailed, false),
        (State::Stepping, Event::StepEnded(StepEnd::CommittedLost)) => lost(Lost::StepFailed, true),
        (State::Held | State::Stepping, Event::Unproved(why)) => lost(why, false),

        (State::Held, Event::Release) => {
            (State::Releasing { committed: false }, vec![CloseLease(Lost::Released), Unlock])
        }
        (State::Finalized, Event::Release) => {
            (State::Releasing { committed: true }, vec![CloseLease(Lost::Released), Unlock])
        }
        (State::Finalized, Event::Unproved(why)) => lost(why, true),
        (State::Releasing { .. }, Event::Unlocked) => (State::Released, vec![]),
        (State::Releasing { committed }, Event::NotUnlocked) => (State::Lost { committed }, vec![PublishLost]),

        // A step that was acknowledged after the hold was lost: the step stands, the hold does not.
        (State::Lost { .. }, Event::StepEnded(StepEnd::Committed | StepEnd::CommittedLost)) => {
            (State::Lost { committed: true }, vec![])
        }

        (
            State::Lost { committed } | State::Releasing { committed },
            Event::Acquire | Event::Read | Event::Step | Event::Release,
        ) => (state, vec![refusal(committed)]),
        (State::Finalized, Event::Acquire | Event::Read | Event::Step) => (state, vec![refusal(true)]),
        (State::Idle, Event::Read | Event::Step | Event::Release)
        | (State::Acquiring, Event::Acquire | Event::Read | Event::Step | Event::Release)
        | (State::Held, Event::Acquire)
        | (State::Stepping, Event::Acquire | Event::Read | Event::Step | Event::Release)
        | (State::Released | State::Closed, Event::Acquire | Event::Read | Event::Step | Event::Release) => {
            (state, vec![refusal(false)])
        }

        (_, Event::Taken) => (state, vec![Unlock]),
        (
            _,
            Event::NotTaken
            | Event::ReadLost
            | Event::StepEnded(_)
            | Event::Unproved(_)
            | Event::Unlocked
            | Event::NotUnlocked,
        ) => (state, vec![]),
    }
}

/// The lease is closed before anybody is told.
fn lost(why: Lost, committed: bool) -> (State, Vec<Effect>) {
    (State::Lost { committed }, vec![Effect::CloseLease(why), Effect::PublishLost])
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATES: [State; 11] = [
        State::Idle,
        State::Acquiring,
        State::Held,
        State::Stepping,
        State::Finalized,
        State::Releasing { committed: false },
        State::Releasing { committed: true },
        State::Released,
        State::Lost { committed: false },
        State::Lost { committed: true },
        State::Closed,
    ];

    const EVENTS: [Event; 15] = [
        Event::Acquire,
        Event::Taken,
        Event::NotTaken,
        Event::Read,
        Event::ReadLost,
        Event::Step,
        Event::StepEnded(StepEnd::Acked),
        Event::StepEnded(StepEnd::Committed),
        Event::StepEnded(StepEnd::Refused),
        Event::StepEnded(StepEnd::CommittedLost),
        Event::StepEnded(StepEnd::Lost),
        Event::Unproved(Lost::FileReplaced),
        Event::Release,
        Event::Unlocked,
        Event::NotUnlocked,
    ];

    fn every() -> impl Iterator<Item = (State, Event, State, Vec<Effect>)> {
        STATES.into_iter().flat_map(|state| {
            EVENTS.into_iter().map(move |event| {
                let (next, effects) = transition(state, event);
                (state, event, next, effects)
            })
        })
    }

    /// Every move; whatever is not listed leaves the state as it is.
    const MOVES: [(State, Event, State); 19] = [
        (State::Idle, Event::Acquire, State::Acquiring),
        (State::Acquiring, Event::Taken, State::Held),
        (State::Acquiring, Event::NotTaken, State::Closed),
        (State::Held, Event::ReadLost, State::Lost { committed: false }),
        (State::Held, Event::Step, State::Stepping),
        (State::Held, Event::Unproved(Lost::FileReplaced), State::Lost { committed: false }),
        (State::Held, Event::Release, State::Releasing { committed: false }),
        (State::Stepping, Event::StepEnded(StepEnd::Acked), State::Held),
        (State::Stepping, Event::StepEnded(StepEnd::Refused), State::Held),
        (State::Stepping, Event::StepEnded(StepEnd::Committed), State::Finalized),
        (State::Stepping, Event::StepEnded(StepEnd::CommittedLost), State::Lost { committed: true }),
        (State::Stepping, Event::StepEnded(StepEnd::Lost), State::Lost { committed: false }),
        (State::Stepping, Event::Unproved(Lost::FileReplaced), State::Lost { committed: false }),
        (State::Finalized, Event::Release, State::Releasing { committed: true }),
        (State::Finalized, Event::Unproved(Lost::FileReplaced), State::Lost { committed: true }),
        (State::Releasing { committed: false }, Event::NotUnlocked, State::Lost { committed: false }),
        (State::Releasing { committed: true }, Event::NotUnlocked, State::Lost { committed: true }),
        (State::Lost { committed: false }, Event::StepEnded(StepEnd::Committed), State::Lost { committed: true }),
        (State::Lost { committed: false }, Event::StepEnded(StepEnd::CommittedLost), State::Lost { committed: true }),
    ];

    #[test]
    fn the_table_moves_exactly_where_it_is_meant_to() {
        let unlocked = |state| matches!(state, State::Releasing { .. }).then_some(State::Released);
        for (state, event, next, _) in every() {
            let listed = MOVES.iter().find(|(from, on, _)| (*from, *on) == (state, event)).map(|(_, _, to)| *to);
            let released = if event == Event::Unlocked { unlocked(state) } else { None };
            assert_eq!(next, listed.or(released).unwrap_or(state), "{state:?} {event:?}");
        }
    }

    #[test]
    fn every_state_is_reached_and_every_held_one_can_end() {
        let reach = |from: State| {
            let mut seen = vec![from];
            let mut at = 0;
            while let Some(state) = seen.get(at).copied() {
                for event in EVENTS {
                    let (next, _) = transition(state, event);
                    if !seen.contains(&next) {
                        seen.push(next);
                    }
                }
                at += 1;
            }
            seen
        };
        let reached = reach(State::Idle);
        assert!(STATES.iter().all(|state| reached.contains(state)), "{reached:?}");
        for state in STATES.into_iter().filter(|state| holds(*state)) {
            let ends = reach(state);
            assert!(ends.contains(&State::Released) && ends.contains(&State::Lost { committed: true }), "{state:?}");
        }
    }

    proptest::proptest! {
        /// I1 I3 I4: whatever comes in whatever order, a lease is opened once and closed for good before anybody is told; between
        /// the two, and only there, the store is read and written, one step at a time.
        #[test]
        fn no_order_of_events_works_without_an_open_lease(events in proptest::collection::vec(0..EVENTS.len(), 0..60)) {
            let (mut state, mut opened, mut closed, mut told, mut stepping) = (State::Idle, 0, 0, 0, 0);
            for index in events {
                if matches!(EVENTS[index], Event::StepEnded(_)) {
                    stepping = 0;
                }
                let (next, effects) = transition(state, EVENTS[index]);
                // A lock that is given late to somebody who does not want it any more is given back.
                if EVENTS[index] == Event::Taken && state != State::Acquiring {
                    proptest::prop_assert_eq!(&effects, &[Effect::Unlock]);
                }
                for effect in effects {
                    match effect {
                        Effect::OpenLease => opened += 1,
                        Effect::CloseLease(_) => closed += 1,
                        Effect::PublishLost => {
                            told += 1;
                            proptest::prop_assert_eq!(closed, 1, "closed before anybody is told");
                        }
                        Effect::RunStep => {
                            stepping += 1;
                            proptest::prop_assert_eq!((opened, closed, stepping), (1, 0, 1));
                        }
                        Effect::RunRead => proptest::prop_assert_eq!((opened, closed, stepping), (1, 0, 0)),
                        Effect::StartProofs => proptest::prop_assert_eq!((opened, closed), (1, 0)),
                        Effect::TakeLock | Effect::Unlock | Effect::Refuse(_) => {}
                    }
                }
                proptest::prop_assert!(opened <= 1 && closed <= opened && told <= 1, "{:?}", next);
                proptest::prop_assert_eq!(holds(next), opened == 1 && closed == 0, "{:?}", next);
                state = next;
            }
        }
    }

    fn holds(state: State) -> bool {
        matches!(state, State::Held | State::Stepping | State::Finalized)
    }

    /// I4
    #[test]
    fn only_a_held_lock_reads_or_writes_the_store() {
        for (state, event, _, effects) in every() {
            for effect in effects {
                match effect {
                    Effect::RunRead => assert_eq!((state, event), (State::Held, Event::Read)),
                    Effect::RunStep => assert_eq!((state, event), (State::Held, Event::Step)),
                    Effect::OpenLease | Effect::StartProofs => assert_eq!(event, Event::Taken),
                    Effect::TakeLock => assert_eq!((state, event), (State::Idle, Event::Acquire)),
                    Effect::CloseLease(_) | Effect::PublishLost | Effect::Unlock | Effect::Refuse(_) => {}
                }
            }
        }
    }

    /// I1
    #[test]
    fn every_end_of_a_hold_closes_the_lease_before_it_tells_anybody() {
        for (state, event, next, effects) in every() {
            if holds(state) && !holds(next) {
                assert!(matches!(effects.first(), Some(Effect::CloseLease(_))), "{state:?} {event:?} {effects:?}");
            }
            if matches!(next, State::Lost { .. }) && !matches!(state, State::Lost { .. }) {
                assert_eq!(effects.last(), Some(&Effect::PublishLost), "{state:?} {event:?}");
            }
        }
    }

    #[test]
    fn a_lost_released_or_closed_lock_is_never_held_again() {
        for (state, event, next, _) in every() {
            if matches!(state, State::Lost { .. } | State::Released | State::Closed) {
                assert!(!holds(next) && next != State::Acquiring, "{state:?} {event:?} {next:?}");
            }
        }
    }

    /// I7
    #[test]
    fn a_message_after_a_verified_commit_answers_with_the_commit_and_never_without_one() {
        for (state, event, _, effects) in every() {
            let committed = matches!(
                state,
                State::Finalized | State::Releasing { committed: true } | State::Lost { committed: true }
            );
            for effect in effects {
                if let Effect::Refuse(refusal) = effect {
                    assert_eq!(refusal == Refusal::CommittedNotReleased, committed, "{state:?} {event:?}");
                }
            }
        }
    }

    #[test]
    fn every_message_is_answered_by_work_or_by_a_refusal() {
        for (state, event, _, effects) in every() {
            if matches!(event, Event::Acquire | Event::Read | Event::Step | Event::Release) {
                let answered = effects.iter().any(|effect| {
                    matches!(
                        effect,
                        Effect::TakeLock | Effect::RunRead | Effect::RunStep | Effect::Unlock | Effect::Refuse(_)
                    )
                });
                assert!(answered, "{state:?} {event:?}");
            }
        }
    }

    #[test]
    fn a_commit_is_never_forgotten() {
        for (state, event, next, _) in every() {
            if matches!(state, State::Releasing { committed: true } | State::Lost { committed: true }) {
                assert!(
                    matches!(
                        next,
                        State::Releasing { committed: true } | State::Lost { committed: true } | State::Released
                    ),
                    "{state:?} {event:?} {next:?}"
                );
            }
        }
    }

    /// I3
    #[test]
    fn one_step_is_in_flight_at_most() {
        assert_eq!(
            transition(State::Stepping, Event::Step),
            (State::Stepping, vec![Effect::Refuse(Refusal::LockLost)])
        );
        assert_eq!(transition(State::Held, Event::Step), (State::Stepping, vec![Effect::RunStep]));
    }
}
