//! Flink jobs: what is seen of one, and what a declaration means against that. A live job shows its name, its id and its
//! state, never its SQL: what it runs is known only from the record of its submission, so a job that lives is never replaced
//! and one that has ended is never silently submitted again.

mod cluster;
mod diff;
mod observation;

pub use cluster::cluster_of;
pub use diff::JobDiff;
pub use observation::{JobId, JobObservation, JobState, LiveJob, Tasks};
