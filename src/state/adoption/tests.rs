//! Golden digests of observations, what may be claimed, what stands against it, and the saved selection under every edit.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::planner::connector::testing::{connector, live};
use crate::planner::fixtures::{
    ENVIRONMENT, PROJECT, World, id, live_schema, live_topic, record, reference, schema, topic,
};
use crate::project::model::Compatibility;
use crate::state::model::{BackendKind, StateAddress, StoreIdentity};
use crate::state::plan_file::StateReference;
use crate::state::testing::OPERATION;

fn adopted_topic(name: &str, partitions: u32, config: &[(&str, &str)]) -> TopicArtifact {
    let mut topic = topic(name, partitions, config);
    topic.ownership.mode = OwnershipMode::Adopted;
    topic
}

fn adopted_schema(subject: &str, body: Value) -> SchemaArtifact {
    let mut schema = schema(subject, body);
    schema.ownership.mode = OwnershipMode::Adopted;
    schema
}

fn world() -> World {
    World::new()
        .with_topic(adopted_topic("a.v1", 2, &[("x", "1")]), Some(live_topic("a.v1", 2, &[("x", "1")])))
        .with_schema(adopted_schema("b-value", json!("string")), Some(live_schema("b-value", 1, json!("string"))))
}

fn target(world: &World, kind: Kind, name: &str) -> Target {
    Target::find(&world.desired(), kind, name).expect("a target")
}

fn review(world: &World, kind: Kind, name: &str) -> Result<Review, Diagnostic> {
    let target = target(world, kind, name);
    Review::of(&target, Claim::New, target.seen(&world.observations).as_ref())
}

const CONFIG: &[(&str, &str)] = &[("cleanup.policy", "delete"), ("retention.ms", "604800000")];

/// ADO-001, ADO-015: the preimages and digests are frozen.
#[test]
fn golden_fingerprints_of_what_is_adopted() {
    let mut live = live_topic("orders.v1", 6, CONFIG);
    live.replication_factor = Some(3);
    let world = World::new().with_topic(adopted_topic("orders.v1", 6, CONFIG), Some(live));
    assert_eq!(
        review(&world, Kind::Topic, "orders").unwrap().fingerprint.as_str(),
        "sha256:bc03dab2f05b92711543663214e4a309eb008cdbb62f132ebb43b1fddf772129"
    );
    let body = json!({"fields":[{"name":"id","type":"string"},{"name":"amount","type":"double"}],"name":"Order","type":"record"});
    let mut live = live_schema("orders.v1-value", 3, body.clone());
    live.schema_id = Some(42);
    let world = World::new().with_schema(adopted_schema("orders.v1-value", body), Some(live));
    let shown = review(&world, Kind::Schema, "orders").unwrap();
    assert_eq!(shown.fingerprint.as_str(), "sha256:db7f72f5ec6db78bef2a3219950a12162442dd874f4aa9a4e548abdacbc2e4f9");
    assert_eq!(
        shown.attributes["observed"]["schema_checksum"],
        "sha256:546702195449770fedf4c65cc4db3a2b44c372e9e377511cd1e32ccadc77295f"
    );
}

/// ADO-007, ADO-008, ADO-014: the name of one declaration that says so, and nothing else.
#[test]
fn only_a_declaration_that_says_adopted_can_be_adopted() {
    let mut world = world();
    assert_eq!(target(&world, Kind::Topic, "a").physical_name, "a.v1");
    assert_eq!(target(&world, Kind::Schema, "b").physical_name, "b-value");
    let refused = |world: &World, kind, name| {
        let error = Target::find(&world.desired(), kind, name).unwrap_err();
        assert_eq!(error.code, Code::E412AdoptionTargetInvalid);
        format!("{} {}", error.message, error.suggestion.unwrap_or_default())
    };
    assert!(refused(&world, Kind::Topic, "a.v1").contains("'a'"), "the physical name is not the declaration's");
    assert!(refused(&world, Kind::Schema, "a").contains("declares a schema"));
    for kind in [Kind::FlinkJob, Kind::KafkaStreamsJob, Kind::GatewayRule] {
        assert!(refused(&world, kind, "a").contains("cannot be adopted"), "{kind}");
    }
    for mode in [OwnershipMode::Managed, OwnershipMode::External] {
        world.artifacts.topics[0].ownership.mode = mode;
        assert!(refused(&world, Kind::Topic, "a").contains(mode.as_str()));
    }
    world.artifacts.topics[0].ownership.mode = OwnershipMode::Adopted;
    world.artifacts.topics[0].ownership.project = "another".into();
    assert!(refused(&world, Kind::Topic, "a").contains("another declaration or project"));
    world.artifacts.topics[0].ownership.project = PROJECT.into();
    world.artifacts.topics.push(adopted_topic("a.v2", 1, &[]));
    assert!(refused(&world, Kind::Topic, "a").contains("2 resources"), "two topics under one name");
}

/// ADO-012, ADO-013: the identical claim stands; everything else that is recorded of it is in the way.
#[test]
fn a_claim_is_new_or_stands_exactly_or_conflicts() {
    let mut world = world();
    let topic = target(&world, Kind::Topic, "a");
    assert_eq!(topic.claim(&world.state), Ok(Claim::New));
    let own = topic.record();
    let conflict = |state: &OwnershipState| {
        let error = topic.claim(state).unwrap_err();
        assert_eq!(error.code, Code::E415AdoptionStateConflict);
        error.message
    };
    world.state.resources.insert(topic.resource_id.clone(), own.clone());
    assert_eq!(topic.claim(&world.state), Ok(Claim::Owned));
    for (changed, told) in [
        (OwnershipRecord { physical_name: "a.v0".into(), ..own.clone() }, "recorded as 'a.v0'"),
        (OwnershipRecord { backend: "legacy".into(), ..own.clone() }, "on legacy"),
        (OwnershipRecord { artifact_checksum: Checksum::of_bytes(b"x"), ..own.clone() }, "another declaration of it"),
    ] {
        world.state.resources.insert(topic.resource_id.clone(), changed);
        assert!(conflict(&world.state).contains(told));
    }
    world.state.resources.clear();
    world.state.resources.insert(id(Kind::Topic, "other"), own.clone());
    assert!(conflict(&world.state).contains("topic/other"));
    // The same name of another kind or on another backend is another resource.
    world.state.resources.clear();
    world.state.resources.insert(id(Kind::Schema, "other"), own.clone());
    world.state.resources.insert(id(Kind::Topic, "third"), OwnershipRecord { backend: "legacy".into(), ..own });
    assert_eq!(topic.claim(&world.state), Ok(Claim::New));
}

/// ADO-002: every attribute live and declared, and each difference; what looks like a secret is not shown.
#[test]
fn the_review_of_a_topic_shows_both_sides_and_what_a_plan_would_change() {
    let live = live_topic("a.v1", 6, &[("retention.ms", "1"), ("gone", "x"), ("my.password", "s3ntinel")]);
    let declared = adopted_topic("a.v1", 3, &[("retention.ms", "2"), ("new", "y"), ("my.secret", "s3ntinel")]);
    let world = World::new().with_topic(declared, Some(live));
    let data = Value::Object(review(&world, Kind::Topic, "a").unwrap().data());
    assert_eq!(data["observed"]["partitions"], 6);
    assert_eq!(data["observed"]["replication_factor"], 1);
    assert_eq!(data["observed"]["config"], json!({"gone": "x", "my.password": "<redacted>", "retention.ms": "1"}));
    assert_eq!(
        data["desired_managed_attributes"],
        json!({"partitions": 3, "config": {"my.secret": "<redacted>", "new": "y", "retention.ms": "2"}})
    );
    assert_eq!(data["desired_replication_factor"], 1);
    let pending = &data["pending_diffs"];
    assert_eq!(pending["config.retention.ms"], json!({"from": "1", "to": "2"}));
    assert_eq!(pending["config.gone"], json!({"from": "x", "to": null}));
    assert_eq!(pending["config.new"], json!({"from": null, "to": "y"}));
    assert_eq!(
        (&pending["partitions_error"]["current"], &pending["partitions_error"]["desired"]),
        (&json!(6), &json!(3))
    );
    assert!(!data.to_string().contains("s3ntinel"), "{data}");
    let equal = review(&self::world(), Kind::Topic, "a").unwrap();
    assert_eq!(equal.pending().map(serde_json::Map::len), Some(0));
}

/// ADO-015, ADO-016: metadata and digests; the body never.
#[test]
fn the_review_of_a_subject_holds_no_body() {
    let body = |field: &str| json!({"type": "record", "name": "R", "fields": [{"name": field, "type": "string"}]});
    let mut declared = adopted_schema("b-value", body("s3ntinel_declared"));
    declared.compatibility = Some(Compatibility::Full);
    declared.references = vec![reference("c-value", 2)];
    let world = World::new().with_schema(declared, Some(live_schema("b-value", 4, body("s3ntinel_live"))));
    let data = Value::Object(review(&world, Kind::Schema, "b").unwrap().data());
    let observed = &data["observed"];
    assert_eq!(
        (&observed["version"], &observed["schema_id"], &observed["schema_type"]),
        (&json!(4), &json!(7), &json!("AVRO"))
    );
    assert_eq!((&observed["subject"], &observed["compatibility"]), (&json!("b-value"), &json!("BACKWARD")));
    let pending = &data["pending_diffs"];
    assert_eq!(pending["compatibility"], json!({"from": "BACKWARD", "to": "FULL"}));
    assert!(pending["schema_checksum"]["to"].as_str().unwrap().starts_with("sha256:"));
    assert!(pending.get("schema_type").is_none());
    assert!(!data.to_string().contains("s3ntinel"), "{data}");

    // The reference alone is a difference of the content.
    let mut declared = adopted_schema("b-value", json!("string"));
    declared.references = vec![reference("c-value", 2)];
    let world = World::new().with_schema(declared, Some(live_schema("b-value", 1, json!("string"))));
    assert!(review(&world, Kind::Schema, "b").unwrap().pending().unwrap().contains_key("schema_checksum"));
    let undeclared_level = review(&self::world(), Kind::Schema, "b").unwrap();
    assert_eq!(undeclared_level.pending().map(serde_json::Map::len), Some(0), "a level that nobody declares is any");
}

/// ADO-015: what is not there, and what lacks a part.
#[test]
fn what_is_absent_or_incomplete_is_not_adopted() {
    let topic = |live| World::new().with_topic(adopted_topic("a.v1", 1, &[]), live);
    assert_eq!(review(&topic(None), Kind::Topic, "a").unwrap_err().code, Code::E413AdoptionLiveNotFound);
    let schema = |live| World::new().with_schema(adopted_schema("b-value", json!("string")), live);
    assert_eq!(review(&schema(None), Kind::Schema, "b").unwrap_err().code, Code::E413AdoptionLiveNotFound);
    let full = || live_topic("a.v1", 1, &[]);
    for live in [
        TopicObservation { partitions: None, ..full() },
        TopicObservation { partitions: Some(0), ..full() },
        TopicObservation { replication_factor: Some(0), ..full() },
    ] {
        assert_eq!(review(&topic(Some(live)), Kind::Topic, "a").unwrap_err().code, Code::E416AdoptionFailed);
    }
    let full = || live_schema("b-value", 1, json!("string"));
    for live in [
        SchemaObservation { version: Some(0), ..full() },
        SchemaObservation { schema_id: None, ..full() },
        SchemaObservation { schema: None, ..full() },
        SchemaObservation { schema_type: None, ..full() },
        SchemaObservation { references: vec![reference("c", 0)], ..full() },
    ] {
        assert_eq!(review(&schema(Some(live)), Kind::Schema, "b").unwrap_err().code, Code::E416AdoptionFailed);
    }
    let target = target(&topic(None), Kind::Topic, "a");
    assert_eq!(Review::of(&target, Claim::New, None).unwrap_err().code, Code::E416AdoptionFailed, "not asked for");
}

/// ADO-015: what was read from another cluster is not what the declaration claims.
#[test]
fn a_connector_of_another_cluster_is_not_reviewed() {
    let mut sink = connector("sink", &[("tasks.max", "1")]);
    sink.ownership.mode = OwnershipMode::Adopted;
    let mut world = World::new().with_connector(sink.clone(), Some(live(&sink)));
    assert!(review(&world, Kind::Connector, "sink").is_ok());
    let clusters = &mut world.connect.as_mut().unwrap().clusters;
    clusters.get_mut("primary").unwrap().rest_url = "https://elsewhere.test".into();
    let refused = review(&world, Kind::Connector, "sink").unwrap_err();
    assert_eq!(refused.code, Code::E416AdoptionFailed);
    assert!(refused.message.contains("it was read from another cluster"), "{}", refused.message);
}

fn selection(world: &World) -> Selection {
    let desired = world.desired();
    let selected = adoptable(&desired, &KINDS).into_iter().map(|(kind, name)| {
        let target = Target::find(&desired, kind, &name).unwrap();
        let review = Review::of(&target, Claim::New, target.seen(&world.observations).as_ref()).unwrap();
        Selected::of(&target, &review)
    });
    let state = StateReference {
        store: StoreIdentity { backend: BackendKind::Local, store_id: OPERATION },
        address: StateAddress { namespace: "local".into(), project: PROJECT.into(), environment: ENVIRONMENT.into() },
        serial: world.state.serial,
        checksum: world.state.checksum().unwrap(),
    };
    let sum = |text: &[u8]| Checksum::of_bytes(text);
    Selection::of(state, sum(b"environment"), sum(b"manifest"), selected.collect()).unwrap()
}

/// ADO-042
#[test]
fn a_selection_reads_back_as_it_was_written_and_is_in_the_order_of_application() {
    let selection = selection(&world());
    let bytes = selection.to_bytes().unwrap();
    assert_eq!(Selection::parse(&bytes).unwrap(), selection);
    let kinds: Vec<Kind> = selection.resources.iter().map(|one| one.kind).collect();
    assert_eq!(kinds, [Kind::Schema, Kind::Topic]);
    assert_eq!(selection.token(), format!("adopt:{ENVIRONMENT}:{}", selection.checksum));
    assert!(bytes.ends_with(b"}\n"));
}

/// ADO-042: a changed file is refused, whoever changed it and even with a checksum that fits.
#[test]
fn a_selection_of_another_shape_is_refused() {
    let selection = selection(&world());
    let text = String::from_utf8(selection.to_bytes().unwrap()).unwrap();
    let refused = |text: &str, what: &str| {
        let error = Selection::parse(text.as_bytes()).expect_err(what);
        assert_eq!(error.code, Code::E408PlanFileInvalid, "{what}");
    };
    refused(&text.replace("a.v1", "a.v2"), "an edited name");
    refused(&text.replacen('{', "{\"note\": 1,", 1), "one more key");
    refused(&text[..text.len() / 2], "a part");
    refused("[]", "no object");
    refused(&text.replace("streamt.adoption-selection", "streamt.reviewed-plan"), "a plan");
    let rehashed = |change: &dyn Fn(&mut Value)| {
        let mut document: Value = serde_json::from_str(&text).unwrap();
        document.as_object_mut().unwrap().shift_remove("checksum");
        change(&mut document);
        let sum = Checksum::of(&document).unwrap();
        document["checksum"] = json!(sum);
        document.to_string()
    };
    assert!(Selection::parse(rehashed(&|_| {}).as_bytes()).is_ok(), "the control");
    for (what, change) in [
        ("another version", &(|d: &mut Value| d["format_version"] = json!(2)) as &dyn Fn(&mut Value)),
        ("an unknown key", &|d| d["more"] = json!(1)),
        ("a missing key", &|d| drop(d.as_object_mut().unwrap().shift_remove("project"))),
        ("no resource", &|d| d["resources"] = json!([])),
        ("out of order", &|d| d["resources"].as_array_mut().unwrap().reverse()),
        ("twice the same", &|d| {
            let one = d["resources"][0].clone();
            d["resources"].as_array_mut().unwrap().insert(0, one);
        }),
        ("one resource under two names", &|d| {
            let mut other = d["resources"][0].clone();
            other["resource_id"] = json!("streamt://payments/prod/schema/c");
            d["resources"].as_array_mut().unwrap().insert(1, other);
        }),
        ("a kind that is not its id's", &|d| d["resources"][0]["kind"] = json!("topic")),
        ("another project", &|d| d["resources"][0]["resource_id"] = json!("streamt://x/prod/schema/b")),
        ("another environment", &|d| d["environment"] = json!("dev")),
        ("a kind that cannot be adopted", &|d| {
            d["resources"][0]["kind"] = json!("flink_job");
            d["resources"][0]["resource_id"] = json!("streamt://payments/prod/flink_job/b");
        }),
        ("an empty name", &|d| d["resources"][0]["physical_name"] = json!("")),
    ] {
        refused(&rehashed(change), what);
    }
}

proptest! {
    /// ADO-011: the adopted records and no other change; the serial steps once.
    #[test]
    fn a_claim_adds_its_records_and_keeps_every_other(
        owned in proptest::collection::btree_set("[a-z]{3,6}", 0..8),
        claimed_names in proptest::collection::btree_set("[A-Z]{3,6}", 1..8),
        serial in 1_u64..1000,
    ) {
        let mut prior = OwnershipState::empty(PROJECT, ENVIRONMENT);
        prior.serial = serial;
        let mut world = World::new();
        for name in &owned {
            world = world.with_topic(topic(name, 1, &[]), None);
        }
        for resource in world.desired().resources {
            prior.resources.insert(id(resource.kind, &resource.logical_name), record(&resource));
        }
        let mut world = World::new();
        for name in &claimed_names {
            world = world.with_topic(adopted_topic(name, 1, &[]), None);
        }
        let targets: Vec<Target> = claimed_names.iter().map(|name| target(&world, Kind::Topic, name)).collect();
        let next = claimed(&prior, &targets);
        prop_assert_eq!(next.serial, serial + 1);
        prop_assert_eq!(next.resources.len(), owned.len() + claimed_names.len());
        for (id, record) in &prior.resources {
            prop_assert_eq!(next.resources.get(id), Some(record));
        }
        for target in &targets {
            prop_assert_eq!(next.resources.get(&target.resource_id), Some(&target.record()));
            prop_assert_eq!(target.record().ownership, OwnershipMode::Adopted);
        }
    }

    /// ADO-043: any other environment, resource, name, checksum or observation has another token.
    #[test]
    fn the_token_binds_the_environment_and_everything_that_was_reviewed(
        which in 0..2_usize, field in 0..4_usize, seed in any::<[u8; 4]>(),
    ) {
        let selection = selection(&world());
        let mut resources = selection.resources.clone();
        let other = Checksum::of_bytes(&seed);
        let one = &mut resources[which];
        match field {
            0 => one.physical_name.push('x'),
            1 => one.artifact_checksum = other,
            2 => one.observation_fingerprint = other,
            _ => one.backend.push('x'),
        }
        let changed = Selection::of(
            selection.state.clone(),
            selection.environment_fingerprint.clone(),
            selection.manifest_checksum.clone(),
            resources,
        )
        .unwrap();
        prop_assert_ne!(changed.token(), selection.token());
    }
}

/// ADO-017: the record is the planner's own, so a fresh plan of an unchanged subject or topic is empty.
#[test]
fn a_plan_after_an_adoption_without_differences_is_empty() {
    let mut world = world();
    let targets = [target(&world, Kind::Topic, "a"), target(&world, Kind::Schema, "b")];
    assert!(world.plan().is_apply_blocked(), "not ours yet");
    world.state = claimed(&world.state, &targets);
    assert_eq!(targets[1].record().backend, "schema-registry");
    let plan = world.plan();
    assert!(!plan.has_changes() && !plan.is_apply_blocked(), "{plan:?}");
    assert!(plan.changes.iter().all(|change| !change.is_drift()));
}
