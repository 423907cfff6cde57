//! The replacement of a Kafka Streams runner, as values: what was reviewed of it, and what each of its boundaries proves. It
//! promises that evidence which contradicts itself can be neither read nor written; observing and deciding is not its business.

mod checkpoint;
mod evidence;
mod plan;
mod progress;
mod scalar;
#[cfg(test)]
pub mod testing;
#[cfg(test)]
mod tests;

pub use checkpoint::{Checkpoint, Phase};
pub use evidence::{Evidence, Volume};
pub use plan::plan_hash;
pub use progress::{GroupProgress, PartitionProgress};
pub use scalar::{ApplicationId, BackendIdentity, ClusterId, DockerId, DockerTime, ImageId, TopicId};
