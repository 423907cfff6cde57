//! Flink jobs: what is seen of one, and what a declaration means against that. A live job shows its name, its id and its
//! state, never its SQL: what it runs is known only from the record of its submission.

mod observation;

pub use observation::{JobId, JobObservation, JobState, LiveJob, Tasks};
