//! Golden digests, the table of every situation of one target, and random mixes of many.

use proptest::prelude::*;

use super::*;
use crate::planner::fixtures::{ENVIRONMENT, PROJECT, World, id, job, live_schema, live_topic, schema, topic};
use crate::planner::flink::JobState;
use crate::project::model::Compatibility;
use crate::state::control::OperationKind;
use crate::state::testing::{OPERATION, at};

pub(super) fn intent(actions: &[(Verb, Kind, &str)]) -> Intent {
    let actions = (0..).zip(actions).map(|(index, (verb, kind, name))| Action {
        index,
        resource_id: id(*kind, name),
        action: *verb,
        gateway_evidence: None,
        connector_evidence: None,
        kafka_streams_evidence: None,
    });
    intent_of(actions.collect())
}

pub(super) fn intent_of(actions: Vec<Action>) -> Intent {
    Intent {
        operation_id: OPERATION,
        kind: OperationKind::Apply,
        started_at: at(0),
        actor: "local-cli".into(),
        prior_state_serial: 0,
        prior_state_checksum: OwnershipState::empty(PROJECT, ENVIRONMENT).checksum().unwrap(),
        reviewed_plan_checksum: None,
        actions,
    }
}

fn assess(world: &World, verb: Verb, kind: Kind, name: &str) -> Assessment {
    let all = classify(&intent(&[(verb, kind, name)]), &world.state, &world.desired(), &world.observations, &[]);
    let [one] = all.try_into().expect("one target");
    one
}

fn verdict(world: &World, verb: Verb, kind: Kind, name: &str) -> Result<AcceptedAs, Reason> {
    let one = assess(world, verb, kind, name);
    assert_ne!(one.accepted_as.is_some(), one.reason.is_some());
    one.accepted_as.ok_or_else(|| one.reason.expect("a reason"))
}

const CONFIG: &[(&str, &str)] = &[("cleanup.policy", "delete"), ("retention.ms", "604800000")];

/// REC-025, REC-044, REC-045
#[test]
fn golden_fingerprints_of_topics_and_subjects() {
    let mut live = live_topic("orders.v1", 6, CONFIG);
    live.replication_factor = Some(3);
    let sum = |compared: Option<Compared>| compared.unwrap().fingerprint.unwrap().to_string();
    let wanted = topic("orders.v1", 6, CONFIG);
    assert_eq!(
        sum(compare_topic(&wanted, &live)),
        "sha256:5d13e31a63eadebb23d377c338ada5d0b9cf291530b01be523b2ba5038de87c9"
    );
    assert_eq!(
        sum(compare_topic(&wanted, &TopicObservation::absent("orders.v1"))),
        "sha256:cfc7a1927228693b4c9dffa13a68707fd8e50328760b61d84bf8b8fbe98527dd"
    );
    let text = json!({"fields":[{"name":"id","type":"string"},{"name":"amount","type":"double"}],"name":"Order","type":"record"});
    let mut live = live_schema("orders.v1-value", 3, text.clone());
    live.schema_id = Some(42);
    let wanted = schema("orders.v1-value", text);
    assert_eq!(
        sum(compare_schema(&wanted, &live)),
        "sha256:8514bae971c8951781c8a3f4e971b93b772cc8d13c7598efc767a86ce42c8a87"
    );
    assert_eq!(
        sum(compare_schema(&wanted, &SchemaObservation::absent("orders.v1-value"))),
        "sha256:110c6ad5e6d915ee80b8f91021b92b6e20ec080ecd3b63ad2813603a201907a0"
    );
}

/// REC-014, REC-044, REC-045, REC-056
#[test]
fn a_created_topic_is_absent_or_exactly_as_declared() {
    let world = |live| World::new().with_topic(topic("a.v1", 2, &[("x", "1")]), live);
    let of = |live| verdict(&world(live), Verb::Create, Kind::Topic, "a");
    assert_eq!(of(None), Ok(AcceptedAs::Prior));
    assert_eq!(of(Some(live_topic("a.v1", 2, &[("x", "1")]))), Ok(AcceptedAs::Candidate));
    assert_eq!(of(Some(live_topic("a.v1", 3, &[("x", "1")]))), Err(Reason::ThirdState));
    assert_eq!(of(Some(live_topic("a.v1", 2, &[]))), Err(Reason::ThirdState));
    assert_eq!(of(Some(live_topic("a.v1", 2, &[("x", "1"), ("y", "2")]))), Err(Reason::ThirdState));
    let mut other_factor = live_topic("a.v1", 2, &[("x", "1")]);
    other_factor.replication_factor = Some(3);
    assert_eq!(of(Some(other_factor)), Err(Reason::ThirdState));
    let changed = assess(&world(Some(live_topic("a.v1", 3, &[("x", "9")]))), Verb::Create, Kind::Topic, "a");
    let expected = json!({"config.x": {"from": "9", "to": "1"}, "partitions": {"from": 3, "to": 2}});
    assert_eq!(Value::Object(changed.differences), expected);
}

/// REC-044, REC-057
#[test]
fn an_updated_topic_is_as_recorded_or_as_declared() {
    let owned = |live| {
        let mut world = World::new().with_topic(topic("a.v1", 1, &[]), live).owned();
        world.artifacts.topics[0].partitions = 4;
        world
    };
    let of = |live| verdict(&owned(live), Verb::Update, Kind::Topic, "a");
    assert_eq!(of(Some(live_topic("a.v1", 1, &[]))), Ok(AcceptedAs::Prior));
    assert_eq!(of(Some(live_topic("a.v1", 4, &[]))), Ok(AcceptedAs::Candidate));
    assert_eq!(of(Some(live_topic("a.v1", 2, &[]))), Err(Reason::ThirdState));
    assert_eq!(of(None), Err(Reason::ThirdState), "an update accepts no absence");
    let unrecorded = World::new().with_topic(topic("a.v1", 4, &[]), Some(live_topic("a.v1", 4, &[])));
    assert_eq!(verdict(&unrecorded, Verb::Update, Kind::Topic, "a"), Err(Reason::WrongBinding));
    // A drifted topic that was put back: both forms, and one record.
    let same = World::new().with_topic(topic("a.v1", 1, &[]), Some(live_topic("a.v1", 1, &[]))).owned();
    assert_eq!(verdict(&same, Verb::Update, Kind::Topic, "a"), Ok(AcceptedAs::Prior));
}

/// REC-041, REC-042, REC-043
#[test]
fn a_subject_is_proved_by_its_content_and_its_level() {
    let (old, new) = (json!("string"), json!("long"));
    let fresh = |live| World::new().with_schema(schema("a-value", new.clone()), live);
    let of = |live| verdict(&fresh(live), Verb::Register, Kind::Schema, "a");
    assert_eq!(of(None), Ok(AcceptedAs::Prior));
    assert_eq!(of(Some(live_schema("a-value", 1, new.clone()))), Ok(AcceptedAs::Candidate));
    assert_eq!(of(Some(live_schema("a-value", 1, old.clone()))), Err(Reason::ThirdState));
    let mut partial = live_schema("a-value", 1, new.clone());
    partial.schema_id = None;
    assert_eq!(of(Some(partial)), Err(Reason::Unreadable));

    let owned = |live| {
        let mut world = World::new().with_schema(schema("a-value", old.clone()), Some(live)).owned();
        world.artifacts.schemas[0].schema = new.clone();
        world.artifacts.schemas[0].compatibility = Some(Compatibility::Full);
        world
    };
    let of = |live: SchemaObservation| verdict(&owned(live), Verb::Update, Kind::Schema, "a");
    let level = |mut live: SchemaObservation, level| {
        (live.compatibility, live.own_compatibility) = (Some(level), Some(level));
        live
    };
    assert_eq!(of(live_schema("a-value", 1, old.clone())), Ok(AcceptedAs::Prior), "no level was declared before");
    assert_eq!(of(level(live_schema("a-value", 2, new.clone()), Compatibility::Full)), Ok(AcceptedAs::Candidate));
    assert_eq!(of(live_schema("a-value", 2, new.clone())), Err(Reason::ThirdState), "content without its level");
    assert_eq!(of(level(live_schema("a-value", 1, old.clone()), Compatibility::Full)), Err(Reason::ThirdState));
}

/// REC-014, REC-043
#[test]
fn a_subject_that_is_both_as_recorded_and_as_declared_is_ambiguous() {
    let text = json!("string");
    let mut live = live_schema("a-value", 1, text.clone());
    (live.compatibility, live.own_compatibility) = (Some(Compatibility::Full), Some(Compatibility::Full));
    let mut world = World::new().with_schema(schema("a-value", text), Some(live));
    world.artifacts.schemas[0].compatibility = Some(Compatibility::Full);
    let mut world = world.owned();
    // The declaration gives its level up: what is live fits both.
    world.artifacts.schemas[0].compatibility = None;
    assert_eq!(verdict(&world, Verb::Update, Kind::Schema, "a"), Err(Reason::Ambiguous));
    let one = assess(&world, Verb::Update, Kind::Schema, "a");
    for resolution in [Resolution::Observed, Resolution::RolledBack] {
        assert!(prove(resolution, &world.state, vec![one.clone()]).is_err(), "{resolution}");
    }
}

/// REC-043: a level that was added to a declaration is proved by the subject's own level alone.
#[test]
fn a_level_set_for_the_first_time_is_not_ambiguous() {
    let text = json!("string");
    let mut live = live_schema("a-value", 1, text.clone());
    let world = |live| {
        let mut world = World::new().with_schema(schema("a-value", text.clone()), Some(live)).owned();
        world.artifacts.schemas[0].compatibility = Some(Compatibility::Full);
        world
    };
    assert_eq!(verdict(&world(live.clone()), Verb::Update, Kind::Schema, "a"), Ok(AcceptedAs::Prior));
    (live.compatibility, live.own_compatibility) = (Some(Compatibility::Full), Some(Compatibility::Full));
    assert_eq!(verdict(&world(live), Verb::Update, Kind::Schema, "a"), Ok(AcceptedAs::Candidate));
}

/// REC-054, REC-055, LIM-026: only absence says something about a job.
#[test]
fn a_job_that_was_not_submitted_is_proved_by_its_absence_and_a_present_one_by_nothing() {
    let absent = World::new().with_job(job("j"), None);
    let one = assess(&absent, Verb::Submit, Kind::FlinkJob, "j");
    assert_eq!((one.presence, one.accepted_as), (Seen::Absent, Some(AcceptedAs::Prior)));
    assert_eq!(
        one.fingerprint.as_ref().map(ToString::to_string),
        Checksum::of(&json!({"kind": "flink_job", "presence": "absent"})).ok().map(|sum| sum.to_string())
    );
    assert_eq!(verdict(&absent.clone().owned(), Verb::Submit, Kind::FlinkJob, "j"), Ok(AcceptedAs::Prior));
    for state in JobState::ALL {
        for world in
            [World::new().with_job(job("j"), Some(state)), World::new().with_job(job("j"), Some(state)).owned()]
        {
            let one = assess(&world, Verb::Submit, Kind::FlinkJob, "j");
            assert_eq!((one.presence, one.reason), (Seen::Present, Some(Reason::ContentNotProvable)), "{state}");
            let update = verdict(&world, Verb::Update, Kind::FlinkJob, "j");
            assert!(update.is_err(), "{state}: {update:?}");
        }
    }
    let mut unread = absent.clone();
    unread.observations.jobs.clear();
    assert_eq!(verdict(&unread, Verb::Submit, Kind::FlinkJob, "j"), Err(Reason::Unreadable));
    let asked = questions(&intent(&[(Verb::Submit, Kind::FlinkJob, "j")]), &absent.state, &absent.desired());
    assert_eq!(asked.map(|asked| asked.jobs), Some(vec!["j".to_owned()]));
    // On which cluster a job that is no longer declared would run, nothing says.
    assert_eq!(verdict(&World::new(), Verb::Submit, Kind::FlinkJob, "j"), Err(Reason::ContentNotProvable));
}

/// REC-040, REC-054, REC-059, REC-061, REC-067
#[test]
fn what_cannot_be_proved_is_never_accepted() {
    let world =
        World::new().with_topic(topic("a.v1", 1, &[]), None).with_schema(schema("s-value", json!("string")), None);
    assert_eq!(verdict(&world, Verb::Create, Kind::Topic, "gone"), Err(Reason::ContentNotProvable));
    assert_eq!(verdict(&world, Verb::Delete, Kind::Schema, "s"), Err(Reason::ContentNotProvable));
    for kind in [Kind::KafkaStreamsJob, Kind::GatewayRule] {
        assert!(verdict(&world, Verb::Create, kind, "a").is_err(), "{kind}");
        assert_eq!(questions(&intent(&[(Verb::Create, kind, "a")]), &world.state, &world.desired()), None);
    }
    let mut unread = world.clone();
    unread.observations.topics.clear();
    assert_eq!(verdict(&unread, Verb::Create, Kind::Topic, "a"), Err(Reason::Unreadable));
    let mut external = world.clone();
    external.artifacts.topics[0].ownership.mode = OwnershipMode::External;
    assert_eq!(verdict(&external, Verb::Create, Kind::Topic, "a"), Err(Reason::WrongBinding));
    let mut renamed = World::new().with_topic(topic("a.v1", 1, &[]), None).owned();
    renamed.state.resources.values_mut().for_each(|record| record.physical_name = "a.v0".into());
    assert_eq!(verdict(&renamed, Verb::Create, Kind::Topic, "a"), Err(Reason::WrongBinding));
}

/// REC-067: an adoption claims and does nothing else, and nothing else claims.
#[test]
fn an_intent_that_mixes_claims_with_changes_asks_nobody() {
    let world = World::new().with_topic(topic("a.v1", 1, &[]), None).with_topic(topic("b.v1", 1, &[]), None);
    let asked = |kind: OperationKind, verbs: [Verb; 2]| {
        let intent = intent(&[(verbs[0], Kind::Topic, "a"), (verbs[1], Kind::Topic, "b")]);
        questions(&Intent { kind, ..intent }, &world.state, &world.desired()).map(|asked| asked.topics.len())
    };
    let (claim, create) = (Verb::Adopt, Verb::Create);
    assert_eq!(asked(OperationKind::Adopt, [claim, claim]), Some(2));
    assert_eq!(asked(OperationKind::Apply, [create, create]), Some(2));
    for kind in [OperationKind::Adopt, OperationKind::Apply] {
        assert_eq!((asked(kind, [claim, create]), asked(kind, [create, claim])), (None, None), "{kind:?}");
    }
    assert_eq!(asked(OperationKind::Adopt, [create, create]), None);
    assert_eq!(asked(OperationKind::Apply, [claim, claim]), None);
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Stands {
    Before,
    After,
    Between,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    /// REC-009, REC-010, REC-011, REC-030, REC-036: any mix of topics, created and updated, recorded next to strangers.
    #[test]
    fn a_resolution_is_proved_exactly_when_every_target_carries_it(
        forms in proptest::collection::vec((any::<bool>(), prop_oneof![3 => Just(Stands::Before), 3 => Just(Stands::After), 1 => Just(Stands::Between)]), 1..12),
    ) {
        let mut world = World::new().with_topic(topic("bystander.v1", 1, &[]), None).owned();
        let mut actions = Vec::new();
        let names: Vec<String> = (0..forms.len()).map(|index| format!("t{index}")).collect();
        for (name, (updates, stands)) in names.iter().zip(&forms) {
            let physical = format!("{name}.v1");
            let live = match (updates, stands) {
                (false, Stands::Before) => None,
                (true, Stands::Before) => Some(live_topic(&physical, 1, &[])),
                (_, Stands::After) => Some(live_topic(&physical, 2, &[])),
                (_, Stands::Between) => Some(live_topic(&physical, 2, &[("x", "1")])),
            };
            if *updates {
                let prior = World::new().with_topic(topic(&physical, 1, &[]), None).owned().state;
                world.state.resources.extend(prior.resources);
            }
            world = world.with_topic(topic(&physical, 2, &[]), live);
            actions.push((if *updates { Verb::Update } else { Verb::Create }, Kind::Topic, name.as_str()));
        }
        world.state.serial = 7;
        let prior = world.state.clone();
        let assessments = || classify(&intent(&actions), &prior, &world.desired(), &world.observations, &[]);
        let all = |wanted: &dyn Fn(Stands) -> bool| forms.iter().all(|(_, stands)| wanted(*stands));
        let observed = prove(Resolution::Observed, &prior, assessments());
        let rolled_back = prove(Resolution::RolledBack, &prior, assessments());
        prop_assert_eq!(observed.is_ok(), all(&|stands| stands != Stands::Between));
        prop_assert_eq!(rolled_back.is_ok(), all(&|stands| stands == Stands::Before));
        if let Ok(Proof { candidate, .. }) = rolled_back {
            prop_assert_eq!(candidate, None);
        }
        if let Ok(Proof { targets, candidate }) = observed {
            let next = candidate.unwrap();
            prop_assert_eq!(next.serial, 7 + u64::from(next.resources != prior.resources));
            for (target, (_, stands)) in targets.iter().zip(&forms) {
                prop_assert_eq!(target.accepted_as == AcceptedAs::Candidate, *stands == Stands::After);
                let owned = next.resources.get(&target.action.resource_id);
                let before = prior.resources.get(&target.action.resource_id);
                prop_assert_eq!(owned == before, *stands == Stands::Before);
            }
            let bystander = id(Kind::Topic, "bystander");
            prop_assert_eq!(&next.resources[&bystander], &prior.resources[&bystander]);
        }
    }
}
