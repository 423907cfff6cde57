//! A declared job against the live one, by the record of its submission.

use serde_json::{Map, Value, json};

use super::observation::{JobObservation, JobState};
use crate::compiler::canonical::Checksum;
use crate::planner::model::Verb;

/// What is declared, what was recorded, and how what lives is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobDiff {
    /// None when no job of the name is listed.
    pub state: Option<JobState>,
    recorded: Option<Checksum>,
    declared: Checksum,
}

impl JobDiff {
    pub fn of(declared: &Checksum, recorded: Option<&Checksum>, live: &JobObservation) -> Self {
        let state = live.job.as_ref().map(|job| job.state);
        Self { state, recorded: recorded.cloned(), declared: declared.clone() }
    }

    /// Nothing is known of what is live, so nothing is assumed to be.
    pub fn of_absent(declared: &Checksum) -> Self {
        Self { state: None, recorded: None, declared: declared.clone() }
    }

    pub fn exists(&self) -> bool {
        self.state.is_some()
    }

    /// A job that runs what was recorded needs nothing; one that runs anything else would have to be replaced; one that does
    /// not run would be submitted again.
    pub(in crate::planner) fn verb(&self) -> Option<Verb> {
        match self.state {
            None => Some(Verb::Submit),
            Some(state) if state.runs() => (self.recorded.as_ref() != Some(&self.declared)).then_some(Verb::Update),
            Some(_) => Some(Verb::Submit),
        }
    }

    pub(in crate::planner) fn changes(&self) -> Map<String, Value> {
        let mut changes = Map::new();
        if self.verb().is_some() && self.recorded.as_ref() != Some(&self.declared) {
            changes.insert("artifact_checksum".to_owned(), json!({"from": self.recorded, "to": self.declared}));
        }
        if let (Some(Verb::Submit), Some(state)) = (self.verb(), self.state) {
            changes.insert("status".to_owned(), json!({"from": state.as_str(), "to": JobState::Running.as_str()}));
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::flink::{JobId, LiveJob, Tasks};

    fn live(state: JobState) -> JobObservation {
        let id = JobId::parse(&"a".repeat(32)).expect("an id");
        JobObservation { name: "j".to_owned(), job: Some(LiveJob { id, state, tasks: Tasks::default() }) }
    }

    /// SAF-043, SAF-044: by every state of a job and by whether its record says what is declared.
    #[test]
    fn only_a_job_that_runs_what_is_recorded_needs_nothing() {
        let (declared, other) = (Checksum::of_bytes(b"declared"), Checksum::of_bytes(b"other"));
        for state in JobState::ALL {
            let verb = |recorded: Option<&Checksum>| JobDiff::of(&declared, recorded, &live(state)).verb();
            let (same, changed) = match state {
                JobState::Running | JobState::Created | JobState::Initializing => (None, Some(Verb::Update)),
                _ends_or_may_end => (Some(Verb::Submit), Some(Verb::Submit)),
            };
            assert_eq!(verb(Some(&declared)), same, "{state}");
            assert_eq!((verb(Some(&other)), verb(None)), (changed, changed), "{state}");
        }
        for recorded in [None, Some(&declared), Some(&other)] {
            assert_eq!(JobDiff::of(&declared, recorded, &JobObservation::absent("j")).verb(), Some(Verb::Submit));
        }
    }

    #[test]
    fn changes_name_checksums_and_a_state_and_never_sql() {
        let (declared, other) = (Checksum::of_bytes(b"declared"), Checksum::of_bytes(b"other"));
        let same = JobDiff::of(&declared, Some(&declared), &live(JobState::Running));
        assert!(same.changes().is_empty());
        let failed = JobDiff::of(&declared, Some(&other), &live(JobState::Failed)).changes();
        let expected = json!({
            "artifact_checksum": {"from": other, "to": declared},
            "status": {"from": "FAILED", "to": "RUNNING"},
        });
        assert_eq!(Value::Object(failed), expected);
    }
}
