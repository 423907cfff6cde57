//! One Kafka Connect worker cluster over its REST interface. Promises: an observation is one bounded answer about exactly one
//! connector or a failure, create and update are sent once more only after an answer that proves that nothing happened, a
//! managed deletion sends one DELETE and takes nothing but proved absence for success, and neither configuration values nor
//! the worker's own words appear in any failure. What to deploy or to delete stays the planner's business.

mod delete;
mod list;
mod mutate;
mod read;
mod wire;

use std::fmt;
use std::path::Path;

use super::ProviderFailure;
use super::http::{Fields, Login, ProviderHttp};
use super::tls::Material;
use crate::planner::connector::{BindingError, ConnectClusterBinding};
use crate::project::model::ConnectRuntime;

pub use delete::Deleted;
pub use list::{Direction, ListedConnector};

/// The state of a connector or of a task, as workers spell it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RunState {
    Unassigned,
    Running,
    Paused,
    Stopped,
    Failed,
    Restarting,
    Destroyed,
}

impl RunState {
    const ALL: [Self; 7] =
        [Self::Unassigned, Self::Running, Self::Paused, Self::Stopped, Self::Failed, Self::Restarting, Self::Destroyed];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unassigned => "UNASSIGNED",
            Self::Running => "RUNNING",
            Self::Paused => "PAUSED",
            Self::Stopped => "STOPPED",
            Self::Failed => "FAILED",
            Self::Restarting => "RESTARTING",
            Self::Destroyed => "DESTROYED",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// How a connector and its tasks run; traces and worker names are not kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConnectorStatus {
    pub state: RunState,
    pub tasks: Vec<RunState>,
}

/// What a worker says of a configuration that it has not taken yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConfigVerdict {
    Sound,
    /// `keys`: those that are plain names, sorted. `errors`: how many there are in all.
    Refused {
        keys: Vec<String>,
        errors: usize,
    },
    /// No worker has this class.
    NoPlugin,
    /// The class makes records and takes none.
    NotASink,
    /// It could not be asked, or did not judge.
    Unknown,
}

/// One worker cluster, the default one. Cheap to clone.
#[derive(Clone)]
pub struct ConnectClient {
    http: ProviderHttp,
    binding: ConnectClusterBinding,
}

impl fmt::Debug for ConnectClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectClient").field("binding", &self.binding).finish_non_exhaustive()
    }
}

const MEDIA_TYPE: &str = "application/json";

const FIELDS: Fields = Fields {
    url: "the rest_url of runtime.connect.default",
    username: "the username of runtime.connect.default",
    password: "the password of runtime.connect.default",
};

impl ConnectClient {
    /// Builds the client of `runtime.connect.default` without asking a worker anything. `project_root` resolves relative TLS
    /// files.
    pub fn new(runtime: &ConnectRuntime, project_root: &Path) -> Result<Self, ProviderFailure> {
        let binding = ConnectClusterBinding::of_default(Some(runtime)).map_err(|error| match error {
            BindingError::NoRuntime | BindingError::NoDefault | BindingError::UnknownDefault => {
                ProviderFailure::Config { field: "runtime.connect.default" }
            }
            BindingError::Alias => ProviderFailure::ConfigInvalid {
                field: "runtime.connect.default",
                problem: "does not begin with a letter or a digit",
            },
            BindingError::Endpoint(endpoint) => {
                ProviderFailure::ConfigInvalid { field: FIELDS.url, problem: endpoint.problem() }
            }
        })?;
        let cluster = runtime
            .clusters
            .get(binding.alias().as_str())
            .ok_or(ProviderFailure::Config { field: "runtime.connect.default" })?;
        let material = Material::load(&cluster.tls, project_root)?;
        let http = ProviderHttp::new(&cluster.rest_url, Login::Basic(&cluster.auth), &material, MEDIA_TYPE, FIELDS)?;
        Ok(Self { http, binding })
    }

    pub fn binding(&self) -> &ConnectClusterBinding {
        &self.binding
    }
}

#[cfg(test)]
mod tests;
