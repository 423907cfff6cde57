//! Which cluster a job belongs to.

use crate::codes::{Code, Diagnostic};
use crate::compiler::artifact::FlinkJobArtifact;
use crate::project::model::{FlinkCluster, Project};

/// The cluster that a job names, else the default one of models, else that of the runtime: alias and block. E208 without
/// any, E209 for one that is not declared.
pub fn cluster_of<'a>(
    project: &'a Project,
    job: &'a FlinkJobArtifact,
) -> Result<(&'a str, &'a FlinkCluster), Diagnostic> {
    let missing = |what: &str| {
        let text = format!("Flink is required by flink_job '{}' and `{what}` is not set", job.name);
        Diagnostic::new(Code::E208MissingConfig, text)
            .suggest("add the cluster to the `runtime.flink` block of the project or of the selected environment")
    };
    let runtime = project.runtime.flink.as_ref().ok_or_else(|| missing("runtime.flink"))?;
    let alias = job.cluster.as_deref().or(project.defaults.model_cluster.as_deref()).or(runtime.default.as_deref());
    let alias = alias.ok_or_else(|| missing("runtime.flink.default"))?;
    let cluster = runtime.clusters.get(alias).ok_or_else(|| {
        let text = format!("flink_job '{}' belongs to the Flink cluster '{alias}', which is not declared", job.name);
        Diagnostic::new(Code::E209InvalidClusterRef, text).suggest("declare it in `runtime.flink.clusters`")
    })?;
    Ok((alias, cluster))
}
