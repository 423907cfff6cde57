//! The gates between the lock and the durable intent, in the one order of `plan` and `apply`. Nothing here writes a durable
//! row or changes a provider.

use std::sync::Arc;

use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::compiler::Compiled;
use crate::messages::kafka;
use crate::messages::lock::Observe;
use crate::messages::operation::{
    ApplyEnd, ApplySource, OperationEvent, PlanRequest, ProviderKind, Reload, SavedPlan, SelectionText,
};
use crate::planner::model::Action;
use crate::planner::{Desired, Plan, Selection, refuse_undeployable};
use crate::providers::{Ctx, Identity, ProviderFailure, Purpose};
use crate::state::error::StateError;
use crate::state::model::OwnershipState;
use crate::state::plan_file::{self, Context, Origin, ReviewedPlan, Stale, StateReference, environment_fingerprint};
use crate::state::projection;
use crate::state::scalar::Timestamp;
use crate::state::store::Snapshot;

use super::connectors::removal_warning;
use super::driver::{Driver, lock_reply};
use super::jobs::submittable;
use super::observe::{Look, NoPlan, Providers, Subject, answered, look};
use super::work::Schedule;

/// Bound of the broker's dry validation.
const VALIDATE_BUDGET: std::time::Duration = std::time::Duration::from_secs(60);

/// Why the gates end an operation.
pub enum Stop {
    Failed(Diagnostics),
    Blocked(Diagnostic),
    Stale(Box<Stale>),
}

impl From<Diagnostic> for Stop {
    fn from(diagnostic: Diagnostic) -> Self {
        Self::Failed(diagnostic.into())
    }
}

impl From<StateError> for Stop {
    fn from(error: StateError) -> Self {
        error.diagnostic().into()
    }
}

impl Stop {
    pub fn end(self) -> ApplyEnd {
        match self {
            Self::Failed(diagnostics) => ApplyEnd::Failed(diagnostics),
            Self::Blocked(diagnostic) => ApplyEnd::Blocked(diagnostic),
            Self::Stale(stale) => ApplyEnd::Stale(stale),
        }
    }

    pub fn diagnostics(self) -> Diagnostics {
        match self {
            Self::Failed(diagnostics) => diagnostics,
            Self::Blocked(diagnostic) => diagnostic.into(),
            Self::Stale(stale) => stale.diagnostic().into(),
        }
    }
}

/// What the gates leave for the intent.
pub struct Prepared {
    pub plan: Arc<Plan>,
    pub actions: Vec<Action>,
    pub schedule: Schedule,
    pub providers: Providers,
}

/// What an apply asks of its gates.
pub struct ApplyGates<'a> {
    pub compiled: &'a Arc<Compiled>,
    pub source: ApplySource,
    pub force: bool,
    pub dry_run: bool,
}

impl Driver {
    /// Rows 12 to 24 of `plan`.
    pub(super) async fn plan_gates(
        &mut self,
        request: &PlanRequest,
        snapshot: &Snapshot,
    ) -> Result<(Arc<Plan>, Option<SavedPlan>), Stop> {
        self.enter(snapshot)?;
        self.connectors_resolved(&request.compiled, snapshot)?;
        let subject = self.deployable(&request.compiled, None)?;
        let providers = Providers::required(&self.providers, &subject)?;
        let Look { plan, .. } = self.look(&subject, snapshot, &providers, Purpose::Plan).await?;
        submittable(&plan, &request.compiled)?;
        self.unchanged(snapshot).await?;
        self.warnings.extend(removal_warning(&plan));
        let saved = match &request.save {
            None => None,
            Some(path) => {
                let origin = origin(&request.compiled, snapshot, self.now())?;
                let (plan, path) = (Arc::clone(&plan), path.clone());
                Some(
                    self.off_arbiter(move || {
                        let reviewed = ReviewedPlan::of(&plan, origin)?;
                        plan_file::write(&path, &reviewed)?;
                        Ok(SavedPlan { path, checksum: reviewed.checksum, format_version: 5 })
                    })
                    .await?,
                )
            }
        };
        Ok((plan, saved))
    }

    /// Rows 12 to 26 of `apply`, and the snapshot that was planned against, read again. `made` is set as soon as there is one, for the report of a later refusal.
    pub(super) async fn apply_gates(
        &mut self,
        request: ApplyGates<'_>,
        snapshot: &Snapshot,
        made: &mut Option<Arc<Plan>>,
    ) -> Result<Option<(Prepared, Snapshot)>, Stop> {
        self.enter(snapshot)?;
        self.removals_are_reviewed(&request)?;
        self.connectors_resolved(request.compiled, snapshot)?;
        let (reviewed, subject) = match request.source {
            ApplySource::Direct { selection } => (None, self.deployable(request.compiled, Some(selection))?),
            ApplySource::Reviewed { file, reload } => {
                let compiled = self.again(request.compiled, reload).await?;
                self.context(&file, &compiled, snapshot)?;
                (Some(file), self.deployable(&compiled, None)?)
            }
        };
        let providers = Providers::required(&self.providers, &subject)?;
        let Look { plan, observations, .. } = self.look(&subject, snapshot, &providers, Purpose::Apply).await?;
        *made = Some(Arc::clone(&plan));
        submittable(&plan, &subject.compiled)?;

        self.unchanged(snapshot).await?;
        if let Some(file) = &reviewed {
            file.check_plan(&plan).map_err(Stop::Stale)?;
        }
        if plan.is_apply_blocked() {
            return Err(Stop::Blocked(blocked(&plan)));
        }
        let environment = &subject.compiled.project.environment;
        if plan.deletes() > 0 && !request.force && !environment.allow_destructive {
            return Err(destructive(&plan).into());
        }
        // The reviewed actions become the durable ones, never rebuilt from the fresh plan.
        let actions = reviewed.map_or_else(|| plan.actions.clone(), |file| file.actions.clone());
        let schedule = Schedule::of(&plan, &actions, &subject.compiled, &observations)?;
        self.validate(&schedule, &providers).await?;
        self.explained(&schedule, &providers).await?;
        if request.dry_run {
            return Ok(None);
        }
        let snapshot = self.unchanged(snapshot).await?;
        self.projected(&plan, &schedule, &snapshot.state.state).await?;
        self.proceed()?;
        self.warnings.extend(removal_warning(&plan));
        Ok(Some((Prepared { plan, actions, schedule, providers }, snapshot)))
    }

    /// Rows 12 and 13.
    pub(super) fn enter(&mut self, snapshot: &Snapshot) -> Result<(), Stop> {
        snapshot.ensure_clear()?;
        self.warnings.extend(self.local_state_only());
        self.proceed()
    }

    /// W106.
    pub(super) fn local_state_only(&self) -> Option<Diagnostic> {
        let file = self.store.file.as_ref()?;
        let text = format!("the ownership state is kept in a local file, unsuitable for shared CI: {}", file.display());
        let warning = Diagnostic::new(Code::W106LocalStateOnly, text);
        Some(warning.suggest("share it through one place where applies run, or keep state in PostgreSQL"))
    }

    /// E903 once a signal asked for the end; E423 once the lock is lost.
    pub(super) fn proceed(&self) -> Result<(), Stop> {
        if self.lease.as_ref().is_some_and(|lease| !lease.core().is_open()) {
            return Err(StateError::lock_lost().into());
        }
        match self.control.cancel.signal() {
            Some(_) => Err(interrupted().into()),
            None => Ok(()),
        }
    }

    /// Row 15: the project as it is now that nobody else can act on it.
    pub(super) async fn again(&self, before: &Arc<Compiled>, reload: Reload) -> Result<Arc<Compiled>, Stop> {
        let compiled = tokio::task::spawn_blocking(reload)
            .await
            .unwrap_or_else(|_| {
                Err(Diagnostic::new(Code::E901Internal, "reading the project ended unexpectedly").into())
            })
            .map_err(Stop::Failed)?;
        if compiled.manifest_checksum != before.manifest_checksum {
            let text = "the project changed while the command was waiting for the lock";
            return Err(Diagnostic::new(Code::E409PlanStale, text).suggest("plan and review again").into());
        }
        self.proceed()?;
        Ok(compiled)
    }

    /// Row 15: what the reviewed plan was made for, before any provider is contacted.
    fn context(&self, file: &ReviewedPlan, compiled: &Compiled, snapshot: &Snapshot) -> Result<(), Stop> {
        let project = &compiled.project;
        let fingerprint = environment_fingerprint(&project.environment.name, project.runtime_document.expose())?;
        let state = StateReference::of(&snapshot.state);
        let context = Context {
            project: &project.name,
            environment: &project.environment.name,
            environment_fingerprint: &fingerprint,
            manifest_checksum: &compiled.manifest_checksum,
            state: &state,
            max_age: project.environment.reviewed_plan_max_age_minutes.map(|minutes| (minutes, self.now())),
        };
        file.check_context(&context).map_err(Stop::Stale)
    }

    /// Row 17, and E221 before any provider is contacted.
    fn deployable(&self, compiled: &Arc<Compiled>, selection: Option<SelectionText>) -> Result<Subject, Stop> {
        let text = selection.unwrap_or_default();
        let selection = Selection::resolve(compiled, text.target.as_deref(), text.select.as_deref())?;
        let refusals = refuse_undeployable(&Desired::of(compiled), selection.as_ref());
        if refusals.has_errors() {
            return Err(Stop::Failed(refusals));
        }
        Ok(Subject { compiled: Arc::clone(compiled), selection: selection.map(Arc::new) })
    }

    /// Row 19.
    async fn look(
        &mut self,
        subject: &Subject,
        snapshot: &Snapshot,
        providers: &Providers,
        purpose: Purpose,
    ) -> Result<Look, Stop> {
        let state = Arc::clone(&snapshot.state.state);
        let observer = Arc::clone(&self.control.observer);
        match look(subject, state, providers, purpose, &self.reads, &observer).await {
            Ok(look) => {
                self.warnings.extend(look.plan.warnings.iter().chain(look.warnings.iter()).cloned());
                self.tell(OperationEvent::Planned { actions: look.plan.active().count() });
                self.proceed()?;
                Ok(look)
            }
            Err(NoPlan::Cancelled) => {
                self.proceed()?;
                Err(interrupted().into())
            }
            Err(NoPlan::Refused(diagnostics)) => Err(Stop::Failed(diagnostics)),
        }
    }

    /// Rows 20 and 25: state and control are still what was planned against.
    pub(super) async fn unchanged(&self, expected: &Snapshot) -> Result<Snapshot, Stop> {
        let current = lock_reply(self.lock.send(Observe).await)?;
        if current != *expected {
            return Err(StateError::conflict().into());
        }
        self.proceed()?;
        Ok(current)
    }

    /// Row 23: what the broker would refuse is refused before it can become an operation that needs recovery.
    async fn validate(&self, schedule: &Schedule, providers: &Providers) -> Result<(), Stop> {
        let (creates, updates) = schedule.to_validate();
        let Some(kafka) = providers.kafka.as_ref().filter(|_| !creates.is_empty() || !updates.is_empty()) else {
            return Ok(());
        };
        self.tell(OperationEvent::Validating);
        let created: std::collections::HashSet<String> = creates.iter().map(|topic| topic.name.clone()).collect();
        let ctx = Ctx::new(Purpose::Apply, VALIDATE_BUDGET, self.reads.clone());
        let refusals = match answered(kafka.send(kafka::ValidateTopics { ctx, creates, updates }).await) {
            Ok(refusals) => refusals,
            Err(ProviderFailure::Aborted { .. }) if self.reads.is_cancelled() => {
                self.proceed()?;
                return Err(interrupted().into());
            }
            Err(failure) => {
                let doing = format!("{}: validating the changes", ProviderKind::Kafka.as_str());
                return Err(failure.diagnostic(&doing).into());
            }
        };
        let refusals: Vec<Diagnostic> = refusals
            .iter()
            .map(|(identity, failure)| {
                let verb = match identity {
                    Identity::Topic(name) if created.contains(name) => "create",
                    Identity::Topic(_) | Identity::Subject(_) | Identity::Connector(_) | Identity::Job(_) => "update",
                };
                failure.diagnostic(&format!("{identity}: {verb}"))
            })
            .collect();
        if refusals.is_empty() { self.proceed() } else { Err(Stop::Failed(refusals.into())) }
    }

    /// Row 25: the ownership that this apply will leave can be formed, before anything is changed for it.
    async fn projected(&self, plan: &Arc<Plan>, schedule: &Schedule, prior: &Arc<OwnershipState>) -> Result<(), Stop> {
        let (plan, prior, actions) = (Arc::clone(plan), Arc::clone(prior), schedule.actions());
        self.off_arbiter(move || {
            let unformed =
                |_| Diagnostic::new(Code::E411StateInvalid, "the next ownership state has no canonical form");
            match projection::foresee(&prior, &plan, &actions).map_err(|error| error.diagnostic())? {
                Some(next) => next.checksum().map(|_| ()).map_err(unformed),
                None => Ok(()),
            }
        })
        .await
        .map_err(Stop::from)
    }
}

pub(super) fn interrupted() -> Diagnostic {
    Diagnostic::new(Code::E903Interrupted, "interrupted; nothing was changed").suggest("run the command again")
}

fn origin(compiled: &Compiled, snapshot: &Snapshot, now: jiff::Timestamp) -> Result<Origin, Diagnostic> {
    let project = &compiled.project;
    Ok(Origin {
        streamt_version: env!("CARGO_PKG_VERSION").to_owned(),
        created_at: Timestamp::seconds(now),
        environment_fingerprint: environment_fingerprint(&project.environment.name, project.runtime_document.expose())?,
        manifest_checksum: compiled.manifest_checksum.clone(),
        state: Some(StateReference::of(&snapshot.state)),
    })
}

/// Row 21: E417 if anything is unsafe, else E410 (SAF-048).
fn blocked(plan: &Plan) -> Diagnostic {
    let requirements = plan.blocking_requirements().count();
    match plan.blockers.first() {
        Some(first) => {
            let text = match plan.blockers.len() {
                1 => format!("the plan is blocked: {}", first.message),
                more => format!("the plan is blocked by {more} safety blockers; the first: {}", first.message),
            };
            Diagnostic::new(Code::E417SafetyBlocked, text)
                .suggest(format!("no option lifts a blocker; `streamt explain {}` says what does", first.code.as_str()))
        }
        None => {
            let first = plan.blocking_requirements().next().map_or("", |requirement| requirement.message.as_str());
            let text = match requirements {
                1 => format!("ownership is not proved: {first}"),
                more => format!("ownership of {more} resources is not proved; the first: {first}"),
            };
            Diagnostic::new(Code::E410OwnershipRequired, text)
                .suggest("prove or give up ownership of each resource that the plan lists")
        }
    }
}

fn destructive(plan: &Plan) -> Diagnostic {
    let text = format!("the plan deletes {} resources, and this environment does not allow that", plan.deletes());
    Diagnostic::new(Code::E503EnvironmentError, text).suggest("review the deletions and give --force")
}
