//! Which provider actor serves whom: one for each endpoint and credential, shared by all environments of a runtime that use
//! both. Another credential never shares an actor, hence never a connection.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use actix::{Actor, Addr, WeakAddr};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::connect::ConnectActor;
use super::flink::FlinkActor;
use super::kafka::KafkaActor;
use super::schema_registry::SchemaRegistryActor;
use crate::project::model::{ConnectRuntime, FlinkCluster, KafkaRuntime, SchemaRegistryRuntime, Tls};

/// Endpoint and credentials of one provider, the latter under a key that exists in this process only.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct ActorKey {
    endpoint: String,
    auth: [u8; 32],
}

/// The live provider actors of one runtime. Actors end with their last user.
pub(crate) struct Registry {
    key: [u8; 32],
    kafka: RefCell<HashMap<ActorKey, WeakAddr<KafkaActor>>>,
    schema_registry: RefCell<HashMap<ActorKey, WeakAddr<SchemaRegistryActor>>>,
    connect: RefCell<HashMap<ActorKey, WeakAddr<ConnectActor>>>,
    flink: RefCell<HashMap<ActorKey, WeakAddr<FlinkActor>>>,
}

impl Registry {
    pub fn new() -> Self {
        let mut key = [0; 32];
        key[..16].copy_from_slice(Uuid::new_v4().as_bytes());
        key[16..].copy_from_slice(Uuid::new_v4().as_bytes());
        Self {
            key,
            kafka: RefCell::default(),
            schema_registry: RefCell::default(),
            connect: RefCell::default(),
            flink: RefCell::default(),
        }
    }

    /// Starts the actor in the current arbiter unless one serves the same endpoint and credential.
    pub fn kafka(&self, runtime: &KafkaRuntime, project_root: &Path) -> Addr<KafkaActor> {
        let key = self.kafka_key(runtime, project_root);
        shared(&self.kafka, key, || KafkaActor::new(runtime.clone(), project_root.to_owned()).start())
    }

    pub fn schema_registry(&self, runtime: &SchemaRegistryRuntime, project_root: &Path) -> Addr<SchemaRegistryActor> {
        let key = self.schema_registry_key(runtime, project_root);
        shared(&self.schema_registry, key, || SchemaRegistryActor::new(runtime, project_root).start())
    }

    /// Serves the default cluster, the only one that connectors run on.
    pub fn connect(&self, runtime: &ConnectRuntime, project_root: &Path) -> Addr<ConnectActor> {
        let key = self.connect_key(runtime, project_root);
        shared(&self.connect, key, || ConnectActor::new(runtime, project_root).start())
    }

    /// Serves the jobs of one cluster that log in to this Kafka and this registry.
    pub fn flink(
        &self,
        cluster: &FlinkCluster,
        kafka: Option<&KafkaRuntime>,
        registry: Option<&SchemaRegistryRuntime>,
        project_root: &Path,
    ) -> Addr<FlinkActor> {
        let key = self.flink_key(cluster, kafka, registry, project_root);
        shared(&self.flink, key, || FlinkActor::new(cluster, kafka, registry, project_root).start())
    }

    fn flink_key(
        &self,
        cluster: &FlinkCluster,
        kafka: Option<&KafkaRuntime>,
        registry: Option<&SchemaRegistryRuntime>,
        project_root: &Path,
    ) -> ActorKey {
        let FlinkCluster {
            cluster_type: _,
            rest_url,
            sql_gateway_url,
            version: _,
            environment: _,
            kafka_connector,
            api_key,
            api_secret,
            auth: basic,
            tls,
            confluent: _,
            timeout,
            retries,
            statement_timeout,
        } = cluster;
        let mut auth = Keyed::new(&self.key);
        auth.field(rest_url.as_deref());
        auth.field(sql_gateway_url.as_deref());
        auth.field(Some(&format!("{kafka_connector:?}/{timeout}/{retries}/{statement_timeout}")));
        auth.field(api_key.as_ref().map(|secret| secret.expose()));
        auth.field(api_secret.as_ref().map(|secret| secret.expose()));
        auth.field(basic.username.as_deref());
        auth.field(basic.password.as_ref().map(|secret| secret.expose()));
        auth.tls(tls, project_root);
        let others = [
            kafka.map(|runtime| self.kafka_key(runtime, project_root).auth),
            registry.map(|runtime| self.schema_registry_key(runtime, project_root).auth),
        ];
        for other in others {
            auth.bytes(other.as_ref().map(<[u8; 32]>::as_slice));
        }
        ActorKey { endpoint: rest_url.clone().unwrap_or_default(), auth: auth.end() }
    }

    fn kafka_key(&self, runtime: &KafkaRuntime, project_root: &Path) -> ActorKey {
        let KafkaRuntime {
            bootstrap_servers,
            bootstrap_servers_internal: _,
            security_protocol,
            sasl_mechanism,
            sasl_username,
            sasl_password,
            sasl_oauth_token_url,
            sasl_oauth_client_id,
            sasl_oauth_client_secret,
            sasl_oauth_scope,
            aws_region,
            tls,
        } = runtime;
        let mut auth = Keyed::new(&self.key);
        auth.field(Some(&format!("{security_protocol:?}/{sasl_mechanism:?}")));
        auth.field(sasl_username.as_deref());
        auth.field(sasl_password.as_ref().map(|secret| secret.expose()));
        auth.field(sasl_oauth_token_url.as_deref());
        auth.field(sasl_oauth_client_id.as_deref());
        auth.field(sasl_oauth_client_secret.as_ref().map(|secret| secret.expose()));
        auth.field(sasl_oauth_scope.as_deref());
        auth.field(aws_region.as_deref());
        auth.tls(tls, project_root);
        ActorKey { endpoint: bootstrap_servers.clone(), auth: auth.end() }
    }

    /// The alias is part of what observations are bound to.
    fn connect_key(&self, runtime: &ConnectRuntime, project_root: &Path) -> ActorKey {
        let default = runtime.default.as_deref();
        let cluster = default.and_then(|alias| runtime.clusters.get(alias));
        let mut auth = Keyed::new(&self.key);
        auth.field(default);
        if let Some(cluster) = cluster {
            auth.field(cluster.auth.username.as_deref());
            auth.field(cluster.auth.password.as_ref().map(|secret| secret.expose()));
            auth.tls(&cluster.tls, project_root);
        }
        ActorKey { endpoint: cluster.map(|cluster| cluster.rest_url.clone()).unwrap_or_default(), auth: auth.end() }
    }

    fn schema_registry_key(&self, runtime: &SchemaRegistryRuntime, project_root: &Path) -> ActorKey {
        let SchemaRegistryRuntime { url, auth: basic, token, tls } = runtime;
        let mut auth = Keyed::new(&self.key);
        auth.field(basic.username.as_deref());
        auth.field(basic.password.as_ref().map(|secret| secret.expose()));
        auth.field(token.as_ref().map(|secret| secret.expose()));
        auth.tls(tls, project_root);
        ActorKey { endpoint: url.clone(), auth: auth.end() }
    }
}

fn shared<A: Actor<Context = actix::Context<A>>>(
    actors: &RefCell<HashMap<ActorKey, WeakAddr<A>>>,
    key: ActorKey,
    start: impl FnOnce() -> Addr<A>,
) -> Addr<A> {
    let mut actors = actors.borrow_mut();
    actors.retain(|_, actor| actor.upgrade().is_some_and(|actor| actor.connected()));
    if let Some(actor) = actors.get(&key).and_then(WeakAddr::upgrade) {
        return actor;
    }
    let actor = start();
    actors.insert(key, actor.downgrade());
    actor
}

/// A digest of fields under a key; a field and an absent one never look alike.
struct Keyed(Sha256);

impl Keyed {
    fn new(key: &[u8; 32]) -> Self {
        Self(Sha256::new().chain_update(key))
    }

    fn field(&mut self, value: Option<&str>) {
        self.bytes(value.map(str::as_bytes));
    }

    fn bytes(&mut self, value: Option<&[u8]>) {
        match value {
            None => self.0.update([0]),
            Some(value) => {
                self.0.update([1]);
                self.0.update((value.len() as u64).to_be_bytes());
                self.0.update(value);
            }
        }
    }

    /// Relative files of another project are other files.
    fn tls(&mut self, tls: &Tls, project_root: &Path) {
        let Tls { ca_location, certificate_location, key_location, key_password } = tls;
        for file in [ca_location, certificate_location, key_location] {
            let resolved: Option<PathBuf> = file.as_ref().map(|file| project_root.join(file));
            self.field(resolved.as_ref().map(|file| file.to_string_lossy()).as_deref());
        }
        self.field(key_password.as_ref().map(|secret| secret.expose()));
    }

    fn end(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::model::{BasicAuth, SaslMechanism, SecurityProtocol};
    use crate::project::secret::Secret;

    fn registry(url: &str, password: Option<&str>) -> SchemaRegistryRuntime {
        let auth = BasicAuth { username: Some("alice".into()), password: password.map(Secret::new) };
        SchemaRegistryRuntime { url: url.into(), auth, token: None, tls: Tls::default() }
    }

    #[actix::test]
    async fn environments_share_an_actor_only_with_the_same_endpoint_and_credential() {
        let actors = Registry::new();
        let root = Path::new("/project");
        let first = actors.schema_registry(&registry("http://127.0.0.1:1", Some("a")), root);
        assert_eq!(first, actors.schema_registry(&registry("http://127.0.0.1:1", Some("a")), root));
        assert_ne!(first, actors.schema_registry(&registry("http://127.0.0.1:1", Some("b")), root));
        assert_ne!(first, actors.schema_registry(&registry("http://127.0.0.1:1", None), root));
        assert_ne!(first, actors.schema_registry(&registry("http://127.0.0.1:2", Some("a")), root));
    }

    #[test]
    fn whatever_is_part_of_a_login_makes_another_actor() {
        type Change<T> = fn(&mut T);
        let actors = Registry::new();
        let root = Path::new("/project");
        let kafka = KafkaRuntime::plain("localhost");
        let changes: [Change<KafkaRuntime>; 14] = [
            |runtime| runtime.bootstrap_servers = "elsewhere".into(),
            |runtime| runtime.security_protocol = Some(SecurityProtocol::SaslSsl),
            |runtime| runtime.sasl_mechanism = Some(SaslMechanism::Plain),
            |runtime| runtime.sasl_username = Some("a".into()),
            |runtime| runtime.sasl_password = Some(Secret::new("a")),
            |runtime| runtime.sasl_oauth_token_url = Some("a".into()),
            |runtime| runtime.sasl_oauth_client_id = Some("a".into()),
            |runtime| runtime.sasl_oauth_client_secret = Some(Secret::new("a")),
            |runtime| runtime.sasl_oauth_scope = Some("a".into()),
            |runtime| runtime.aws_region = Some("a".into()),
            |runtime| runtime.tls.ca_location = Some("a".into()),
            |runtime| runtime.tls.certificate_location = Some("a".into()),
            |runtime| runtime.tls.key_location = Some("a".into()),
            |runtime| runtime.tls.key_password = Some(Secret::new("a")),
        ];
        let mut keys = vec![actors.kafka_key(&kafka, root)];
        for change in changes {
            let mut changed = kafka.clone();
            change(&mut changed);
            keys.push(actors.kafka_key(&changed, root));
        }
        let files = KafkaRuntime { tls: Tls { ca_location: Some("a".into()), ..Tls::default() }, ..kafka };
        keys.push(actors.kafka_key(&files, Path::new("/another")));
        let basic = registry("localhost", Some("a"));
        keys.push(actors.schema_registry_key(&basic, root));
        keys.push(actors.schema_registry_key(&registry("localhost", None), root));
        let named = BasicAuth { username: Some("bob".into()), ..basic.auth.clone() };
        keys.push(actors.schema_registry_key(&SchemaRegistryRuntime { auth: named, ..basic.clone() }, root));
        let token = SchemaRegistryRuntime { token: Some(Secret::new("a")), ..registry("localhost", None) };
        keys.push(actors.schema_registry_key(&token, root));
        for (at, key) in keys.iter().enumerate() {
            assert!(!keys[..at].contains(key), "{at}");
        }
    }

    #[test]
    fn a_key_holds_no_credential() {
        let runtime = registry("http://127.0.0.1:1", Some("sentinel-secret"));
        let one = Registry::new().schema_registry_key(&runtime, Path::new("/"));
        let other = Registry::new().schema_registry_key(&runtime, Path::new("/"));
        assert!(one.auth != other.auth, "the digest depends on a key of this process");
    }
}
