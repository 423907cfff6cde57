//! Whether a reviewed plan still describes the world: the checks behind E409.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::codes::{Code, Diagnostic};
use crate::compiler::canonical::Checksum;
use crate::planner::Plan;

use super::{ReviewedPlan, StateReference};

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
    pub reason: Option<&'static str>,
    /// Digests, names and numbers; never contents.
    pub reviewed: Value,
    pub current: Value,
    message: String,
}

impl Stale {
    /// `data.stale` of the JSON output.
    pub fn data(&self) -> Value {
        match self.reason {
            Some(reason) => json!({"field": self.field, "reason": reason}),
            None => json!({"field": self.field, "reviewed": self.reviewed, "current": self.current}),
        }
    }

    /// E409.
    pub fn diagnostic(&self) -> Diagnostic {
        Diagnostic::new(Code::E409PlanStale, self.message.clone()).suggest("plan and review again")
    }
}

impl ReviewedPlan {
    /// Age, project, environment, fingerprint, manifest, state, in this order.
    pub fn check_context(&self, context: &Context<'_>) -> Result<(), Box<Stale>> {
        let _ = context;
        Err(Box::new(not_built()))
    }

    /// Actions, then every section of the payload, consumer lag aside.
    pub fn check_plan(&self, fresh: &Plan) -> Result<(), Box<Stale>> {
        let _ = fresh;
        Err(Box::new(not_built()))
    }
}

fn not_built() -> Stale {
    Stale {
        field: "plan",
        reason: None,
        reviewed: Value::Null,
        current: Value::Null,
        message: "plan files are not built".to_owned(),
    }
}
