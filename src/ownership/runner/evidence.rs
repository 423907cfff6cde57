//! What a reviewed replacement is bound to: the runner that is there, the one that is meant, and all that must stay.

use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::plan::{differ_in_predicates_only, plan_hash};
use super::progress::GroupProgress;
use super::scalar::{ApplicationId, BackendIdentity, DockerId, DockerTime, ImageId};
use crate::compiler::artifact::{Artifact, KafkaStreamsJobArtifact, Kind};
use crate::compiler::canonical::{Checksum, to_canonical};
use crate::ownership::model::ResourceId;
use crate::ownership::scalar::uuid_text;
use crate::project::model::OwnershipMode;

const VERSION: u8 = 1;
const MAX_ARTIFACT: usize = 65_536;
const MAX_EVIDENCE: usize = 262_144;

/// The state volume, as it was witnessed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Volume {
    /// `<application id>-state`
    pub name: String,
    pub driver: String,
    pub created_at: DockerTime,
    pub application_id: ApplicationId,
    pub backend_identity: BackendIdentity,
    /// Tells one instance of the volume from another of the same name; never nil.
    #[serde(with = "uuid_text")]
    pub token: Uuid,
}

/// The evidence of one replacement, version 1.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    pub version: u8,
    pub backend_identity: BackendIdentity,
    pub prior_container_id: DockerId,
    pub prior_artifact: KafkaStreamsJobArtifact,
    pub desired_artifact: KafkaStreamsJobArtifact,
    pub image_id: ImageId,
    pub network_id: DockerId,
    pub volume: Volume,
    /// Lower bound of every later progress.
    pub progress: GroupProgress,
}

impl Evidence {
    /// Whether its parts agree with each other and with the resource that the action names.
    pub fn check(&self, resource: &ResourceId) -> Result<(), &'static str> {
        if self.version != VERSION {
            return Err("the evidence of a runner has another version");
        }
        let (prior, desired) = (&self.prior_artifact, &self.desired_artifact);
        for artifact in [prior, desired] {
            artifact.check(resource.project())?;
            if size(artifact) > MAX_ARTIFACT {
                return Err("the artifact of a runner is larger than its bound");
            }
        }
        let application = ApplicationId::of(resource.project(), resource.environment(), resource.logical_name());
        let named = resource.kind() == Kind::KafkaStreamsJob
            && desired.name == resource.logical_name()
            && application.as_ref().map(ApplicationId::as_str) == Some(desired.application_id.as_str());
        if !named {
            return Err("the evidence of a runner belongs to another resource");
        }
        match desired.ownership.mode {
            OwnershipMode::Managed | OwnershipMode::Adopted => {}
            OwnershipMode::External => return Err("the evidence of a runner belongs to an external job"),
        }
        let same = KafkaStreamsJobArtifact { plan: desired.plan.clone(), ..prior.clone() } == *desired;
        if !same || !differ_in_predicates_only(&prior.plan, &desired.plan)? {
            return Err("a runner is replaced for its predicates alone");
        }
        if ImageId::parse(&desired.image).is_some_and(|image| image != self.image_id) {
            return Err("the evidence of a runner names another image than its artifact");
        }
        let volume = &self.volume;
        let witnessed = volume.application_id.as_str() == desired.application_id
            && volume.backend_identity == self.backend_identity
            && volume.name == format!("{}-state", desired.application_id)
            && volume.driver == "local"
            && !volume.token.is_nil();
        if !witnessed {
            return Err("the evidence of a runner names a volume that is not its own");
        }
        self.progress.check()?;
        if size(self) > MAX_EVIDENCE {
            return Err("the evidence of a runner is larger than its bound");
        }
        Ok(())
    }

    /// The digest of all that does not move while the runner works: of progress, the identities alone.
    pub fn immutable_fingerprint(&self) -> Option<Checksum> {
        let mut whole = serde_json::to_value(self).ok()?;
        let progress = &self.progress;
        let partitions: Vec<u32> = progress.partitions.iter().map(|partition| partition.partition).collect();
        whole["progress"] = json!({
            "cluster_id": progress.cluster_id, "input_topic_id": progress.input_topic_id,
            "output_topic_id": progress.output_topic_id, "partitions": partitions,
        });
        Checksum::of(&whole).ok()
    }

    /// The digest of the file that the prior runner was given.
    pub fn prior_plan_hash(&self) -> Option<Checksum> {
        plan_hash(&self.prior_artifact.plan)
    }
}

fn size<T: Serialize>(value: &T) -> usize {
    to_canonical(value).map_or(usize::MAX, |bytes| bytes.len())
}
