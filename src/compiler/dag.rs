//! The project graph: its order, its cycles, its closures. Walks are iterative; the depth of a project is no limit.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde::ser::SerializeStruct;

use super::ResolvedModel;
use crate::project::model::{Materialized, Project, Reference};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeType {
    Source,
    Model,
    Exposure,
}

/// `upstream` and `downstream` are sorted and without repetition.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DagNode {
    pub name: String,
    #[serde(rename = "type")]
    pub node_type: NodeType,
    pub materialized: Option<Materialized>,
    pub upstream: Vec<String>,
    pub downstream: Vec<String>,
}

/// Nodes sorted by name, edges implied by `upstream`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dag {
    pub nodes: BTreeMap<String, DagNode>,
}

impl Dag {
    /// Edges to unknown nodes are dropped; whoever resolves names reports them.
    pub fn build(project: &Project, models: &[ResolvedModel]) -> Self {
        let mut dag = Self::default();
        for source in &project.sources {
            dag.add(&source.name, NodeType::Source, None);
        }
        for model in models {
            dag.add(&model.name, NodeType::Model, Some(model.materialized));
        }
        for exposure in &project.exposures {
            dag.add(&exposure.name, NodeType::Exposure, None);
        }
        let mut edges: Vec<(&str, &str)> = Vec::new();
        for model in models {
            edges.extend(model.dependencies.iter().map(|dependency| (dependency.name(), model.name.as_str())));
        }
        for exposure in &project.exposures {
            let inputs = exposure.consumes.iter().chain(&exposure.depends_on).flatten();
            edges.extend(inputs.map(|input| (input.name(), exposure.name.as_str())));
            edges.extend(exposure.produces.iter().flatten().map(|output| (exposure.name.as_str(), output.name())));
        }
        for (from, to) in edges {
            if dag.nodes.contains_key(from)
                && let Some(node) = dag.nodes.get_mut(to)
            {
                node.upstream.push(from.to_owned());
            }
        }
        dag.finish();
        dag
    }

    fn add(&mut self, name: &str, node_type: NodeType, materialized: Option<Materialized>) {
        self.nodes.entry(name.to_owned()).or_insert_with(|| DagNode {
            name: name.to_owned(),
            node_type,
            materialized,
            upstream: Vec::new(),
            downstream: Vec::new(),
        });
    }

    fn finish(&mut self) {
        let mut downstream: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for node in self.nodes.values_mut() {
            node.upstream.sort();
            node.upstream.dedup();
            for from in &node.upstream {
                downstream.entry(from.clone()).or_default().push(node.name.clone());
            }
        }
        // Nodes are visited by name, so each list arrives sorted.
        for (name, targets) in downstream {
            if let Some(node) = self.nodes.get_mut(&name) {
                node.downstream = targets;
            }
        }
    }

    /// Every edge, by `from`, then `to`.
    pub fn edges(&self) -> impl Iterator<Item = (&str, &str)> {
        self.nodes.values().flat_map(|node| node.downstream.iter().map(|target| (node.name.as_str(), target.as_str())))
    }

    /// Names in an order in which every node follows its inputs. A cycle is the error: its path, the first node repeated.
    pub fn order(&self) -> Result<Vec<&str>, Vec<String>> {
        #[derive(Clone, Copy, PartialEq)]
        enum Mark {
            New,
            Open,
            Done,
        }
        let nodes: Vec<&DagNode> = self.nodes.values().collect();
        let index_of = |name: &str| nodes.binary_search_by(|node| node.name.as_str().cmp(name)).ok();
        let mut marks = vec![Mark::New; nodes.len()];
        let mut order = Vec::with_capacity(nodes.len());
        for start in 0..nodes.len() {
            if marks[start] != Mark::New {
                continue;
            }
            marks[start] = Mark::Open;
            let mut walk = vec![(start, 0)];
            while let Some((at, next)) = walk.pop() {
                let Some(input) = nodes[at].upstream.get(next) else {
                    marks[at] = Mark::Done;
                    order.push(nodes[at].name.as_str());
                    continue;
                };
                walk.push((at, next + 1));
                let Some(input) = index_of(input) else { continue };
                match marks[input] {
                    Mark::Done => {}
                    Mark::New => {
                        marks[input] = Mark::Open;
                        walk.push((input, 0));
                    }
                    Mark::Open => {
                        let path = walk.iter().map(|(node, _)| *node).skip_while(|node| *node != input);
                        return Err(cycle_path(path.map(|node| nodes[node].name.clone()).collect()));
                    }
                }
            }
        }
        Ok(order)
    }

    /// Everything that feeds the node, without the node itself.
    pub fn upstream(&self, name: &str) -> BTreeSet<&str> {
        self.closure(name, |node| &node.upstream)
    }

    /// Everything that the node feeds, without the node itself.
    pub fn downstream(&self, name: &str) -> BTreeSet<&str> {
        self.closure(name, |node| &node.downstream)
    }

    fn closure<'a>(&'a self, name: &str, next: impl Fn(&'a DagNode) -> &'a Vec<String>) -> BTreeSet<&'a str> {
        let mut found: BTreeSet<&str> = BTreeSet::new();
        let mut waiting: Vec<&DagNode> = self.nodes.get(name).into_iter().collect();
        while let Some(node) = waiting.pop() {
            for neighbour in next(node) {
                if found.insert(neighbour) {
                    waiting.extend(self.nodes.get(neighbour));
                }
            }
        }
        found.remove(name);
        found
    }
}

/// The walk goes against the stream; the path is told with it, from its smallest name.
fn cycle_path(mut walked: Vec<String>) -> Vec<String> {
    walked.reverse();
    let first = (0..walked.len()).min_by_key(|&index| &walked[index]).unwrap_or(0);
    walked.rotate_left(first);
    if let Some(first) = walked.first().cloned() {
        walked.push(first);
    }
    walked
}

/// `a -> b -> a`
pub fn cycle_text(path: &[String]) -> String {
    path.join(" -> ")
}

/// `{"nodes": …, "edges": [{"from", "to"}]}`.
impl Serialize for Dag {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Edge<'a> {
            from: &'a str,
            to: &'a str,
        }
        let mut dag = serializer.serialize_struct("Dag", 2)?;
        dag.serialize_field("nodes", &self.nodes.values().collect::<Vec<_>>())?;
        dag.serialize_field("edges", &self.edges().map(|(from, to)| Edge { from, to }).collect::<Vec<_>>())?;
        dag.end()
    }
}

/// References without repetition, the first occurrence of each kept.
pub(super) fn distinct(references: impl IntoIterator<Item = Reference>) -> Vec<Reference> {
    let mut seen = BTreeSet::new();
    references.into_iter().filter(|reference| seen.insert(reference.clone())).collect()
}
