//! Four identities that are never taken for one another: resource id, connector name, cluster alias, backend identity.
//!
//! ```compile_fail
//! use streamt::planner::connector::{ClusterAlias, ConnectorName};
//! fn select(name: &ConnectorName) {}
//! fn mixed_up(alias: &ClusterAlias) { select(alias) }
//! ```
//!
//! ```compile_fail
//! use streamt::planner::connector::BackendIdentity;
//! use streamt::state::model::ResourceId;
//! fn owns(id: &ResourceId) {}
//! fn mixed_up(backend: &BackendIdentity) { owns(backend) }
//! ```

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::compiler::canonical::Checksum;
use crate::project::endpoint::{Endpoint, EndpointError};
use crate::project::model::ConnectRuntime;

const PREFIX: &str = "kafka-connect:v1:";
const MAX_NAME: usize = 256;

/// A configured worker cluster: `^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ClusterAlias(String);

impl ClusterAlias {
    pub fn new(text: &str) -> Option<Self> {
        is_plain(text).then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// `^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`
pub(crate) fn is_plain(text: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    text.len() <= 128
        && text.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
        && text.bytes().all(legal)
}

/// One connector at a worker cluster: 1..=256 characters, none of them control. `.` and `..` are no names: URL parsers
/// resolve such a segment, so it would address something else.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectorName(String);

impl ConnectorName {
    pub fn new(text: &str) -> Option<Self> {
        let whole = !text.trim().is_empty() && text.chars().count() <= MAX_NAME && !text.chars().any(char::is_control);
        (whole && !matches!(text, "." | "..")).then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ConnectorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Lower-case hex SHA-256 of a normalized endpoint: it binds an endpoint and shows nothing of it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EndpointDigest(String);

impl EndpointDigest {
    pub fn of(rest_url: &str) -> Result<Self, EndpointError> {
        Endpoint::normalize(rest_url).map(|endpoint| Self::of_endpoint(&endpoint))
    }

    fn of_endpoint(endpoint: &Endpoint) -> Self {
        Self(Checksum::of_bytes(endpoint.as_str().as_bytes()).hex().to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// `kafka-connect:v1:<alias>:sha256:<endpoint digest>`: how a record, an action and an observation name a cluster.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BackendIdentity(String);

impl BackendIdentity {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BackendIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why no cluster can be bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BindingError {
    /// No `runtime.connect`, or no cluster in it.
    NoRuntime,
    NoDefault,
    /// `runtime.connect.default` is not in `runtime.connect.clusters`.
    UnknownDefault,
    Alias,
    Endpoint(EndpointError),
}

/// One worker cluster under its alias. Binding version 1.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectClusterBinding {
    alias: ClusterAlias,
    endpoint: EndpointDigest,
}

impl ConnectClusterBinding {
    pub fn new(alias: ClusterAlias, endpoint: EndpointDigest) -> Self {
        Self { alias, endpoint }
    }

    /// The one cluster that can be bound: `runtime.connect.default`.
    pub fn of_default(runtime: Option<&ConnectRuntime>) -> Result<Self, BindingError> {
        let runtime = runtime.filter(|runtime| !runtime.clusters.is_empty()).ok_or(BindingError::NoRuntime)?;
        let default = runtime.default.as_deref().ok_or(BindingError::NoDefault)?;
        let cluster = runtime.clusters.get(default).ok_or(BindingError::UnknownDefault)?;
        let alias = ClusterAlias::new(default).ok_or(BindingError::Alias)?;
        let endpoint = EndpointDigest::of(&cluster.rest_url).map_err(BindingError::Endpoint)?;
        Ok(Self { alias, endpoint })
    }

    /// None unless the text renders again to itself; legacy texts without an endpoint bind nothing.
    pub fn parse(text: &str) -> Option<Self> {
        let (alias, digest) = text.strip_prefix(PREFIX)?.split_once(":sha256:")?;
        let hex = digest.len() == 64 && digest.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        hex.then(|| Some(Self { alias: ClusterAlias::new(alias)?, endpoint: EndpointDigest(digest.to_owned()) }))?
    }

    pub fn alias(&self) -> &ClusterAlias {
        &self.alias
    }

    /// With the connector's name the key of its namespace: two aliases of one endpoint share it.
    pub fn endpoint(&self) -> &EndpointDigest {
        &self.endpoint
    }

    pub fn identity(&self) -> BackendIdentity {
        BackendIdentity(format!("{PREFIX}{}:sha256:{}", self.alias.0, self.endpoint.0))
    }
}

impl Serialize for ConnectClusterBinding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.identity().as_str())
    }
}

impl<'de> Deserialize<'de> for ConnectClusterBinding {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).ok_or_else(|| de::Error::custom("no Connect backend identity"))
    }
}

impl Serialize for ConnectorName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ConnectorName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(&String::deserialize(deserializer)?).ok_or_else(|| de::Error::custom("no connector name"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::project::model::{BasicAuth, ConnectCluster, Tls};

    fn runtime(default: Option<&str>, clusters: &[(&str, &str)]) -> ConnectRuntime {
        let cluster =
            |url: &str| ConnectCluster { rest_url: url.to_owned(), auth: BasicAuth::default(), tls: Tls::default() };
        ConnectRuntime {
            default: default.map(str::to_owned),
            clusters: clusters
                .iter()
                .map(|(alias, url)| ((*alias).to_owned(), cluster(url)))
                .collect::<BTreeMap<_, _>>(),
        }
    }

    fn identity(url: &str) -> String {
        let bound = ConnectClusterBinding::of_default(Some(&runtime(Some("primary"), &[("primary", url)])));
        bound.unwrap().identity().as_str().to_owned()
    }

    /// CRM-005, CRM-007, CRM-008: the types are told apart by the examples of this module, which must not compile.
    #[test]
    fn the_identity_holds_alias_and_digest_and_no_part_of_the_endpoint() {
        let text = identity("https://connect.example.test");
        assert_eq!(
            text,
            "kafka-connect:v1:primary:sha256:e9b1bf835a819a4cbbedc6712019be3e74daec37fd3709464eaf327b095e162e"
        );
        for spelling in
            ["HTTPS://Connect.Example.TEST:443/", "https://connect.example.test/", "https://CONNECT.example.test:443"]
        {
            assert_eq!(identity(spelling), text, "{spelling}");
        }
        for other in
            ["http://connect.example.test", "https://connect.example.test/base", "https://connect.example.test:8083"]
        {
            assert_ne!(identity(other), text, "{other}");
        }
        assert!(!text.contains("example"));
    }

    /// CRM-007
    #[test]
    fn an_identity_reads_back_as_itself_and_legacy_texts_bind_nothing() {
        let text = identity("https://connect.example.test");
        let binding = ConnectClusterBinding::parse(&text).unwrap();
        assert_eq!((binding.identity().as_str(), binding.alias().as_str()), (text.as_str(), "primary"));
        for other in [
            "kafka-connect",
            "kafka-connect:v1:primary",
            &text.replace("v1", "v2"),
            &text.replace("primary", "_primary"),
            &text.replace("primary", ""),
            &text.replace("e9b1", "E9B1"),
            &format!("{text}0"),
            &text[..text.len() - 1],
            &format!(" {text}"),
        ] {
            assert_eq!(ConnectClusterBinding::parse(other), None, "{other}");
        }
    }

    /// CRM-009
    #[test]
    fn only_the_default_cluster_is_bound() {
        let bind =
            |runtime: &ConnectRuntime| ConnectClusterBinding::of_default(Some(runtime)).map(|b| b.alias().0.clone());
        let two = [("a", "http://one:8083"), ("b", "http://two:8083")];
        assert_eq!(bind(&runtime(Some("b"), &two)), Ok("b".to_owned()));
        assert_eq!(bind(&runtime(None, &two)), Err(BindingError::NoDefault));
        assert_eq!(bind(&runtime(Some("c"), &two)), Err(BindingError::UnknownDefault));
        assert_eq!(bind(&runtime(Some("_a"), &[("_a", "http://one:8083")])), Err(BindingError::Alias));
        assert_eq!(
            bind(&runtime(Some("a"), &[("a", "http://u:p@one:8083")])),
            Err(BindingError::Endpoint(EndpointError::UserInfo))
        );
        assert_eq!(bind(&runtime(Some("a"), &[])), Err(BindingError::NoRuntime));
        assert_eq!(ConnectClusterBinding::of_default(None), Err(BindingError::NoRuntime));
    }

    /// CRM-003
    #[test]
    fn names_that_no_path_segment_can_hold_are_no_connector_names() {
        for name in ["a", "a b/c%", "é", "x~y", "...", &"n".repeat(256)] {
            assert!(ConnectorName::new(name).is_some(), "{name}");
        }
        for name in ["", " ", ".", "..", "a\nb", "a\u{7f}", &"n".repeat(257)] {
            assert!(ConnectorName::new(name).is_none(), "{name:?}");
        }
    }
}
