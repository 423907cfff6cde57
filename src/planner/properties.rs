//! What holds of every plan, whatever is declared, recorded and live.

use std::collections::BTreeSet;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use super::connector::testing as connectors;
use super::fixtures::{ENVIRONMENT, PROJECT, World, id, live_schema, live_topic, record, reference, schema, topic};
use super::model::{Change, Diff, Plan, Verb};
use super::needs::{compatibility_checks, needed};
use super::observation::{CompatibilityVerdict, ConsumerEvidence, EvidenceStatus, GroupLag, SubjectVersion};
use super::{Selection, schema as comparison};
use crate::codes::Code;
use crate::compiler::artifact::Kind;
use crate::compiler::canonical::Checksum;
use crate::ownership::model::{BackendKind, OwnershipState, StateAddress, StoreIdentity};
use crate::ownership::scalar::Timestamp;
use crate::project::model::{Compatibility, OwnershipMode};
use crate::state::plan_file::{Origin, ReviewedPlan, StateReference};
use crate::state::projection::{foresee, project};

const OWNERS: [&str; 5] = ["a", "b", "c", "d", "e"];
const MODES: [OwnershipMode; 3] = [OwnershipMode::External, OwnershipMode::Managed, OwnershipMode::Adopted];

/// What the state remembers of a resource.
#[derive(Clone, Copy, Debug)]
enum Memory {
    Nothing,
    Same,
    OlderDeclaration,
    OtherName,
    OtherMode,
    OtherBackend,
}

fn memory() -> impl Strategy<Value = Memory> {
    prop_oneof![
        2 => Just(Memory::Nothing),
        4 => Just(Memory::Same),
        2 => Just(Memory::OlderDeclaration),
        1 => Just(Memory::OtherName),
        1 => Just(Memory::OtherMode),
        1 => Just(Memory::OtherBackend),
    ]
}

fn mode() -> impl Strategy<Value = OwnershipMode> {
    prop_oneof![1 => Just(MODES[0]), 4 => Just(MODES[1]), 2 => Just(MODES[2])]
}

type Configs = std::collections::BTreeMap<String, String>;

fn configs() -> impl Strategy<Value = Configs> {
    let keys = prop::sample::select(vec!["cleanup.policy", "retention.ms", "x.password"]);
    btree_map(keys.prop_map(str::to_owned), "[12]", 0..3)
}

#[derive(Clone, Debug)]
struct DeclaredTopic {
    mode: OwnershipMode,
    partitions: u32,
    config: Configs,
    live: Option<(u32, Configs, u16)>,
    memory: Memory,
    lag: Option<u64>,
}

#[derive(Clone, Debug)]
struct DeclaredSchema {
    mode: OwnershipMode,
    content: u8,
    level: Option<Compatibility>,
    live: Option<(u32, u8)>,
    memory: Memory,
    verdict: Option<CompatibilityVerdict>,
    /// References this earlier subject, in its newest version or in one that nothing provides.
    uses: Option<(prop::sample::Index, bool)>,
}

fn declared_topic() -> impl Strategy<Value = DeclaredTopic> {
    let live = prop::option::weighted(0.7, (1u32..4, configs(), 1u16..3));
    (mode(), 1u32..4, configs(), live, memory(), prop::option::of(0u64..9)).prop_map(
        |(mode, partitions, config, live, memory, lag)| DeclaredTopic { mode, partitions, config, live, memory, lag },
    )
}

fn declared_schema() -> impl Strategy<Value = DeclaredSchema> {
    let verdict = prop_oneof![
        4 => Just(Some(CompatibilityVerdict::Compatible)),
        1 => Just(Some(CompatibilityVerdict::Incompatible)),
        1 => Just(None),
    ];
    let level = prop::option::of(prop::sample::select(vec![Compatibility::Backward, Compatibility::Full]));
    let live = prop::option::weighted(0.7, (1u32..4, 0u8..3));
    let uses = prop::option::weighted(0.4, (any::<prop::sample::Index>(), prop::bool::weighted(0.9)));
    (mode(), 0u8..3, level, live, memory(), verdict, uses).prop_map(
        |(mode, content, level, live, memory, verdict, uses)| DeclaredSchema {
            mode,
            content,
            level,
            live,
            memory,
            verdict,
            uses,
        },
    )
}

fn text(content: u8) -> Value {
    json!({"type": "enum", "n": content})
}

/// What a state remembers when nobody meddled with it.
fn tamed(memory: Memory, exists: bool, mode: OwnershipMode) -> Memory {
    match memory {
        Memory::Same | Memory::OlderDeclaration => memory,
        Memory::Nothing if !exists && mode == OwnershipMode::Managed => memory,
        Memory::Nothing | Memory::OtherName | Memory::OtherMode | Memory::OtherBackend => Memory::Same,
    }
}

fn build(topics: Vec<DeclaredTopic>, schemas: Vec<DeclaredSchema>, orphan: bool, tame: bool) -> World {
    let mut world = World::new();
    let mut memories = Vec::new();
    for (declared, owner) in topics.into_iter().zip(OWNERS) {
        let name = format!("{owner}.v1");
        let mut artifact = topic(&name, declared.partitions, &[]);
        artifact.config = declared.config;
        artifact.ownership.mode = declared.mode;
        let live = declared.live.map(|(partitions, config, replication_factor)| {
            let mut live = live_topic(&name, partitions, &[]);
            live.config = config;
            live.replication_factor = Some(replication_factor);
            live
        });
        if let Some(lag) = declared.lag {
            let none = ConsumerEvidence {
                status: EvidenceStatus::Verified,
                reason: None,
                failures: Vec::new(),
                groups: Default::default(),
            };
            let group = GroupLag { group_id: format!("group-{owner}"), lag, partitions: Vec::new() };
            world.observations.consumers.get_or_insert(none).groups.insert(name, vec![group]);
        }
        let memory = if tame { tamed(declared.memory, live.is_some(), declared.mode) } else { declared.memory };
        memories.push((Kind::Topic, owner, memory));
        world = world.with_topic(artifact, live);
    }
    for (at, (declared, owner)) in schemas.into_iter().zip(OWNERS).enumerate() {
        let subject = format!("{owner}-value");
        let mut artifact = schema(&subject, text(declared.content));
        artifact.compatibility = declared.level;
        artifact.ownership.mode = declared.mode;
        let live = declared.live.map(|(version, content)| live_schema(&subject, version, text(content)));
        let next = live.as_ref().map_or(1, |live| live.version.unwrap_or(0) + 1);
        if let Some(version) = live.as_ref().and_then(|live| live.version) {
            world = world.live_version(&subject, version);
        }
        world = world.next_version(&subject, next);
        if let Some((index, known)) = declared.uses.filter(|_| at > 0) {
            let used = world.artifacts.schemas[index.index(at)].clone();
            let seen = world.observations.subjects[&used.subject].clone();
            let newest = match comparison::creates_version(&used, &seen) {
                true => world.observations.next_versions[&used.subject],
                false => seen.version.unwrap_or(0),
            };
            artifact.references.push(reference(&used.subject, if known { newest } else { newest + 7 }));
        }
        world.observations.verdicts.extend(declared.verdict.map(|verdict| (subject.clone(), verdict)));
        let memory = if tame { tamed(declared.memory, live.is_some(), declared.mode) } else { declared.memory };
        memories.push((Kind::Schema, owner, memory));
        world = world.with_schema(artifact, live);
    }
    remember(&mut world, &memories);
    if orphan {
        let mut gone = topic("gone.v1", 1, &[]);
        gone.ownership.name = "gone".to_owned();
        let before = World::new().with_topic(gone, None).owned();
        world.state.resources.extend(before.state.resources);
        world.observations.topics.insert("gone.v1".to_owned(), live_topic("gone.v1", 1, &[]));
        world.observations.topics.insert("foreign".to_owned(), live_topic("foreign", 1, &[]));
    }
    world
}

fn remember(world: &mut World, memories: &[(Kind, &str, Memory)]) {
    let resources = world.desired().resources;
    for (kind, owner, memory) in memories {
        let resource = resources.iter().find(|r| r.kind == *kind && r.logical_name == *owner).unwrap();
        let mut record = record(resource);
        // A record is never external, whatever the declaration became.
        record.ownership = match resource.mode {
            OwnershipMode::External | OwnershipMode::Managed => OwnershipMode::Managed,
            OwnershipMode::Adopted => OwnershipMode::Adopted,
        };
        match memory {
            Memory::Nothing => continue,
            Memory::Same => {}
            Memory::OlderDeclaration => record.artifact_checksum = Checksum::of_bytes(b"older"),
            Memory::OtherName => record.physical_name.push_str(".old"),
            Memory::OtherBackend => record.backend.push_str("-legacy"),
            Memory::OtherMode => {
                record.ownership = match record.ownership {
                    OwnershipMode::External | OwnershipMode::Adopted => OwnershipMode::Managed,
                    OwnershipMode::Managed => OwnershipMode::Adopted,
                };
            }
        }
        world.state.resources.insert(id(*kind, owner), record);
    }
}

fn worlds() -> impl Strategy<Value = World> {
    let selection = prop::option::weighted(0.3, prop::sample::subsequence(OWNERS.to_vec(), 0..=5));
    let nature = (any::<bool>(), prop::bool::weighted(0.7));
    (vec(declared_topic(), 0..5), vec(declared_schema(), 0..5), nature, selection).prop_map(
        |(topics, schemas, (orphan, tame), selected)| {
            let mut world = build(topics, schemas, orphan, tame);
            world.selection = selected.map(|owners| Selection {
                models: owners.into_iter().map(str::to_owned).collect(),
                sources: BTreeSet::new(),
            });
            world
        },
    )
}

/// A plan, unless a schema reference is provided by nothing.
fn planned(world: &World) -> Option<Plan> {
    match world.try_plan() {
        Ok(plan) => Some(plan),
        Err(errors) => {
            assert!(errors.iter().all(|error| error.code == Code::E213SchemaRegistryResolutionFailed), "{errors:?}");
            None
        }
    }
}

fn reviewed(plan: &Plan, state: &OwnershipState) -> ReviewedPlan {
    let checksum = Checksum::of_bytes(b"any");
    let origin = Origin {
        streamt_version: "0.1.0".to_owned(),
        created_at: Timestamp::parse("2026-09-06T09:30:00Z").unwrap(),
        environment_fingerprint: checksum.clone(),
        manifest_checksum: checksum,
        state: Some(StateReference {
            store: StoreIdentity { backend: BackendKind::Local, store_id: Uuid::nil() },
            address: StateAddress {
                namespace: "local".to_owned(),
                project: PROJECT.to_owned(),
                environment: ENVIRONMENT.to_owned(),
            },
            serial: state.serial,
            checksum: state.checksum().unwrap(),
        }),
    };
    ReviewedPlan::of(plan, origin).unwrap()
}

/// The world after every action of the plan succeeded.
fn applied(world: &World, plan: &Plan) -> World {
    let mut after = world.clone();
    after.state = foresee(&world.state, plan, &plan.actions).unwrap().unwrap_or_else(|| world.state.clone());
    for (_, change) in plan.work() {
        match &change.diff {
            Diff::None => unreachable!("nothing is done without a comparison"),
            Diff::Connector(_) => {
                let desired = world.artifacts.connectors.iter().find(|sink| sink.name == change.name).unwrap();
                after.observations.connectors.insert(change.name.clone(), connectors::live(desired));
            }
            Diff::Job(_) => unreachable!("no job is drawn"),
            Diff::ConnectorRemoval(_) => {
                after.observations.connectors.insert(change.name.clone(), connectors::absent(&change.name));
            }
            Diff::Topic(_) => {
                let desired = world.artifacts.topics.iter().find(|topic| topic.name == change.name).unwrap();
                let mut live = live_topic(&desired.name, desired.partitions, &[]);
                live.config.clone_from(&desired.config);
                after.observations.topics.insert(live.name.clone(), live);
            }
            Diff::Schema(diff) => {
                let desired = world.artifacts.schemas.iter().find(|s| s.subject == change.name).unwrap();
                let live = after.observations.subjects.get_mut(&desired.subject).unwrap();
                let version = match (diff.exists, &diff.content) {
                    (false, _) => 1,
                    (true, Some(content)) => content.to_version,
                    (true, None) => live.version.unwrap(),
                };
                *live = live_schema(&desired.subject, version, desired.schema.clone());
                live.references.clone_from(&desired.references);
                live.compatibility = desired.compatibility.or(Some(Compatibility::Backward));
                let version = SubjectVersion { subject: desired.subject.clone(), version };
                after.observations.live_versions.insert(version);
            }
        }
    }
    after
}

fn permitted(world: &World, change: &Change) -> bool {
    let exists = match &change.diff {
        Diff::None | Diff::ConnectorRemoval(_) => return false,
        Diff::Topic(diff) => diff.exists,
        Diff::Schema(diff) => diff.exists,
        Diff::Connector(diff) => diff.exists,
        Diff::Job(diff) => diff.exists(),
    };
    let record = world.state.resources.get(&change.resource_id);
    match (change.mode, record) {
        (OwnershipMode::External, _) => false,
        (OwnershipMode::Managed, None) => !exists,
        (OwnershipMode::Adopted, None) => false,
        (OwnershipMode::Managed | OwnershipMode::Adopted, Some(record)) => {
            record.physical_name == change.name
                && record.ownership == change.mode
                && !record.backend.ends_with("-legacy")
        }
    }
}

proptest! {
    /// SAF-001, SAF-002, SAF-004, SAF-036, SAF-037, SAF-038, LIM-002
    #[test]
    fn nothing_is_ever_deleted(world in worlds()) {
        let Some(plan) = planned(&world) else { return Ok(()) };
        prop_assert_eq!(plan.deletes(), 0);
        for change in &plan.changes {
            prop_assert!(matches!(change.verb, None | Some(Verb::Register | Verb::Create | Verb::Update)));
            prop_assert!(change.name != "gone.v1" && change.name != "foreign");
        }
        for candidate in &plan.removal_candidates {
            prop_assert!(world.state.resources.contains_key(&candidate.resource_id));
        }
    }

    /// SAF-003, SAF-010, SAF-011, SAF-014, SAF-019, SAF-067
    #[test]
    fn a_verb_stands_only_where_ownership_permits_it(world in worlds()) {
        let Some(plan) = planned(&world) else { return Ok(()) };
        for change in &plan.changes {
            prop_assert_eq!(change.requirement.is_none() && change.observed_verb.is_some(), change.verb.is_some());
            if change.verb.is_some() {
                prop_assert!(permitted(&world, change), "{:?}", change);
            }
        }
        let asked = needed(&world.desired(), world.selection.as_ref());
        for change in plan.active() {
            prop_assert!(asked.topics.contains(&change.name) || asked.subjects.contains(&change.name));
        }
    }

    /// SAF-008, SAF-046, SAF-047
    #[test]
    fn actions_are_the_active_changes_unless_the_plan_is_blocked(world in worlds()) {
        let Some(plan) = planned(&world) else { return Ok(()) };
        if plan.is_apply_blocked() {
            prop_assert!(plan.actions.is_empty());
        } else {
            prop_assert_eq!(plan.actions.len(), plan.active().count());
            for (at, (action, change)) in plan.work().enumerate() {
                prop_assert_eq!(action.index as usize, at);
                prop_assert_eq!(&action.resource_id, &change.resource_id);
                prop_assert_eq!(Some(action.action), change.verb);
            }
        }
        for blocker in &plan.blockers {
            let change = plan.changes.iter().find(|c| c.kind == blocker.kind && c.name == blocker.resource);
            prop_assert_eq!(change.and_then(|change| change.verb), Some(Verb::Update));
        }
    }

    /// SAF-005, SAF-039
    #[test]
    fn a_selected_plan_stays_inside_its_selection(world in worlds()) {
        let (Some(selection), Some(plan)) = (&world.selection, planned(&world)) else { return Ok(()) };
        for change in &plan.changes {
            let external = change.mode == OwnershipMode::External;
            prop_assert!(external || selection.models.contains(change.resource_id.logical_name()));
        }
        prop_assert!(plan.removal_candidates.is_empty());
    }

    /// SAF-045
    #[test]
    fn blockers_and_risks_are_ordered(world in worlds()) {
        let Some(plan) = planned(&world) else { return Ok(()) };
        let blockers: Vec<_> = plan.blockers.iter().map(|b| (b.kind, &b.resource, b.code.as_str())).collect();
        prop_assert!(blockers.is_sorted());
        let risks: Vec<_> = plan.risks.iter().map(|r| (r.kind, &r.resource)).collect();
        prop_assert!(risks.is_sorted());
        prop_assert_eq!(risks.len(), plan.active().count());
        prop_assert!(plan.changes.is_sorted_by_key(|change| change.kind));
        let position = |name: &str| plan.changes.iter().position(|change| change.name == name);
        for schema in &world.artifacts.schemas {
            for used in &schema.references {
                if let (Some(user), Some(base)) = (position(&schema.subject), position(&used.subject)) {
                    prop_assert!(base < user);
                }
            }
        }
    }

    /// SAF-013, SAF-020
    #[test]
    fn the_next_state_holds_only_what_is_owned_and_what_was(world in worlds(), kept in 0usize..4) {
        let Some(plan) = planned(&world) else { return Ok(()) };
        let completed: BTreeSet<_> = plan.actions.iter().take(kept).map(|a| a.resource_id.clone()).collect();
        let Some(next) = project(&world.state, &plan, &completed, &[]).unwrap() else { return Ok(()) };
        prop_assert_eq!(next.serial, world.state.serial + 1);
        for (id, record) in &next.resources {
            prop_assert!(record.ownership != OwnershipMode::External);
            prop_assert!(world.state.resources.contains_key(id) || completed.contains(id));
            if !plan.changes.iter().any(|change| change.resource_id == *id && change.record.is_some()) {
                prop_assert_eq!(Some(record), world.state.resources.get(id));
            }
        }
        for id in world.state.resources.keys() {
            prop_assert!(next.resources.contains_key(id));
        }
    }

    /// SAF-034
    #[test]
    fn what_was_applied_needs_nothing_more(world in worlds()) {
        let Some(plan) = planned(&world) else { return Ok(()) };
        if plan.is_apply_blocked() {
            return Ok(());
        }
        let after = applied(&world, &plan);
        prop_assert!(compatibility_checks(&after.desired(), after.selection.as_ref(), &after.observations).is_empty());
        let again = planned(&after).expect("references stay provided");
        let left: Vec<_> = again.active().map(Change::label).collect();
        prop_assert!(left.is_empty(), "{:?}", left);
        prop_assert!(!again.is_apply_blocked());
        prop_assert_eq!(project(&after.state, &again, &BTreeSet::new(), &[]).unwrap(), None);
    }

    #[test]
    fn equal_inputs_in_any_order_give_equal_bytes(world in worlds(), seed in any::<u64>()) {
        let Some(plan) = planned(&world) else { return Ok(()) };
        let mut shuffled = world.clone();
        let mut seed = seed;
        let mut next = |bound: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % bound
        };
        for at in (1..shuffled.artifacts.topics.len()).rev() {
            shuffled.artifacts.topics.swap(at, next(at + 1));
        }
        for at in (1..shuffled.artifacts.schemas.len()).rev() {
            shuffled.artifacts.schemas.swap(at, next(at + 1));
        }
        let other = shuffled.plan();
        prop_assert_eq!(&other, &plan);
        let bytes = reviewed(&plan, &world.state).to_bytes().unwrap();
        prop_assert_eq!(bytes, reviewed(&other, &world.state).to_bytes().unwrap());
    }

    /// SAF-006, SAF-049, SEC-003
    #[test]
    fn a_printed_plan_parses_to_itself_and_is_fresh(world in worlds()) {
        let Some(plan) = planned(&world) else { return Ok(()) };
        let saved = reviewed(&plan, &world.state);
        let parsed = ReviewedPlan::parse(&saved.to_bytes().unwrap()).unwrap();
        prop_assert_eq!(&parsed, &saved);
        prop_assert_eq!(parsed.check_plan(&plan), Ok(()));
    }

    /// SAF-006
    #[test]
    fn one_changed_byte_of_a_file_is_never_accepted(world in worlds(), at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let Some(plan) = planned(&world) else { return Ok(()) };
        let saved = reviewed(&plan, &world.state);
        let mut bytes = saved.to_bytes().unwrap();
        let at = at.index(bytes.len());
        bytes[at] = to;
        if let Ok(parsed) = ReviewedPlan::parse(&bytes) {
            prop_assert_eq!(parsed, saved, "only blanks may differ");
        }
    }
}
