//! Commands that talk to providers: a runtime for as long as the command lasts, progress on stderr, signals that stop it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::actors::Runtime;
use crate::codes::{Code, Diagnostic};
use crate::compiler::artifact::FlinkJobArtifact;
use crate::messages::adoption::{Adopt, AdoptOutcome, AdoptRequest};
use crate::messages::discover::{ConnectorsRequest, DiscoverRequest, Discovered, FoundConnectors};
use crate::messages::operation::{ApplyOutcome, ApplyRequest, Cancel, Control, PlanOutcome, PlanRequest, Signal};
use crate::messages::recovery::{RecoverRequest, Recovered, RecoveryFailure, RecoveryPlanRequest, RecoveryPlanned};
use crate::messages::samples::{SampleAnswer, SampleRequest};
use crate::messages::status::{ObserveRequest, Observed, ObservedJob};
use crate::project::Project;
use crate::validate::{SchemaAnswer, SchemaQuestion};

use super::context::Context;
use super::outcome::{Failure, exit};
use super::progress::Progress;
use super::signals;

pub fn plan(context: &Context, request: PlanRequest) -> Result<PlanOutcome, Failure> {
    let session = Session::start(context, "plan")?;
    let outcome = session.runtime.plan_blocking(request, session.control());
    session.progress.finish();
    outcome.map_err(failed)
}

pub fn apply(context: &Context, request: ApplyRequest) -> Result<ApplyOutcome, Failure> {
    let session = Session::start(context, "apply")?;
    let outcome = session.runtime.apply_blocking(request, session.control());
    session.progress.finish();
    Ok(outcome)
}

pub fn adopt(context: &Context, request: AdoptRequest) -> Result<AdoptOutcome, Failure> {
    let session = Session::start(context, "adopt")?;
    let progress = session.progress.clone();
    let what = match request.what {
        // A question stands on a line of its own.
        Adopt::One { kind, name, confirm } => Adopt::One {
            kind,
            name,
            confirm: Box::new(move |review| {
                progress.finish();
                confirm(review)
            }),
        },
        what @ (Adopt::Save { .. } | Adopt::Selected { .. }) => what,
    };
    let outcome = session.runtime.adopt_blocking(AdoptRequest { what, ..request }, session.control());
    session.progress.finish();
    Ok(outcome)
}

pub fn plan_recovery(
    context: &Context,
    request: RecoveryPlanRequest,
) -> Result<Result<RecoveryPlanned, RecoveryFailure>, Failure> {
    let session = Session::start(context, "state recovery-plan")?;
    let outcome = session.runtime.plan_recovery_blocking(request, session.control());
    session.progress.finish();
    Ok(outcome)
}

pub fn recover(context: &Context, request: RecoverRequest) -> Result<Result<Recovered, RecoveryFailure>, Failure> {
    let session = Session::start(context, "state recover")?;
    let outcome = session.runtime.recover_blocking(request, session.control());
    session.progress.finish();
    Ok(outcome)
}

pub fn observe(context: &Context, command: &'static str, request: ObserveRequest) -> Result<Observed, Failure> {
    let session = Session::start(context, command)?;
    let observed = session.runtime.observe_blocking(request, session.control());
    session.uninterrupted(observed)
}

pub fn discover(context: &Context, request: DiscoverRequest) -> Result<Result<Discovered, Diagnostic>, Failure> {
    let session = Session::start(context, "import")?;
    let found = session.runtime.discover_blocking(request, session.control());
    session.uninterrupted(found)
}

pub fn discover_connectors(
    context: &Context,
    request: ConnectorsRequest,
) -> Result<Result<FoundConnectors, Diagnostic>, Failure> {
    let session = Session::start(context, "import")?;
    let found = session.runtime.discover_connectors_blocking(request, session.control());
    session.uninterrupted(found)
}

pub fn ask_schemas(
    context: &Context,
    project: Arc<Project>,
    questions: Vec<SchemaQuestion>,
) -> Result<Vec<(SchemaQuestion, SchemaAnswer)>, Failure> {
    let session = Session::start(context, "validate")?;
    let answers = session.runtime.ask_schemas_blocking(project, questions, session.control());
    session.uninterrupted(answers)
}

/// A runtime for the tests of one command, started with the first that reads something.
pub struct Reader<'a> {
    context: &'a Context,
    session: Option<Session>,
}

impl<'a> Reader<'a> {
    pub fn new(context: &'a Context) -> Self {
        Self { context, session: None }
    }

    /// The jobs of continuous tests, and why those that do not run failed.
    pub fn observe_jobs(
        &mut self,
        project: &Arc<Project>,
        jobs: Vec<FlinkJobArtifact>,
    ) -> Result<Result<BTreeMap<String, ObservedJob>, Diagnostic>, Failure> {
        if jobs.is_empty() {
            return Ok(Ok(BTreeMap::new()));
        }
        let session = self.started()?;
        let request = ObserveRequest {
            project: project.clone(),
            topics: Vec::new(),
            source_topics: Vec::new(),
            subjects: Vec::new(),
            connectors: Vec::new(),
            jobs,
            failures: true,
            consumers: false,
            counts: false,
        };
        let observed = session.runtime.observe_blocking(request, session.control());
        session.uninterrupted(observed).map(|observed| observed.jobs)
    }

    fn started(&mut self) -> Result<&Session, Failure> {
        let session = match self.session.take() {
            Some(session) => session,
            None => Session::start(self.context, "test")?,
        };
        Ok(self.session.insert(session))
    }

    pub fn read(&mut self, project: &Arc<Project>, requests: Vec<SampleRequest>) -> Result<Vec<SampleAnswer>, Failure> {
        if requests.is_empty() {
            return Ok(Vec::new());
        }
        let session = self.started()?;
        let answers = session.runtime.read_samples_blocking(project.clone(), requests, session.control());
        session.uninterrupted(answers)
    }
}

struct Session {
    runtime: Runtime,
    progress: Progress,
    cancel: Cancel,
}

impl Session {
    fn start(context: &Context, command: &'static str) -> Result<Self, Failure> {
        let cancel = Cancel::new();
        signals::listen(cancel.clone());
        Ok(Self { runtime: Runtime::start()?, progress: Progress::new(context, command), cancel })
    }

    /// The answers to reads, unless a signal cut them short.
    fn uninterrupted<T>(&self, answers: T) -> Result<T, Failure> {
        self.progress.finish();
        match self.cancel.signal() {
            None => Ok(answers),
            Some(signal) => Err(interrupted(signal)),
        }
    }

    fn control(&self) -> Control {
        Control { observer: self.progress.observer(), cancel: self.cancel.clone() }
    }
}

pub fn exit_of(signal: Signal) -> u8 {
    match signal {
        Signal::Interrupt => exit::SIGINT,
        Signal::Terminate => exit::SIGTERM,
    }
}

fn interrupted(signal: Signal) -> Failure {
    let error = Diagnostic::new(Code::E903Interrupted, "The command was interrupted; nothing was changed");
    Failure::new(error).exit(exit_of(signal))
}

/// An operation that ended before it had a result.
pub fn failed(failure: crate::messages::operation::Failure) -> Failure {
    let mut failed = Failure::from(failure.diagnostics).warn(failure.warnings);
    if let Some(saved) = failure.saved {
        failed = failed.data(&serde_json::json!({ "plan_file": saved.display().to_string() }));
    }
    match failure.signal {
        None => failed,
        Some(signal) if failed.errors.is_empty() => {
            Failure { data: failed.data, warnings: failed.warnings, ..interrupted(signal) }
        }
        Some(signal) => failed.exit(exit_of(signal)),
    }
}
