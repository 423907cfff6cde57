//! One job as the JobManager lists it.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::compiler::canonical::{Checksum, canonical_value};
use crate::ownership::model::ResourceId;

/// The id under which a job is submitted, or runs: 32 hexadecimal digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct JobId(String);

impl JobId {
    pub fn parse(text: &str) -> Option<Self> {
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == 32 && text.bytes().all(hex)).then(|| Self(text.to_owned()))
    }

    /// The id that one operation submits one job under. A JobManager takes an id once: whoever submits again for the same
    /// operation cannot start a second job.
    pub fn of_action(operation: &str, resource: &ResourceId, artifact: &Checksum) -> Option<Self> {
        let preimage = serde_json::json!(["flink_job", operation, resource.as_str(), artifact.as_str()]);
        let bytes = canonical_value(&preimage).ok()?;
        let digest = Checksum::of_bytes(&bytes);
        let hex = digest.as_str().strip_prefix("sha256:")?.get(..32)?;
        Self::parse(hex)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for JobId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// The state of a job, as Flink spells it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum JobState {
    Initializing,
    Created,
    Running,
    Failing,
    Failed,
    Cancelling,
    Canceled,
    Finished,
    Restarting,
    Suspended,
    Reconciling,
}

impl JobState {
    pub const ALL: [Self; 11] = [
        Self::Initializing,
        Self::Created,
        Self::Running,
        Self::Failing,
        Self::Failed,
        Self::Cancelling,
        Self::Canceled,
        Self::Finished,
        Self::Restarting,
        Self::Suspended,
        Self::Reconciling,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Initializing => "INITIALIZING",
            Self::Created => "CREATED",
            Self::Running => "RUNNING",
            Self::Failing => "FAILING",
            Self::Failed => "FAILED",
            Self::Cancelling => "CANCELLING",
            Self::Canceled => "CANCELED",
            Self::Finished => "FINISHED",
            Self::Restarting => "RESTARTING",
            Self::Suspended => "SUSPENDED",
            Self::Reconciling => "RECONCILING",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// Whether the job has ended: nothing that the cluster does by itself makes it run again.
    pub const fn has_ended(self) -> bool {
        match self {
            Self::Failed | Self::Canceled | Self::Finished => true,
            Self::Initializing
            | Self::Created
            | Self::Running
            | Self::Failing
            | Self::Cancelling
            | Self::Restarting
            | Self::Suspended
            | Self::Reconciling => false,
        }
    }

    /// Whether the job runs or is on its way to its first task.
    pub const fn runs(self) -> bool {
        match self {
            Self::Initializing | Self::Created | Self::Running => true,
            Self::Failing
            | Self::Failed
            | Self::Cancelling
            | Self::Canceled
            | Self::Finished
            | Self::Restarting
            | Self::Suspended
            | Self::Reconciling => false,
        }
    }

    /// Whether a failure brought the job here: Flink keeps its cause.
    pub const fn has_failed(self) -> bool {
        match self {
            Self::Failing | Self::Failed | Self::Restarting => true,
            Self::Initializing
            | Self::Created
            | Self::Running
            | Self::Cancelling
            | Self::Canceled
            | Self::Finished
            | Self::Suspended
            | Self::Reconciling => false,
        }
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How many tasks of a job run, have finished, and are there in all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tasks {
    pub running: u32,
    pub finished: u32,
    pub total: u32,
}

impl Tasks {
    /// A job without slots is RUNNING without a task that runs.
    pub const fn all_run(self) -> bool {
        self.total > 0 && self.running + self.finished == self.total
    }
}

/// A job that the JobManager lists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LiveJob {
    pub id: JobId,
    pub state: JobState,
    pub tasks: Tasks,
}

/// The job of one exact name. Of several, the only one that has not ended; else the one that began last.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobObservation {
    pub name: String,
    pub job: Option<LiveJob>,
}

impl JobObservation {
    pub fn absent(name: impl Into<String>) -> Self {
        Self { name: name.into(), job: None }
    }

    pub fn exists(&self) -> bool {
        self.job.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::artifact::Kind;

    fn id(operation: &str, name: &str, content: &str) -> JobId {
        let resource = ResourceId::new("shop", "dev", Kind::FlinkJob, name).expect("an id");
        JobId::of_action(operation, &resource, &Checksum::of_bytes(content.as_bytes())).expect("a job id")
    }

    /// SAF-044: the id is the first half of a digest of what the durable intent holds, and of nothing else.
    #[test]
    fn a_job_id_follows_from_operation_resource_and_content_alone() {
        let known = id("op", "clean_processor", "x");
        assert_eq!(known, id("op", "clean_processor", "x"));
        for other in
            [id("op2", "clean_processor", "x"), id("op", "dirty_processor", "x"), id("op", "clean_processor", "y")]
        {
            assert_ne!(known, other);
        }
        assert_eq!(JobId::parse(known.as_str()), Some(known));
    }

    #[test]
    fn only_thirty_two_lower_case_hexadecimal_digits_are_a_job_id() {
        assert!(JobId::parse(&"a".repeat(32)).is_some());
        for text in ["", "../overview", &"A".repeat(32), &"a".repeat(31), &"g".repeat(32)] {
            assert_eq!(JobId::parse(text), None);
        }
    }

    #[test]
    fn a_job_whose_tasks_do_not_all_run_does_not_run() {
        assert!(Tasks { running: 1, finished: 1, total: 2 }.all_run());
        assert!(!Tasks { running: 1, finished: 0, total: 2 }.all_run());
        assert!(!Tasks::default().all_run());
    }
}
