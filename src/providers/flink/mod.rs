//! One Flink cluster: the JobManager's REST interface and the SQL Gateway. Promises: a job is found by its exact name or its
//! id, one operation submits a job at most once however often answers are lost, secrets stand in nothing but the statements
//! that go to the gateway, and of what Flink says only one line without secrets is kept. No call cancels a job, stops it or
//! takes a savepoint.

mod gateway;
mod jobs;
mod statements;
mod submit;
mod wire;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use super::http::{Fields, Login, ProviderHttp};
use super::tls::Material;
use super::{ProviderFailure, VendorText};
use crate::project::model::{FlinkCluster, KafkaRuntime, SchemaRegistryRuntime};
use statements::Fillings;

pub use jobs::{Overview, why};
pub use submit::Submitted;

/// One cluster. Cheap to clone.
#[derive(Clone)]
pub struct FlinkClient {
    jobs: Option<ProviderHttp>,
    gateway: Option<ProviderHttp>,
    fillings: Fillings,
    /// Of one request.
    timeout: Duration,
    /// Further attempts of a read that was not answered.
    retries: u32,
    /// Of one statement.
    statement_timeout: Duration,
}

impl fmt::Debug for FlinkClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlinkClient").finish_non_exhaustive()
    }
}

const MEDIA_TYPE: &str = "application/json";
const REST_URL: &str = "the rest_url of the Flink cluster";

const fn fields(url: &'static str) -> Fields {
    Fields { url, username: "the username of the Flink cluster", password: "the password of the Flink cluster" }
}

impl FlinkClient {
    /// Builds the client without asking anything. Kafka and the registry give what `***` stands for in the statements;
    /// `project_root` resolves relative TLS files.
    pub fn new(
        cluster: &FlinkCluster,
        kafka: Option<&KafkaRuntime>,
        registry: Option<&SchemaRegistryRuntime>,
        project_root: &Path,
    ) -> Result<Self, ProviderFailure> {
        let material = Material::load(&cluster.tls, project_root)?;
        let client = |url: &Option<String>, field: &'static str| {
            let login = match &cluster.api_key {
                Some(key) => Login::Bearer(key),
                None => Login::Basic(&cluster.auth),
            };
            url.as_deref().map(|url| ProviderHttp::new(url, login, &material, MEDIA_TYPE, fields(field))).transpose()
        };
        Ok(Self {
            jobs: client(&cluster.rest_url, REST_URL)?,
            gateway: client(&cluster.sql_gateway_url, "the sql_gateway_url of the Flink cluster")?,
            fillings: Fillings::new(cluster, kafka, registry),
            timeout: Duration::from_secs(u64::from(cluster.timeout)),
            retries: cluster.retries,
            statement_timeout: Duration::from_secs(u64::from(cluster.statement_timeout)),
        })
    }

    fn jobs(&self) -> Result<&ProviderHttp, ProviderFailure> {
        self.jobs.as_ref().ok_or(ProviderFailure::Config { field: REST_URL })
    }

    fn gateway(&self) -> Result<&ProviderHttp, ProviderFailure> {
        self.gateway.as_ref().ok_or(ProviderFailure::NoSqlGateway)
    }

    fn vendor_text(&self, line: Option<String>) -> Option<VendorText> {
        VendorText::at_border(&line?, &self.fillings.secrets())
    }
}

#[cfg(test)]
mod tests;
