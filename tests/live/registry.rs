//! Subjects in a real registry.

use std::path::Path;

use serde_json::{Value, json};
use streamt::codes::Code;
use streamt::compiler::artifact::{SchemaArtifact, SchemaType};
use streamt::planner::observation::SchemaObservation;
use streamt::project::model::{BasicAuth, Compatibility, SchemaReference, SchemaRegistryRuntime, Tls};
use streamt::providers::schema_registry::{Registered, Verdict};
use streamt::providers::{ProviderFailure, RegistryClient};

use crate::support::{Open, ctx, ownership, unique, variable};

pub fn registry() -> RegistryClient {
    let runtime = SchemaRegistryRuntime {
        url: variable("STREAMT_TEST_REGISTRY"),
        auth: BasicAuth::default(),
        token: None,
        tls: Tls::default(),
    };
    RegistryClient::new(&runtime, Path::new("/")).expect("a client")
}

pub fn record(name: &str, fields: Value) -> Value {
    json!({"type": "record", "name": name, "fields": fields})
}

pub fn artifact(subject: &str, schema_type: SchemaType, schema: Value) -> SchemaArtifact {
    SchemaArtifact {
        subject: subject.to_owned(),
        schema,
        schema_type,
        compatibility: None,
        references: Vec::new(),
        ownership: ownership(),
    }
}

async fn observe(registry: &RegistryClient, subject: &str) -> SchemaObservation {
    let observed = registry.observe_subjects(&ctx(), &[subject.to_owned()]).await;
    observed.expect("an observation").remove(subject).expect("the subject asked for")
}

/// Registers against what is live, as a plan would have it.
pub async fn register(registry: &RegistryClient, artifact: &SchemaArtifact) -> Result<Registered, ProviderFailure> {
    let current = observe(registry, &artifact.subject).await;
    let next = registry.next_version(&ctx(), &artifact.subject).await.expect("a number");
    registry.register(&ctx(), &Open, &current, artifact, Some(next), false).await
}

#[tokio::test]
async fn every_type_of_schema_is_registered_and_observed_as_declared() {
    let registry = registry();
    registry.probe(&ctx()).await.expect("the registry answers");
    for (schema_type, schema) in [
        (SchemaType::Avro, record("Order", json!([{"name": "id", "type": "string"}]))),
        (SchemaType::Json, json!({"type": "object", "properties": {"id": {"type": "string"}}})),
        (SchemaType::Protobuf, json!("syntax = \"proto3\";\npackage shop;\n\nmessage Order {\n  string id = 1;\n}\n")),
    ] {
        let subject = unique("subject");
        assert_eq!(observe(&registry, &subject).await, SchemaObservation::absent(&subject));
        assert_eq!(registry.next_version(&ctx(), &subject).await, Ok(1));
        let declared = artifact(&subject, schema_type, schema);
        let registered = register(&registry, &declared).await.unwrap_or_else(|f| panic!("{schema_type:?} {f}"));
        assert_eq!(registered.version, 1);
        let live = observe(&registry, &subject).await;
        assert_eq!((live.version, live.schema_id), (Some(1), Some(registered.id)));
        assert_eq!(live.schema_type, Some(schema_type));
        assert_eq!(live.schema, Some(declared.schema.clone()), "{schema_type:?}");
        assert!(registry.list_subjects(&ctx()).await.expect("subjects").contains(&subject));
    }
}

#[tokio::test]
async fn an_incompatible_schema_is_found_by_the_check_and_refused_by_the_register() {
    let (registry, subject) = (registry(), unique("compat"));
    let mut first = artifact(&subject, SchemaType::Avro, record("A", json!([{"name": "id", "type": "string"}])));
    first.compatibility = Some(Compatibility::Backward);
    let registered = register(&registry, &first).await.expect("registered");
    assert_eq!(registered.level, Some(Compatibility::Backward));
    let live = observe(&registry, &subject).await;
    assert_eq!(live.own_compatibility, Some(Compatibility::Backward));

    let fields = json!([{"name": "id", "type": "string"}, {"name": "note", "type": "string", "default": ""}]);
    let compatible = artifact(&subject, SchemaType::Avro, record("A", fields));
    assert_eq!(registry.check_compatibility(&ctx(), &compatible).await, Ok(Verdict::Compatible));
    assert_eq!(register(&registry, &compatible).await.map(|registered| registered.version), Ok(2));

    let fields = json!([{"name": "id", "type": "string"}, {"name": "amount", "type": "int"}]);
    let incompatible = artifact(&subject, SchemaType::Avro, record("A", fields));
    let verdict = registry.check_compatibility(&ctx(), &incompatible).await.expect("a verdict");
    assert!(matches!(verdict, Verdict::Incompatible { .. }), "{verdict:?}");
    let failure = register(&registry, &incompatible).await.expect_err("incompatible");
    assert_eq!((failure.code(), failure.may_have_effect()), (Code::E402SchemaIncompatible, false));
    assert!(failure.vendor_text().is_some());
    assert_eq!(observe(&registry, &subject).await.version, Some(2));
}

#[tokio::test]
async fn a_level_is_set_and_told_apart_from_the_registrys_own() {
    let (registry, subject) = (registry(), unique("level"));
    let declared = artifact(&subject, SchemaType::Avro, json!({"type": "string"}));
    register(&registry, &declared).await.expect("registered");
    let live = observe(&registry, &subject).await;
    assert_eq!(live.own_compatibility, None);
    assert!(live.compatibility.is_some());
    registry.set_compatibility(&ctx(), &Open, &subject, Compatibility::FullTransitive).await.expect("set");
    let live = observe(&registry, &subject).await;
    assert_eq!(live.compatibility, Some(Compatibility::FullTransitive));
    assert_eq!(live.own_compatibility, Some(Compatibility::FullTransitive));
}

#[tokio::test]
async fn a_schema_that_references_another_is_registered_after_it() {
    let (registry, base, user) = (registry(), unique("base"), unique("user"));
    let customer = json!({"type": "record", "name": "Customer", "namespace": "com.shop",
        "fields": [{"name": "id", "type": "string"}]});
    let mut order =
        artifact(&user, SchemaType::Avro, record("Order", json!([{"name": "customer", "type": "com.shop.Customer"}])));
    order.references =
        vec![SchemaReference { name: "com.shop.Customer".to_owned(), subject: base.clone(), version: 1 }];
    assert_eq!(registry.version(&ctx(), &base, 1).await, Ok(None));
    let too_early = register(&registry, &order).await.expect_err("an unknown reference");
    assert!(!too_early.may_have_effect(), "{too_early:?}");

    register(&registry, &artifact(&base, SchemaType::Avro, customer)).await.expect("registered");
    assert!(registry.version(&ctx(), &base, 1).await.expect("read").is_some());
    register(&registry, &order).await.expect("registered");
    assert_eq!(observe(&registry, &user).await.references, order.references);
    let closed = registry.references_of(&ctx(), &user, 1).await.expect("a closed set");
    assert_eq!(closed.iter().map(|schema| schema.subject.as_str()).collect::<Vec<_>>(), [&user, &base]);
}

#[tokio::test]
async fn the_same_content_is_not_registered_twice() {
    let (registry, subject) = (registry(), unique("same"));
    let declared = artifact(&subject, SchemaType::Avro, record("A", json!([{"name": "id", "type": "string"}])));
    let first = register(&registry, &declared).await.expect("registered");
    let current = observe(&registry, &subject).await;
    let again = registry.register(&ctx(), &Open, &current, &declared, None, false).await;
    assert_eq!(again, Ok(Registered { level: None, ..first }));
    assert_eq!(observe(&registry, &subject).await, current);
}

#[tokio::test]
async fn a_subject_with_characters_of_a_path_is_addressed_as_one_name() {
    let (registry, subject) = (registry(), format!("{}/a b%c", unique("odd")));
    let declared = artifact(&subject, SchemaType::Avro, json!({"type": "string"}));
    register(&registry, &declared).await.expect("registered");
    assert!(observe(&registry, &subject).await.exists);
}
