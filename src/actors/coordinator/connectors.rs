//! What an operation does for connectors beside the common walk: the checks that need no worker, observation and judgement
//! of configurations, and the wait for a rebalance before a durable start.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actix::Addr;

use super::apply::Apply;
use super::driver::Driver;
use super::effects::note_step_failure;
use super::gates::{ApplyGates, Stop};
use super::machine::Event;
use super::observe::{Subject, answered};
use super::work::Schedule;
use crate::actors::connect::ConnectActor;
use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::compiler::Compiled;
use crate::compiler::artifact::{ConnectorArtifact, Kind};
use crate::messages::connect::{ObserveManaged, ValidateConfigs};
use crate::messages::operation::ApplySource;
use crate::planner::connector::{ConnectorName, ManagedConnectorObservation, default_binding, resolve_removals};
use crate::planner::needs::config_checks;
use crate::planner::observation::Observations;
use crate::planner::{Desired, Plan};
use crate::project::model::OwnershipMode;
use crate::providers::connect::ConfigVerdict;
use crate::providers::{Ctx, ProviderFailure, Purpose};
use crate::state::error::StateError;
use crate::state::store::Snapshot;

/// Bound of the wait for a rebalance.
const SETTLE_BUDGET: Duration = Duration::from_secs(45);

/// Every connector that was asked for, and what the worker thinks of the configurations that it has not taken yet.
#[derive(Default)]
pub struct ObservedConnectors {
    pub connectors: BTreeMap<String, ManagedConnectorObservation>,
    pub findings: Diagnostics,
}

/// One strict read a connector; then what the worker thinks of the configurations that would be sent.
pub async fn observe(
    subject: &Subject,
    names: &[String],
    workers: &Addr<ConnectActor>,
    ctx: &Ctx,
) -> Result<ObservedConnectors, ProviderFailure> {
    let unaddressable = ProviderFailure::Unsupported { what: "a connector name that no URL can hold" };
    let names: Option<Vec<ConnectorName>> = names.iter().map(|name| ConnectorName::new(name)).collect();
    let names = names.ok_or(unaddressable)?;
    let connectors = answered(workers.send(ObserveManaged { ctx: ctx.clone(), names }).await)?;
    let observations = Observations { connectors, ..Observations::default() };
    let desired = Desired::of(&subject.compiled);
    let checks: Vec<ConnectorArtifact> = config_checks(&desired, subject.selection.as_deref(), &observations)
        .into_iter()
        .map(|artifact| subject.compiled.bound(artifact))
        .collect();
    let asked = ValidateConfigs { ctx: ctx.clone(), artifacts: checks.clone() };
    let verdicts = answered(workers.send(asked).await)?;
    let findings: Vec<Diagnostic> =
        checks.iter().zip(verdicts).filter_map(|(artifact, verdict)| finding(artifact, verdict)).collect();
    Ok(ObservedConnectors { connectors: observations.connectors, findings: findings.into() })
}

/// What the worker would refuse is refused before it can become an operation that needs recovery.
fn finding(artifact: &ConnectorArtifact, verdict: ConfigVerdict) -> Option<Diagnostic> {
    let name = &artifact.name;
    let refused = |why: String| Diagnostic::new(Code::E407DeployError, format!("connector:{name}: {why}"));
    match verdict {
        ConfigVerdict::Sound => None,
        ConfigVerdict::Refused { keys, errors } => {
            let found = if errors == 1 { "1 error".to_owned() } else { format!("{errors} errors") };
            let at = if keys.is_empty() { String::new() } else { format!(" at {}", keys.join(", ")) };
            let text = format!("the worker does not accept the configuration: {found}{at}");
            Some(
                refused(text)
                    .suggest("correct these keys in sink.config or in the connection; the worker's log says more"),
            )
        }
        ConfigVerdict::NoPlugin => Some(
            refused(format!("no worker has the class '{}'", artifact.connector_class))
                .suggest("install the plugin on every worker, or correct `sink.connector`"),
        ),
        ConfigVerdict::NotASink => Some(
            refused(format!("the class '{}' is a source connector, which reads no topic", artifact.connector_class))
                .suggest("name the class of a sink connector in `sink.connector`"),
        ),
        ConfigVerdict::Unknown => {
            let text = format!("the worker did not say whether it accepts the configuration of connector '{name}'");
            Some(Diagnostic::new(Code::W147ObservationIncomplete, text))
        }
    }
}

/// W119: how many connectors are deleted, and nothing else of them.
pub fn removal_warning(plan: &Plan) -> Option<Diagnostic> {
    let deletions = plan.actions.iter().filter(|action| action.connector_evidence.is_some()).count();
    let text = match deletions {
        0 => return None,
        1 => "1 connector is deleted".to_owned(),
        more => format!("{more} connectors are deleted"),
    };
    Some(Diagnostic::new(Code::W119ConnectorRemovalDestructive, text))
}

impl Driver {
    /// Whatever the caller checked itself: a removal is carried out by a reviewed plan, in full, or not at all.
    pub(super) fn removals_are_reviewed(&self, request: &ApplyGates<'_>) -> Result<(), Stop> {
        let direct = match request.source {
            ApplySource::Direct { .. } => true,
            ApplySource::Reviewed { .. } => false,
        };
        if request.compiled.artifacts.connector_removals.is_empty() || !(direct || request.dry_run) {
            return Ok(());
        }
        let error = Diagnostic::new(Code::E418ReviewedPlanRequired, "Removing connectors needs a reviewed plan");
        Err(error.suggest("save a plan with `streamt plan --out FILE`, review it, and apply the file").into())
    }

    /// Row 14: everything about connectors that can be refused without a client. E205, E209, E421, E427.
    pub(super) fn connectors_resolved(&self, compiled: &Arc<Compiled>, snapshot: &Snapshot) -> Result<(), Stop> {
        let desired = Desired::of(compiled);
        let deploys = |mode: OwnershipMode| mode != OwnershipMode::External;
        let connectors = desired.resources.iter().filter(|resource| resource.kind == Kind::Connector);
        if connectors.into_iter().any(|resource| deploys(resource.mode)) {
            default_binding(desired.connect)?;
        }
        if desired.artifacts.connector_removals.is_empty() {
            return Ok(());
        }
        if self.store.file.is_some() {
            let error =
                Diagnostic::new(Code::E421RemoteStateRequired, "Removing connectors needs the remote state backend");
            return Err(error.suggest("Set deployment_state.backend: postgres; no flag replaces it").into());
        }
        resolve_removals(&desired, &snapshot.state.state).map(|_| ()).map_err(Stop::Failed)
    }

    /// Before a connector is touched durably, its worker must have settled. None when the block may start.
    pub(super) async fn unsettled(&mut self, apply: &mut Apply, block: usize) -> Option<Event> {
        let works = apply.prepared.schedule.block(block);
        let name = Schedule::connector(works)?;
        let workers = apply.prepared.providers.connect.as_ref()?;
        let doing = works.first().map(|work| format!("{}: {}", work.label, work.action.action)).unwrap_or_default();
        let ctx = Ctx::new(Purpose::Apply, SETTLE_BUDGET, self.reads.clone());
        let settled = answered(workers.send(ObserveManaged { ctx, names: vec![name] }).await);
        if self.lock_lost() {
            let lost = StateError::lock_lost().operation(Some(apply.intent.operation_id));
            return Some(note_step_failure(&mut apply.errors, apply.begun, lost));
        }
        match settled {
            Ok(_) => None,
            // A signal: the block is not started.
            Err(ProviderFailure::Aborted { .. }) if self.reads.is_cancelled() => Some(Event::StepFailed { held: true }),
            Err(failure) => {
                let diagnostic = failure.diagnostic(&doing).operation(apply.intent.operation_id);
                apply.errors.push(diagnostic);
                Some(Event::StepFailed { held: true })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::connector::testing::{connector, live, tombstone};
    use crate::planner::fixtures::World;

    /// CRM-091: the number of connectors that are deleted, and no name.
    #[test]
    fn a_plan_that_deletes_connectors_says_how_many() {
        let told = |count: usize| {
            let mut world = World::new();
            let names: Vec<String> = (0..count).map(|index| format!("gone{index}")).collect();
            for name in &names {
                let gone = connector(name, &[]);
                world = world.with_connector(gone.clone(), Some(live(&gone)));
            }
            let mut world = world.owned();
            let gone = std::mem::take(&mut world.artifacts.connectors);
            world.artifacts.connector_removals = gone.iter().map(tombstone).collect();
            removal_warning(&world.plan()).map(|warning| (warning.code, warning.message))
        };
        const W119: Code = Code::W119ConnectorRemovalDestructive;
        assert_eq!(told(0), None);
        assert_eq!(told(1), Some((W119, "1 connector is deleted".to_owned())));
        assert_eq!(told(2), Some((W119, "2 connectors are deleted".to_owned())));
    }

    /// SEC-003: a configuration that the worker refuses is an error, one that it did not judge a warning.
    #[test]
    fn a_configuration_is_refused_by_keys_and_counts_and_left_open_by_silence() {
        let sink = connector("sink", &[("file", "/tmp/secret")]);
        let told = |verdict| finding(&sink, verdict).map(|finding| (finding.code, finding.message));
        let refused = |keys: &[&str]| ConfigVerdict::Refused {
            keys: keys.iter().map(|key| (*key).to_owned()).collect(),
            errors: 3,
        };
        const E407: Code = Code::E407DeployError;
        assert_eq!(told(ConfigVerdict::Sound), None);
        let (code, message) = told(refused(&["file", "topics"])).expect("a finding");
        assert_eq!(code, E407);
        assert!(message.ends_with("does not accept the configuration: 3 errors at file, topics"), "{message}");
        assert!(told(refused(&[])).expect("a finding").1.ends_with("configuration: 3 errors"));
        let (code, message) = told(ConfigVerdict::NoPlugin).expect("a finding");
        assert!(code == E407 && message.contains("io.example.SinkConnector"), "{message}");
        assert_eq!(told(ConfigVerdict::Unknown).expect("a finding").0, Code::W147ObservationIncomplete);
    }
}
