//! Who is downstream of a changed topic: by the declared graph, and by the consumer groups that were seen.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::compiler::NodeType;
use crate::compiler::artifact::{Kind, OwnerType, Ownership};

use super::Desired;
use super::model::{Change, Verb};
use super::observation::{ConsumerEvidence, EvidenceFailure, EvidenceStatus};

/// How a topic that others read is about to change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeType {
    TopicCreate,
    TopicUpdate,
}

/// A declared application downstream of the change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImpactedExposure {
    pub name: String,
    pub owners: Vec<String>,
    pub consumer_group: Option<String>,
}

/// A consumer group that reads the topic now.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImpactedConsumer {
    pub group_id: String,
    /// Records. Shown and kept in the file, never a reason for a stale plan.
    pub lag: u64,
    /// Whether a downstream exposure names exactly this group.
    pub declared: bool,
    pub declared_exposures: Vec<String>,
}

/// How far one part of an entry is known.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImpactEvidence {
    pub status: EvidenceStatus,
    pub source: Option<String>,
    pub reason: Option<String>,
}

/// How far the consumer groups of an entry are known, and what kept the rest from being known.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsumerImpactEvidence {
    pub status: EvidenceStatus,
    pub source: String,
    pub reason: Option<String>,
    pub failures: Vec<EvidenceFailure>,
}

/// Who notices one change of a topic: declared readers from the graph, live ones from the cluster.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImpactEntry {
    /// Topic.
    pub resource: String,
    pub logical_type: Option<String>,
    pub logical_name: Option<String>,
    /// `model/<name>`.
    pub logical_resource: Option<String>,
    pub change_type: ChangeType,
    pub downstream_models: Vec<String>,
    pub exposures: Vec<ImpactedExposure>,
    pub owners: Vec<String>,
    pub consumers: Vec<ImpactedConsumer>,
    pub identity_evidence: ImpactEvidence,
    pub graph_evidence: ImpactEvidence,
    /// "No consumers" may be said only when this is verified.
    pub consumer_evidence: ConsumerImpactEvidence,
}

const IDENTITY: &str = "manifest_artifact_ownership";
const GRAPH: &str = "declared_project_dag";
const CONSUMERS: &str = "kafka_consumer_groups";
const LIVE_STATE: &str = "live_resource_state";

impl ImpactEvidence {
    fn verified(source: &str) -> Self {
        Self { status: EvidenceStatus::Verified, source: Some(source.to_owned()), reason: None }
    }

    fn missing(status: EvidenceStatus, reason: &str) -> Self {
        Self { status, source: None, reason: Some(reason.to_owned()) }
    }
}

/// One entry for each topic that the plan creates or updates, sorted by topic. `consumers` is what was read of the updated
/// topics; `offline` and a topic that does not exist yet answer for themselves.
pub(super) fn impact(
    desired: &Desired<'_>,
    changes: &[Change],
    consumers: Option<&ConsumerEvidence>,
    offline: bool,
) -> Vec<ImpactEntry> {
    let mut roots: Vec<(&Change, ChangeType)> = Vec::new();
    for change in changes.iter().filter(|change| change.kind == Kind::Topic) {
        match change.verb {
            Some(Verb::Create) => roots.push((change, ChangeType::TopicCreate)),
            Some(Verb::Update) => roots.push((change, ChangeType::TopicUpdate)),
            Some(Verb::Register | Verb::Submit | Verb::Delete | Verb::Cancel | Verb::Adopt) | None => {}
        }
    }
    if roots.is_empty() {
        return Vec::new();
    }
    let mut owners: BTreeMap<&str, Vec<&Ownership>> = BTreeMap::new();
    for topic in &desired.artifacts.topics {
        owners.entry(&topic.name).or_default().push(&topic.ownership);
    }
    let logical: BTreeMap<&str, &str> = (desired.resources.iter())
        .filter(|resource| resource.kind == Kind::Topic)
        .map(|resource| (resource.physical_name.as_str(), resource.logical_name.as_str()))
        .collect();
    let graph = Graph::of(desired);
    let mut entries: Vec<ImpactEntry> = roots
        .into_iter()
        .map(|(change, change_type)| {
            let declared = owners.get(change.name.as_str()).map_or(&[][..], Vec::as_slice);
            let mut entry = ImpactEntry::of_topic(&change.name, change_type, declared);
            // Topics of tests bear their own name, and their owner does not write them.
            let own = declared.iter().any(|owner| logical.get(change.name.as_str()) == Some(&owner.name.as_str()));
            graph.extend(&mut entry, desired, own || declared.is_empty());
            entry.add_consumers(consumers, offline);
            entry
        })
        .collect();
    entries.sort_by(|a, b| (&a.resource, a.change_type).cmp(&(&b.resource, b.change_type)));
    entries
}

impl ImpactEntry {
    /// Whether anything is known to be downstream.
    pub fn has_downstream(&self) -> bool {
        !self.downstream_models.is_empty() || !self.exposures.is_empty() || !self.consumers.is_empty()
    }

    fn of_topic(topic: &str, change_type: ChangeType, declared: &[&Ownership]) -> Self {
        let identities: BTreeSet<(OwnerType, &str)> =
            declared.iter().map(|owner| (owner.owner_type, owner.name.as_str())).collect();
        let identity = (identities.len() == 1).then(|| identities.first().copied()).flatten();
        let identity_evidence = match (identity, identities.is_empty()) {
            (Some(_), _) => ImpactEvidence::verified(IDENTITY),
            (None, true) => ImpactEvidence::missing(EvidenceStatus::Unavailable, "manifest_ownership_missing"),
            (None, false) => ImpactEvidence::missing(EvidenceStatus::Failed, "ambiguous_manifest_ownership"),
        };
        let logical_type = identity.map(|(owner_type, _)| match owner_type {
            OwnerType::Model => "model",
            OwnerType::Source => "source",
        });
        Self {
            resource: topic.to_owned(),
            logical_type: logical_type.map(str::to_owned),
            logical_name: identity.map(|(_, name)| name.to_owned()),
            logical_resource: logical_type.zip(identity).map(|(kind, (_, name))| format!("{kind}/{name}")),
            change_type,
            downstream_models: Vec::new(),
            exposures: Vec::new(),
            owners: Vec::new(),
            consumers: Vec::new(),
            identity_evidence,
            graph_evidence: ImpactEvidence::missing(EvidenceStatus::Unavailable, "logical_identity_unavailable"),
            consumer_evidence: ConsumerImpactEvidence {
                status: EvidenceStatus::Unavailable,
                source: CONSUMERS.to_owned(),
                reason: None,
                failures: Vec::new(),
            },
        }
    }

    fn add_consumers(&mut self, evidence: Option<&ConsumerEvidence>, offline: bool) {
        let known = &mut self.consumer_evidence;
        match (evidence, self.change_type) {
            (_, _) if offline => known.reason = Some("offline".to_owned()),
            // Nobody can have committed an offset on a topic that was seen not to exist.
            (_, ChangeType::TopicCreate) => {
                known.status = EvidenceStatus::Verified;
                known.source = LIVE_STATE.to_owned();
            }
            (None, ChangeType::TopicUpdate) => known.reason = Some("consumer_group_listing_failed".to_owned()),
            (Some(evidence), ChangeType::TopicUpdate) => {
                known.status = evidence.status;
                known.reason.clone_from(&evidence.reason);
                known.failures.clone_from(&evidence.failures);
                known.failures.sort();
                let groups = evidence.groups.get(&self.resource).map_or(&[][..], Vec::as_slice);
                for group in groups {
                    let naming = self.exposures.iter().filter(|e| e.consumer_group.as_ref() == Some(&group.group_id));
                    let declared_exposures: Vec<String> = naming.map(|exposure| exposure.name.clone()).collect();
                    self.consumers.push(ImpactedConsumer {
                        group_id: group.group_id.clone(),
                        lag: group.lag,
                        declared: !declared_exposures.is_empty(),
                        declared_exposures,
                    });
                }
                self.consumers.sort_by(|a, b| a.group_id.cmp(&b.group_id));
            }
        }
    }
}

/// The project graph with numbered nodes, so that many walks over it stay cheap.
struct Graph<'a> {
    numbers: BTreeMap<&'a str, usize>,
    nodes: Vec<(&'a str, NodeType)>,
    downstream: Vec<Vec<usize>>,
}

impl<'a> Graph<'a> {
    fn of(desired: &Desired<'a>) -> Self {
        let dag = desired.dag;
        let nodes: Vec<(&str, NodeType)> =
            dag.nodes.iter().map(|(name, node)| (name.as_str(), node.node_type)).collect();
        let numbers: BTreeMap<&str, usize> = nodes.iter().enumerate().map(|(at, (name, _))| (*name, at)).collect();
        let follow = |names: &Vec<String>| names.iter().filter_map(|n| numbers.get(n.as_str()).copied()).collect();
        let downstream = dag.nodes.values().map(|node| follow(&node.downstream)).collect();
        Self { numbers, nodes, downstream }
    }

    /// `own`: the topic is what its owner writes. Another one is read only by sources that are declared over it.
    fn extend(&self, entry: &mut ImpactEntry, desired: &Desired<'_>, own: bool) {
        let Some(name) = &entry.logical_name else { return };
        let mut owners: BTreeSet<&String> = desired.declared.owners.get(name).into_iter().collect();
        let number = |name: &String| self.numbers.get(name.as_str()).copied();
        let starts: Option<Vec<usize>> = match (number(name), own) {
            (None, _) => None,
            (Some(start), true) => Some(vec![start]),
            (Some(_), false) => {
                Some(desired.declared.readers.get(&entry.resource).into_iter().flatten().filter_map(number).collect())
            }
        };
        match starts {
            None => {
                entry.graph_evidence =
                    ImpactEvidence::missing(EvidenceStatus::Unavailable, "logical_identity_not_in_dag");
            }
            Some(starts) => {
                entry.graph_evidence = ImpactEvidence::verified(GRAPH);
                for (name, node_type) in self.closure(&starts) {
                    match node_type {
                        NodeType::Source => {}
                        NodeType::Model => {
                            entry.downstream_models.push(name.to_owned());
                            owners.extend(desired.declared.owners.get(name));
                        }
                        NodeType::Exposure => {
                            let declared = desired.declared.exposures.get(name);
                            owners.extend(declared.into_iter().flat_map(|exposure| &exposure.owners));
                            entry.exposures.push(ImpactedExposure {
                                name: name.to_owned(),
                                owners: declared.map(|exposure| exposure.owners.clone()).unwrap_or_default(),
                                consumer_group: declared.and_then(|exposure| exposure.consumer_group.clone()),
                            });
                        }
                    }
                }
            }
        }
        entry.owners = owners.into_iter().cloned().collect();
    }

    /// Everything downstream, without the starts, sorted by name: numbers follow the names.
    fn closure(&self, starts: &[usize]) -> impl Iterator<Item = (&'a str, NodeType)> {
        let mut seen = BTreeSet::new();
        let mut open = starts.to_vec();
        while let Some(node) = open.pop() {
            open.extend(self.downstream[node].iter().copied().filter(|next| seen.insert(*next)));
        }
        for start in starts {
            seen.remove(start);
        }
        seen.into_iter().map(|node| self.nodes[node])
    }
}
