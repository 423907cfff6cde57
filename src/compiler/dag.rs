//! The project graph: its order, its cycles, its closures. Walks are iterative; the depth of a project is no limit.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::Serialize;
use serde::ser::SerializeStruct;

use super::{ResolvedModel, cycle};
use crate::project::model::{Materialized, Project, Reference};

/// What a node of the graph is a declaration of.
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
    pub fn order<'a>(&'a self) -> Result<Vec<&'a str>, Vec<&'a str>> {
        let outputs = |node: &'a DagNode| node.downstream.iter().map(String::as_str).collect();
        let edges = self.nodes.values().map(|node| (node.name.as_str(), outputs(node))).collect();
        if let Some(path) = cycle::find(&edges).into_iter().next() {
            return Err(path);
        }
        let mut met: HashSet<&str> = HashSet::with_capacity(self.nodes.len());
        let mut order = Vec::with_capacity(self.nodes.len());
        for start in self.nodes.values() {
            let mut walk: Vec<(&DagNode, usize)> = Vec::new();
            if met.insert(&start.name) {
                walk.push((start, 0));
            }
            while let Some((node, next)) = walk.pop() {
                let Some(input) = node.upstream.get(next) else {
                    order.push(node.name.as_str());
                    continue;
                };
                walk.push((node, next + 1));
                if let Some(input) = self.nodes.get(input).filter(|input| met.insert(&input.name)) {
                    walk.push((input, 0));
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
