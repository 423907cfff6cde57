//! A loaded project: every section and field of the language as closed types, defaults filled in, conversions done
//! (`columns` from `schema.fields`, `owner` from `owners`, `connector` → `sink`, the `from` shorthand).

mod deployment;
mod models;
mod runtime;
mod settings;
mod sources;
mod usage;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

pub use deployment::*;
pub use models::*;
pub use runtime::*;
pub use settings::*;
pub use sources::*;
pub use usage::*;

/// A project bound to one environment, ready for validation and compilation. Immutable.
#[derive(Clone, Debug)]
pub struct Project {
    /// Canonical directory; the base of every relative path.
    pub root: PathBuf,
    pub name: String,
    pub version: Option<String>,
    pub description: Option<String>,
    pub environment: Environment,
    pub runtime: Runtime,
    pub runtime_document: RuntimeDocument,
    pub deployment_state: DeploymentState,
    pub state_variables: StateVariables,
    pub defaults: Defaults,
    pub rules: Rules,
    pub connector_removals: Vec<ConnectorRemoval>,
    pub gateway_rule_removals: Vec<GatewayRuleRemoval>,
    pub connections: BTreeMap<String, Connection>,
    pub sources: Vec<Source>,
    pub models: Vec<Model>,
    pub tests: Vec<Test>,
    pub exposures: Vec<Exposure>,
    pub udfs: Vec<Udf>,
    /// Macro templates by name: text of `macros/<name>.sql.j2`.
    pub macros: BTreeMap<String, String>,
}

/// `runtime` as written, after interpolation: what the environment fingerprint covers. It holds secrets, so `Debug` prints
/// nothing of it; redact before printing.
#[derive(Clone, Default)]
pub struct RuntimeDocument(Value);

impl RuntimeDocument {
    pub fn new(document: Value) -> Self {
        Self(document)
    }

    pub fn expose(&self) -> &Value {
        &self.0
    }
}

impl std::fmt::Debug for RuntimeDocument {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RuntimeDocument(**********)")
    }
}

/// The effective environment and its policy. Names never imply policy.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The name in identities; `default` in a project without `environments/`.
    pub name: String,
    /// False in a project without `environments/`.
    pub multi: bool,
    pub description: String,
    pub protected: bool,
    pub confirm_apply: bool,
    pub allow_destructive: bool,
    /// Nothing is deleted, whatever flag is given.
    pub forbid_deletion: bool,
    pub require_reviewed_plan: bool,
    pub require_remote_state: bool,
    /// Minutes, 1..525600; none = no limit.
    pub reviewed_plan_max_age_minutes: Option<u32>,
}

impl Environment {
    /// The environment of a project without environments.
    pub fn single() -> Self {
        Self {
            name: "default".to_owned(),
            multi: false,
            description: String::new(),
            protected: false,
            confirm_apply: false,
            allow_destructive: false,
            forbid_deletion: false,
            require_reviewed_plan: false,
            require_remote_state: false,
            reviewed_plan_max_age_minutes: None,
        }
    }

    pub fn requires_reviewed_plan(&self) -> bool {
        self.protected || self.require_reviewed_plan
    }

    pub fn requires_confirmation(&self) -> bool {
        self.protected || self.confirm_apply
    }

    /// The name a user asked for: none in a project without environments.
    pub fn requested(&self) -> Option<&str> {
        self.multi.then_some(self.name.as_str())
    }
}
