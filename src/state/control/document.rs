//! The digest of the control document, kept while events arrive.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::compiler::canonical::{Checksum, to_canonical};
use crate::state::model::StateAddress;

use super::event::{Event, Intent, ProgressEntry, RecoveryRecord};
use super::grammar::Frontier;
use super::resume::ResumeRecord;
use super::{Control, ControlError, RESUMED_VERSION, RUNNER_VERSION, Status};

/// An operation that is not over.
#[derive(Clone)]
pub struct Open {
    pub version: u8,
    pub intent: Arc<Intent>,
    pub progress: Arc<Vec<ProgressEntry>>,
    pub recovery: Option<RecoveryRecord>,
    pub resumes: Vec<ResumeRecord>,
    pub event_index: u64,
    pub frontier: Frontier,
    /// SHA-256 over the document up to the last progress entry: `progress` is followed only by `recovery`, `resume_history` and
    /// `status`.
    running: Sha256,
}

impl Open {
    pub fn new(address: &str, version: u8, intent: Intent) -> Result<Self, ControlError> {
        let running = digest_of_head(address, version, &intent)?;
        Ok(Self {
            version,
            intent: Arc::new(intent),
            progress: Arc::default(),
            recovery: None,
            resumes: Vec::new(),
            event_index: 0,
            frontier: Frontier::default(),
            running,
        })
    }

    pub fn push(&mut self, entry: ProgressEntry) -> Result<(), ControlError> {
        if !self.progress.is_empty() {
            self.running.update(b",");
        }
        self.running.update(canonical(&entry)?);
        Arc::make_mut(&mut self.progress).push(entry);
        Ok(())
    }

    /// Goes on after an interruption; the version that this makes stands before everything else in the document.
    pub fn resume(&mut self, address: &str, record: ResumeRecord) -> Result<(), ControlError> {
        self.running = digest_of_head(address, RESUMED_VERSION, &self.intent)?;
        for (index, entry) in self.progress.iter().enumerate() {
            if index > 0 {
                self.running.update(b",");
            }
            self.running.update(canonical(entry)?);
        }
        self.version = RESUMED_VERSION;
        self.recovery = None;
        self.resumes.push(record);
        Ok(())
    }

    pub fn checksum(&self) -> Result<Checksum, ControlError> {
        let mut whole = self.running.clone();
        whole.update(b"],\"recovery\":");
        whole.update(canonical(&self.recovery)?);
        if !self.resumes.is_empty() {
            whole.update(b",\"resume_history\":");
            whole.update(canonical(&self.resumes)?);
        }
        let status = if self.recovery.is_some() { Status::RecoveryRequired } else { Status::InProgress };
        whole.update(b",\"status\":");
        whole.update(canonical(&status)?);
        whole.update(b"}");
        Ok(Checksum::of_digest(whole.finalize().into()))
    }
}

/// Everything before the first progress entry.
fn digest_of_head(address: &str, version: u8, intent: &Intent) -> Result<Sha256, ControlError> {
    let mut running = Sha256::new();
    running.update(b"{\"address\":");
    running.update(canonical(&address)?);
    running.update(format!(",\"control_version\":{version},\"intent\":"));
    running.update(canonical(&intent.to_value(version))?);
    running.update(b",\"progress\":[");
    Ok(running)
}

fn canonical<T: Serialize>(value: &T) -> Result<Vec<u8>, ControlError> {
    to_canonical(value).map_err(|_| ControlError("a value has no canonical form"))
}

pub fn clear_checksum(address: &str, version: u8) -> Checksum {
    let text = Value::from(address);
    Checksum::of_bytes(
        format!(
            "{{\"address\":{text},\"control_version\":{version},\"intent\":null,\"progress\":[],\"recovery\":null,\
             \"status\":\"clear\"}}"
        )
        .as_bytes(),
    )
}

#[derive(Deserialize)]
struct Document {
    control_version: u8,
    intent: Intent,
    progress: Vec<ProgressEntry>,
    recovery: Option<RecoveryRecord>,
    #[serde(default)]
    resume_history: Vec<ResumeRecord>,
}

impl Control {
    /// Reads the whole document of a pending operation by folding what it says; anything that the grammar would not have
    /// produced is refused.
    pub fn read(address: &StateAddress, value: &Value) -> Result<Self, ControlError> {
        let document: Document =
            serde_json::from_value(value.clone()).map_err(|_| ControlError("its control is malformed"))?;
        // Nothing begins resumed: the resumptions make a version 5 of a version 4.
        let begun_in = match document.control_version {
            RESUMED_VERSION => RUNNER_VERSION,
            version => version,
        };
        let (mut control, _) = Self::clear(address).apply_in_version(Event::Intent(document.intent), begun_in)?;
        let mut resumes = document.resume_history.into_iter().peekable();
        let resumed = |control: Self, record: ResumeRecord| {
            let interrupted = control.apply(Event::RecoveryRequired(record.recovery.clone()))?.0;
            Ok::<_, ControlError>(interrupted.apply(Event::Resumed(Box::new(record)))?.0)
        };
        for (at, entry) in document.progress.into_iter().enumerate() {
            while let Some(record) = resumes.next_if(|record| usize::try_from(record.progress_count) == Ok(at)) {
                control = resumed(control, record)?;
            }
            control = control.apply(Event::Progress(entry))?.0;
        }
        for record in resumes {
            control = resumed(control, record)?;
        }
        if let Some(record) = document.recovery {
            control = control.apply(Event::RecoveryRequired(record))?.0;
        }
        if control.open.as_ref().is_some_and(|open| open.frontier.inside_completed_run()) {
            return Err(ControlError("the outcomes of a group are recorded together"));
        }
        if control.to_value() == *value { Ok(control) } else { Err(ControlError("its control is malformed")) }
    }

    /// The whole document. Its canonical form has the digest [`Control::checksum`].
    pub fn to_value(&self) -> Value {
        let mut document = json!({
            "address": self.site.text,
            "control_version": self.version(),
            "intent": self.open.as_ref().map(|open| open.intent.to_value(open.version)),
            "progress": self.progress(),
            "recovery": self.recovery(),
            "status": self.status().status,
        });
        if let (Value::Object(members), false) = (&mut document, self.resumes().is_empty()) {
            members.insert("resume_history".to_owned(), json!(self.resumes()));
        }
        document
    }
}
