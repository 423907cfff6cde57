//! Whether a reviewed plan still describes the world: the checks behind E409.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::{Value, json};

use crate::codes::{Code, Diagnostic};
use crate::compiler::canonical::Checksum;
use crate::planner::Plan;
use crate::planner::payload::PlanPayload;

use super::envelope::redacted;
use super::{ReviewedPlan, StateReference};

/// A clock that runs ahead of ours by less than this made no plan of the future.
const SKEW: SignedDuration = SignedDuration::from_mins(5);

/// What a reviewed plan is compared with before any provider is contacted.
#[derive(Clone, Debug)]
pub struct Context<'a> {
    pub project: &'a str,
    pub environment: &'a str,
    pub environment_fingerprint: &'a Checksum,
    pub manifest_checksum: &'a Checksum,
    /// The locked snapshot.
    pub state: &'a StateReference,
    /// The age limit in minutes and the present time; none = no limit, and no clock is read.
    pub max_age: Option<(u32, Timestamp)>,
}

/// The first thing that is no longer as reviewed.
#[derive(Clone, PartialEq, Debug)]
pub struct Stale {
    pub field: &'static str,
    /// `expired`, or none.
    pub reason: Option<&'static str>,
    /// Digests, names and numbers; never contents.
    pub reviewed: Value,
    pub current: Value,
    /// The parts of the plan that differ, when the plan itself does.
    pub sections: Vec<&'static str>,
    message: String,
}

impl Stale {
    fn new(field: &'static str, reviewed: impl Serialize, current: impl Serialize, message: &str) -> Box<Self> {
        Box::new(Self {
            field,
            reason: None,
            reviewed: json!(reviewed),
            current: json!(current),
            sections: Vec::new(),
            message: message.to_owned(),
        })
    }

    /// `data.stale` of the JSON output.
    pub fn data(&self) -> Value {
        match (self.reason, self.sections.is_empty()) {
            (Some(reason), _) => json!({"field": self.field, "reason": reason}),
            (None, true) => json!({"field": self.field, "reviewed": self.reviewed, "current": self.current}),
            (None, false) => json!({"field": self.field, "reviewed": self.reviewed, "current": self.current,
                "sections": self.sections}),
        }
    }

    /// E409.
    pub fn diagnostic(&self) -> Diagnostic {
        Diagnostic::new(Code::E409PlanStale, self.message.clone())
            .suggest("make a new plan, review it and apply that one")
    }
}

impl ReviewedPlan {
    /// Age, project, environment, fingerprint, manifest, state, in this order.
    pub fn check_context(&self, context: &Context<'_>) -> Result<(), Box<Stale>> {
        if let Some((minutes, now)) = context.max_age {
            self.check_age(minutes, now)?;
        }
        let origin = &self.origin;
        same("project", self.project.as_str(), context.project, "the plan was made for another project")?;
        same(
            "environment",
            self.environment.as_str(),
            context.environment,
            "the plan was made for another environment",
        )?;
        same(
            "environment_fingerprint",
            &origin.environment_fingerprint,
            context.environment_fingerprint,
            "the runtime configuration of the environment changed after the plan was made",
        )?;
        same(
            "manifest_checksum",
            &origin.manifest_checksum,
            context.manifest_checksum,
            "the project changed after the plan was made",
        )?;
        let Some(reviewed) = &origin.state else {
            return Err(Stale::new("state", Value::Null, context.state, "the plan was made offline, without a state"));
        };
        let current = context.state;
        same(
            "state.backend",
            &reviewed.store.backend,
            &current.store.backend,
            "the plan was made against another kind of state backend",
        )?;
        same(
            "state.store_id",
            &reviewed.store.store_id,
            &current.store.store_id,
            "the plan was made against another state store",
        )?;
        same(
            "state.address",
            &reviewed.address.to_string(),
            &current.address.to_string(),
            "the plan was made against another state address",
        )?;
        same("state.serial", &reviewed.serial, &current.serial, "the state changed after the plan was made")?;
        same(
            "state.checksum",
            &reviewed.checksum,
            &current.checksum,
            "the state's content is another one under the same serial",
        )
    }

    fn check_age(&self, minutes: u32, now: Timestamp) -> Result<(), Box<Stale>> {
        let age = self.origin.created_at.instant().map(|made| now.duration_since(made));
        let message = match age {
            Some(age) if age > SignedDuration::from_mins(i64::from(minutes)) => {
                format!("the plan is older than the {minutes} minutes that this environment allows")
            }
            Some(age) if age < -SKEW => "the plan's creation time lies in the future".to_owned(),
            Some(_) => return Ok(()),
            None => "the plan's creation time cannot be read".to_owned(),
        };
        let mut stale = Stale::new("created_at", &self.origin.created_at, Value::Null, &message);
        stale.reason = Some("expired");
        Err(stale)
    }

    /// Actions, then every section of the payload, consumer lag aside.
    pub fn check_plan(&self, fresh: &Plan) -> Result<(), Box<Stale>> {
        if self.actions != fresh.actions {
            let message = "the actions that would be carried out now are not the reviewed ones";
            return Err(Stale::new("actions", digest(&self.actions), digest(&fresh.actions), message));
        }
        let reviewed = without_lag(self.plan.clone());
        let Ok(current) = redacted(fresh.payload()).map(without_lag) else {
            let message = "what would be carried out now cannot be compared with the review";
            return Err(Stale::new("plan", digest(&reviewed), Value::Null, message));
        };
        let sections = differing_sections(&reviewed, &current);
        if sections.is_empty() {
            return Ok(());
        }
        let message = format!("what is live is not what was reviewed: {} differ", sections.join(", "));
        let mut stale = Stale::new("plan", digest(&reviewed), digest(&current), &message);
        stale.sections = sections;
        Err(stale)
    }
}

/// A digest of what may not be shown; null where there is none.
fn digest<T: Serialize>(value: &T) -> Option<Checksum> {
    Checksum::of(value).ok()
}

fn same<T: PartialEq + Serialize + ?Sized>(
    field: &'static str,
    reviewed: &T,
    current: &T,
    message: &str,
) -> Result<(), Box<Stale>> {
    if reviewed == current { Ok(()) } else { Err(Stale::new(field, reviewed, current, message)) }
}

fn without_lag(mut payload: PlanPayload) -> PlanPayload {
    for consumer in payload.impact.iter_mut().flat_map(|entry| &mut entry.consumers) {
        consumer.lag = 0;
    }
    payload
}

fn differing_sections(a: &PlanPayload, b: &PlanPayload) -> Vec<&'static str> {
    let sections = [
        ("resources", a.resources == b.resources),
        ("impact", a.impact == b.impact),
        ("change_risks", a.change_risks == b.change_risks),
        ("risk_summary", a.risk_summary == b.risk_summary),
        ("ownership_requirements", a.ownership_requirements == b.ownership_requirements),
        ("safety_blockers", a.safety_blockers == b.safety_blockers),
        ("connector_removal_assessments", a.connector_removal_assessments == b.connector_removal_assessments),
        ("gateway_removal_assessments", a.gateway_removal_assessments == b.gateway_removal_assessments),
    ];
    sections.into_iter().filter(|(_, equal)| !equal).map(|(name, _)| name).collect()
}
