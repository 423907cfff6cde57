//! Which tests bear one another.

use std::sync::{Condvar, Mutex, PoisonError};

/// How much a test changes at the worker of the connectors, and whether it bears that others do: each change makes the worker
/// rebalance, and a removal that meets a rebalance once it has started is refused. A change that is killed at every moment
/// and a cluster whose processes are killed want the whole machine, so they do not share it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Load {
    Light,
    /// Changes without a pause, beside others that do.
    Heavy,
    /// Removes, and needs a worker that nobody else changes.
    Alone,
    /// Kills the processes of a Flink cluster of its own, beside others that do, and starts them again.
    Cluster,
}

/// Tests of each load that run now.
static PRESENT: Mutex<[usize; 4]> = Mutex::new([0; 4]);
static LEFT: Condvar = Condvar::new();

/// Kept for as long as a test runs.
pub struct Turn(Load);

impl Turn {
    /// Waits until no test of another load runs.
    pub fn take(load: Load) -> Self {
        let bears = |(other, count): (usize, &usize)| *count == 0 || (other == load as usize && load != Load::Alone);
        let mut present = PRESENT.lock().unwrap_or_else(PoisonError::into_inner);
        while !present.iter().enumerate().all(bears) {
            present = LEFT.wait(present).unwrap_or_else(PoisonError::into_inner);
        }
        present[load as usize] += 1;
        Self(load)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        PRESENT.lock().unwrap_or_else(PoisonError::into_inner)[self.0 as usize] -= 1;
        LEFT.notify_all();
    }
}
