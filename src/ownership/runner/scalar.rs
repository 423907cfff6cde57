//! Identities of the runner's surroundings: each has one exact text, and anything else is refused.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::compiler::canonical::to_canonical;
use crate::ownership::scalar::Timestamp;

macro_rules! text {
    ($(#[$doc:meta])* $name:ident, $what:literal, $legal:path) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// None unless the text has the exact form.
            pub fn parse(text: &str) -> Option<Self> {
                $legal(text).then(|| Self(text.to_owned()))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::parse(&text).ok_or_else(|| serde::de::Error::custom(concat!("not ", $what)))
            }
        }
    };
}

text!(
    /// A container or a network: 64 lower-case hex digits.
    DockerId,
    "the id of a container or a network",
    is_docker_id
);
text!(
    /// `sha256:` and 64 lower-case hex digits.
    ImageId,
    "the id of an image",
    is_image_id
);
text!(
    /// `streamt-` and 32 lower-case hex digits; application, consumer group, container and volume are named by it.
    ApplicationId,
    "an application id",
    is_application_id
);
text!(
    /// One Docker daemon with one Kafka cluster.
    BackendIdentity,
    "the identity of a runner's backend",
    is_backend
);
text!(ClusterId, "the id of a Kafka cluster", is_cluster_id);
text!(
    /// 16 bytes, not all zero, as 22 characters of URL-safe base64.
    TopicId,
    "the id of a topic",
    is_topic_id
);
text!(
    /// An instant in UTC with at most nine fraction digits. It keeps its text.
    DockerTime,
    "an instant in UTC",
    is_docker_time
);

impl ApplicationId {
    /// Of a model in an environment: stable under every change of the model itself. None for a blank part.
    pub fn of(project: &str, environment: &str, model: &str) -> Option<Self> {
        let parts = [project, environment, model];
        if parts.iter().any(|part| part.trim().is_empty()) {
            return None;
        }
        let digest = Sha256::digest(to_canonical(&parts).ok()?);
        let hex: String = digest[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        Self::parse(&format!("streamt-{hex}"))
    }
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

fn is_docker_id(text: &str) -> bool {
    is_hex(text, 64)
}

fn is_image_id(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|digits| is_hex(digits, 64))
}

fn is_application_id(text: &str) -> bool {
    text.strip_prefix("streamt-").is_some_and(|digits| is_hex(digits, 32))
}

fn is_backend(text: &str) -> bool {
    text.strip_prefix("kafka-streams-docker:v1:").is_some_and(|digits| is_hex(digits, 64))
}

fn is_url_safe(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

fn is_cluster_id(text: &str) -> bool {
    (1..=200).contains(&text.len()) && text.bytes().all(is_url_safe)
}

/// 22 characters hold 132 bits: the last four must be unset, or the text would read back as another one.
fn is_topic_id(text: &str) -> bool {
    text.len() == 22
        && text.bytes().all(is_url_safe)
        && text.ends_with(['A', 'Q', 'g', 'w'])
        && text.bytes().any(|byte| byte != b'A')
}

fn is_docker_time(text: &str) -> bool {
    let Some((seconds, fraction)) = text.strip_suffix('Z').and_then(|rest| rest.split_once('.')) else {
        return Timestamp::parse(text).is_some();
    };
    (1..=9).contains(&fraction.len())
        && fraction.bytes().all(|byte| byte.is_ascii_digit())
        && Timestamp::parse(&format!("{seconds}Z")).is_some()
}
