//! The end of a session at any moment, and what is said of the step that it met.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::support::{Server, each};
use crate::codes::Code;
use crate::state::error::{Durable, StateErrorKind};
use crate::state::store::{Snapshot, StateBackend, StateOperation};
use crate::state::testing::{at, completed, intent, owning, started, topic_creates};

fn kill(server: &Server) {
    // Every session of the writer, its witness included.
    server.sql(&format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{}'", server.writer));
}

#[test]
fn a_terminated_session_is_told_at_once_and_never_used_again() {
    each(|server| {
        let address = server.address("killed");
        let mut operation = server.acquire(&address);
        let seen = operation.observe().unwrap();
        let told = Arc::new(AtomicBool::new(false));
        operation.watch(Box::new({
            let told = Arc::clone(&told);
            move || told.store(true, Ordering::SeqCst)
        }));
        assert!(!told.load(Ordering::SeqCst));
        kill(&server);
        let killed = Instant::now();
        while !told.load(Ordering::SeqCst) {
            assert!(killed.elapsed() < Duration::from_secs(1), "nobody was told");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(operation.check_lock().unwrap_err().kind, StateErrorKind::LockLost);
        let error = operation.begin(seen.clone(), intent(&seen, topic_creates(1))).unwrap_err();
        assert_eq!((error.kind.clone(), error.durable()), (StateErrorKind::LockLost, Durable::No));
        assert_eq!(operation.release().unwrap_err().code(), Code::E423StateLockLost);
        assert_eq!(server.store().read_snapshot(&address).unwrap(), seen);
        server.acquire(&address).release().unwrap();
    });
}

#[test]
fn a_lock_that_somebody_unlocked_inside_the_session_is_lost() {
    each(|server| {
        let address = server.address("unlocked");
        let mut operation = server.acquire(&address);
        operation.check_lock().unwrap();
        operation.unlock_behind_its_back();
        assert_eq!(operation.check_lock().unwrap_err().kind, StateErrorKind::LockLost);
    });
}

/// SAF-030: a second hold sees what the first left pending.
#[test]
fn release_after_a_commit_says_whether_it_is_proved() {
    each(|server| {
        let address = server.address("released");
        let mut operation = server.acquire(&address);
        let snapshot = operation.observe().unwrap();
        let begun = operation.begin(snapshot.clone(), intent(&snapshot, Vec::new())).unwrap();
        operation.commit(begun.clone(), Some(owning(&begun, "orders")), at(4)).unwrap();
        kill(&server);
        std::thread::sleep(Duration::from_millis(100));
        let error = operation.release().unwrap_err();
        assert_eq!((error.code(), error.durable()), (Code::E426StateReleaseFailedAfterCommit, Durable::Yes));
    });
}

/// I6, I7, I8, I11, I13: whatever the moment, the answer agrees with the rows.
#[test]
fn a_session_killed_at_a_random_moment_of_an_operation_leaves_rows_that_agree_with_the_answer() {
    each(|server| {
        let seed = Instant::now().elapsed().subsec_nanos() ^ std::process::id();
        println!("seed {seed}");
        let (mut whole, mut cut) = (0, 0);
        for round in 0..25_u32 {
            let address = server.address(&format!("round-{round}"));
            let delay = Duration::from_micros(u64::from((seed ^ round.wrapping_mul(2_654_435_761)) % 60_000));
            let mut operation = server.acquire(&address);
            let first = operation.observe().unwrap();
            let outcome = std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(delay);
                    // In some rounds the sessions that look for the outcome end as well, for a while.
                    for _ in 0..if round % 5 == 0 { 40 } else { 1 } {
                        kill(&server);
                        std::thread::sleep(Duration::from_millis(3));
                    }
                });
                run(&mut operation, first)
            });
            let seen = server.store().read_snapshot(&address).unwrap();
            match outcome {
                Ok(last) => {
                    whole += 1;
                    assert_eq!(seen, last, "round {round}");
                }
                Err(stopped) => {
                    let (before, tried, error) = *stopped;
                    cut += 1;
                    let control = |snapshot: &Snapshot| snapshot.control.clone();
                    match (error.code(), error.durable()) {
                        (Code::E426StateReleaseFailedAfterCommit, Durable::Yes) => {
                            assert!(seen.control.control.is_clear() && tried == "commit", "round {round}");
                            assert_eq!(seen.state.state.serial, 1);
                        }
                        (Code::E423StateLockLost, Durable::Yes) => {
                            assert_ne!(control(&seen), control(&before), "round {round} {tried}");
                        }
                        (Code::E423StateLockLost, Durable::No) => assert_eq!(seen, before, "round {round} {tried}"),
                        // A witness that could not be opened: nothing was written.
                        (Code::E420StateBackendUnavailable, Durable::No) => assert_eq!(seen, before, "round {round}"),
                        other => panic!("round {round} {tried}: {other:?} {error}"),
                    }
                }
            }
            drop(operation);
            server.acquire(&address).release().unwrap();
        }
        println!("whole {whole}, cut {cut}");
        assert!(cut > 0, "no session was killed in time");
    });
}

type Cut = Box<(Snapshot, &'static str, crate::state::error::StateError)>;

/// One operation of four actions; the snapshot before the step that failed.
fn run<O: StateOperation>(operation: &mut O, first: Snapshot) -> Result<Snapshot, Cut> {
    let mut snapshot = first;
    let intent = intent(&snapshot, topic_creates(4));
    let begun = operation.begin(snapshot.clone(), intent.clone());
    snapshot = begun.map_err(|error| Box::new((snapshot, "begin", error)))?;
    for index in 0..4 {
        let next = operation.record_progress(snapshot.clone(), vec![started(&intent, index)]);
        snapshot = next.map_err(|error| Box::new((snapshot, "started", error)))?;
        let next = operation.record_progress(snapshot.clone(), vec![completed(&intent, index, true)]);
        snapshot = next.map_err(|error| Box::new((snapshot, "completed", error)))?;
    }
    let next = owning(&snapshot, "orders");
    operation.commit(snapshot.clone(), Some(next), at(4)).map_err(|error| Box::new((snapshot, "commit", error)))
}
