//! An adoption: what is claimed, seen twice and confirmed in between, then written in one operation. It reads from providers
//! and has no way to change anything there: it never asks for the permission of an action.

mod operation;

use std::sync::Arc;
use std::time::Duration;

use operation::Adoption;

use super::driver::{Driver, lock_reply};
use super::gates::{Stop, interrupted};
use super::machine::Event;
use super::targets::{Asker, observe};
use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::compiler::Compiled;
use crate::compiler::artifact::Kind;
use crate::messages::adoption::{Adopt, AdoptEnd, AdoptOutcome, AdoptRequest, Confirm};
use crate::messages::lock::Observe;
use crate::planner::Desired;
use crate::planner::observation::Observations;
use crate::providers::{Ctx, Purpose};
use crate::state::adoption::{self, Claim, MAX_RESOURCES, Review, Selected, Selection, Target};
use crate::state::plan_file::{StateReference, environment_fingerprint};
use crate::state::recovery::Questions;
use crate::state::store::Snapshot;

/// Bound of one observation of everything that is claimed.
const OBSERVE_BUDGET: Duration = Duration::from_secs(120);

/// What the gates of an adoption leave to be done.
enum Decided {
    Claim(Vec<Target>, Snapshot),
    Owned,
    Saved(AdoptEnd),
}

impl Driver {
    pub(super) async fn adopt(mut self, request: AdoptRequest) -> AdoptOutcome {
        let selection_checksum = match &request.what {
            Adopt::One { .. } | Adopt::Save { .. } => None,
            Adopt::Selected { selection, .. } => Some(selection.checksum.clone()),
        };
        let snapshot = match self.acquire().await {
            Ok(snapshot) => snapshot,
            Err(stop) => {
                let _ = self.walk(Event::NotHeld, None).await;
                return AdoptOutcome { selection_checksum, ..AdoptOutcome::stopped(self.ended(stop.diagnostics())) };
            }
        };
        let mut outcome = AdoptOutcome {
            state: Some(self.facts(&snapshot)),
            selection_checksum,
            ..AdoptOutcome::stopped(AdoptEnd::AlreadyOwned)
        };
        let AdoptRequest { compiled, what, actor } = request;
        let decided = self.decide(&compiled, what, &snapshot, &mut outcome.reviews).await;
        let end = match decided {
            Ok(Decided::Claim(targets, fresh)) => {
                let mut adoption = Adoption::new(targets, self.now(), actor, fresh);
                let (verdict, released) = self.walk_adoption(&mut adoption).await;
                return self.told(adoption, verdict, released, outcome);
            }
            Ok(Decided::Owned) => self.looked(AdoptEnd::AlreadyOwned).await,
            Ok(Decided::Saved(end)) => self.looked(end).await,
            Err(stop) => {
                let last = if self.lock_lost() { Event::NotHeld } else { Event::Refused };
                let (_, released) = self.walk(last, None).await;
                let mut diagnostics = stop.diagnostics();
                diagnostics.extend(released.err().map(|error| error.diagnostic()));
                self.ended(diagnostics)
            }
        };
        AdoptOutcome { end, warnings: self.warnings, ..outcome }
    }

    /// Gives the lock back after nothing was written to the store.
    async fn looked(&mut self, end: AdoptEnd) -> AdoptEnd {
        match self.walk(Event::Enough, None).await.1 {
            Ok(()) => end,
            Err(error) => AdoptEnd::Failed(error.diagnostic().into()),
        }
    }

    /// A refusal as it is told: a signal has an end of its own.
    fn ended(&self, diagnostics: Diagnostics) -> AdoptEnd {
        let interruption = diagnostics.iter().find(|one| one.code == Code::E903Interrupted).cloned();
        match (self.control.cancel.signal(), interruption) {
            (Some(signal), Some(one)) => AdoptEnd::Interrupted(signal, one),
            (Some(_) | None, _) => AdoptEnd::Failed(diagnostics),
        }
    }

    /// Everything before the durable intent. Nothing of it writes but the file of a selection that is saved.
    async fn decide(
        &mut self,
        compiled: &Arc<Compiled>,
        what: Adopt,
        snapshot: &Snapshot,
        reviews: &mut Vec<Review>,
    ) -> Result<Decided, Stop> {
        self.enter(snapshot)?;
        match what {
            Adopt::One { kind, name, confirm } => self.one(compiled, kind, &name, confirm, snapshot, reviews).await,
            Adopt::Save { candidates, out } => {
                let mut targets = Vec::with_capacity(candidates.len());
                let desired = Desired::of(compiled);
                for (kind, name) in &candidates {
                    let target = Target::find(&desired, *kind, name)?;
                    if !snapshot.state.state.resources.contains_key(&target.resource_id) {
                        target.claim(&snapshot.state.state)?;
                        targets.push(target);
                    }
                }
                check_number(targets.len())?;
                *reviews = self.review(compiled, &targets, snapshot).await?;
                self.still(snapshot).await?;
                let selected =
                    targets.iter().zip(reviews.iter()).map(|(target, review)| Selected::of(target, review)).collect();
                let selection = Arc::new(Selection::of(
                    StateReference::of(&snapshot.state),
                    fingerprint(compiled)?,
                    compiled.manifest_checksum.clone(),
                    selected,
                )?);
                let (path, saved) = (out.clone(), Arc::clone(&selection));
                self.off_arbiter(move || adoption::write(&path, &saved)).await?;
                Ok(Decided::Saved(AdoptEnd::Saved { path: out, selection }))
            }
            Adopt::Selected { selection, reload } => {
                let state = &snapshot.state.state;
                if (selection.project.as_str(), selection.environment.as_str())
                    != (state.project.as_str(), state.environment.as_str())
                {
                    return Err(stale("the selection was made for another project or environment").into());
                }
                if selection.resources.iter().all(|one| stands(one, snapshot)) {
                    return Ok(Decided::Owned);
                }
                let compiled = self.again(compiled, reload).await?;
                check_origin(&selection, &compiled, snapshot)?;
                let desired = Desired::of(&compiled);
                let mut targets = Vec::with_capacity(selection.resources.len());
                for one in &selection.resources {
                    let target = Target::find(&desired, one.kind, one.resource_id.logical_name())?;
                    if !one.is_of(&target) {
                        return Err(stale(&format!("the declaration of {} is another one now", one.resource_id)).into());
                    }
                    if target.claim(state)? == Claim::Owned {
                        return Err(stale(&format!("{} is recorded already", one.resource_id)).into());
                    }
                    targets.push(target);
                }
                let seen = self.observe_targets_of(&compiled, &targets).await?;
                let (now, moved) = compare(&targets, &seen, &selection.resources);
                *reviews = now;
                if !moved.is_empty() {
                    return Err(drifted(&moved).into());
                }
                let snapshot = self.still(snapshot).await?;
                Ok(Decided::Claim(targets, snapshot))
            }
        }
    }

    async fn one(
        &mut self,
        compiled: &Arc<Compiled>,
        kind: Kind,
        name: &str,
        confirm: Confirm,
        snapshot: &Snapshot,
        reviews: &mut Vec<Review>,
    ) -> Result<Decided, Stop> {
        let target = Target::find(&Desired::of(compiled), kind, name)?;
        let claim = target.claim(&snapshot.state.state)?;
        let targets = vec![target];
        *reviews = self.review(compiled, &targets, snapshot).await?;
        let Some(review) = reviews.first() else { return Err(unseen().into()) };
        if claim == Claim::Owned {
            return Ok(Decided::Owned);
        }
        let answer = confirm(review);
        tokio::select! {
            answer = answer => answer?,
            () = self.reads.cancelled() => {
                self.proceed()?;
                return Err(interrupted().into());
            }
        }
        self.proceed()?;
        let seen = self.observe_targets_of(compiled, &targets).await?;
        let reviewed = Selected::of(&targets[0], review);
        let (now, moved) = compare(&targets, &seen, std::slice::from_ref(&reviewed));
        if !moved.is_empty() {
            *reviews = now;
            return Err(drifted(&moved).into());
        }
        let snapshot = self.still(snapshot).await?;
        Ok(Decided::Claim(targets, snapshot))
    }

    /// One observation of every target, as it is shown; the first that cannot be claimed ends it.
    async fn review(
        &self,
        compiled: &Arc<Compiled>,
        targets: &[Target],
        snapshot: &Snapshot,
    ) -> Result<Vec<Review>, Stop> {
        let seen = self.observe_targets_of(compiled, targets).await?;
        let state = &snapshot.state.state;
        let mut reviews = Vec::with_capacity(targets.len());
        for target in targets {
            reviews.push(Review::of(target, target.claim(state)?, target.seen(&seen).as_ref())?);
        }
        Ok(reviews)
    }

    async fn observe_targets_of(&self, compiled: &Arc<Compiled>, targets: &[Target]) -> Result<Observations, Stop> {
        let mut asked = Questions::default();
        for target in targets {
            let name = target.physical_name.clone();
            match target.kind() {
                Kind::Topic => asked.topics.push(name),
                Kind::Schema => asked.subjects.push(name),
                Kind::Connector => asked.connectors.push(name),
                Kind::FlinkJob | Kind::KafkaStreamsJob | Kind::GatewayRule => {}
            }
        }
        let ctx = Ctx::new(Purpose::Adopt, OBSERVE_BUDGET, self.reads.clone());
        let told = |event| self.tell(event);
        match observe(compiled, &self.providers, &asked, &ctx, Asker::Adoption, told).await {
            Ok(observations) => {
                self.proceed()?;
                Ok(observations)
            }
            Err(error) => {
                self.proceed()?;
                if self.reads.is_cancelled() { Err(interrupted().into()) } else { Err(failed_read(error).into()) }
            }
        }
    }

    /// Row 11: state and control are still what was reviewed against.
    async fn still(&self, expected: &Snapshot) -> Result<Snapshot, Stop> {
        let current = lock_reply(self.lock.send(Observe).await)?;
        if current != *expected {
            let text = "the ownership state changed while the claim was reviewed";
            let error = Diagnostic::new(Code::E415AdoptionStateConflict, text);
            return Err(error.suggest("read `streamt state status`, then run the command again").into());
        }
        self.proceed()?;
        Ok(current)
    }
}

/// Whether exactly this claim is recorded.
fn stands(one: &Selected, snapshot: &Snapshot) -> bool {
    snapshot.state.state.resources.get(&one.resource_id).is_some_and(|record| {
        (&record.physical_name, &record.backend, &record.artifact_checksum)
            == (&one.physical_name, &one.backend, &one.artifact_checksum)
    })
}

/// What is seen now, and the ids of what is not as reviewed: changed, gone, or not readable any more.
fn compare(targets: &[Target], seen: &Observations, reviewed: &[Selected]) -> (Vec<Review>, Vec<String>) {
    let (mut reviews, mut moved) = (Vec::new(), Vec::new());
    for (target, reviewed) in targets.iter().zip(reviewed) {
        match Review::of(target, Claim::New, target.seen(seen).as_ref()) {
            Ok(review) => {
                if review.fingerprint != reviewed.observation_fingerprint {
                    moved.push(target.resource_id.to_string());
                }
                reviews.push(review);
            }
            Err(_) => moved.push(target.resource_id.to_string()),
        }
    }
    (reviews, moved)
}

fn check_origin(selection: &Selection, compiled: &Compiled, snapshot: &Snapshot) -> Result<(), Diagnostic> {
    if selection.environment_fingerprint != fingerprint(compiled)? {
        return Err(stale("the runtime configuration of the environment changed after the selection was saved"));
    }
    if selection.manifest_checksum != compiled.manifest_checksum {
        return Err(stale("the project changed after the selection was saved"));
    }
    if selection.state != StateReference::of(&snapshot.state) {
        return Err(stale("the ownership state changed after the selection was saved"));
    }
    Ok(())
}

fn fingerprint(compiled: &Compiled) -> Result<crate::compiler::canonical::Checksum, Diagnostic> {
    let project = &compiled.project;
    environment_fingerprint(&project.environment.name, project.runtime_document.expose())
}

fn check_number(count: usize) -> Result<(), Diagnostic> {
    match count {
        0 => Err(Diagnostic::new(Code::E412AdoptionTargetInvalid, "nothing is left to adopt").suggest(
            "what is declared `ownership: {mode: adopted}` is recorded already, or the filters leave nothing",
        )),
        1..=MAX_RESOURCES => Ok(()),
        more => Err(Diagnostic::new(
            Code::E412AdoptionTargetInvalid,
            format!("{more} resources are more than one operation claims, which is {MAX_RESOURCES}"),
        )
        .suggest("save a part of them at a time with --kind, --include or --exclude")),
    }
}

/// A read that failed for a reason of its own: E416. What is wrong with connection, login or TLS keeps its code.
fn failed_read(error: Diagnostic) -> Diagnostic {
    match error.code {
        Code::E407DeployError => Diagnostic { code: Code::E416AdoptionFailed, ..error },
        _ => error,
    }
}

fn drifted(moved: &[String]) -> Diagnostic {
    let text = match moved {
        [one] => format!("{one} changed after it was reviewed"),
        [first, ..] => format!("{} resources changed after they were reviewed; the first: {first}", moved.len()),
        [] => "what was reviewed changed".to_owned(),
    };
    Diagnostic::new(Code::E414AdoptionConfirmationRequired, text)
        .suggest("nothing was adopted; review the live resources again and confirm what you see")
}

fn stale(text: &str) -> Diagnostic {
    Diagnostic::new(Code::E409PlanStale, text.to_owned())
        .suggest("nothing was adopted; save the selection again and review that one")
}

fn unseen() -> Diagnostic {
    Diagnostic::new(Code::E901Internal, "a claim was not read")
}
