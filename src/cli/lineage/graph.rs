//! Nodes in node order, edges in edge order, and the part of them that a filter keeps.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::Serialize;

use crate::compiler::{DagNode, NodeType};

/// A graph with indices for names: nodes by (source, model, exposure) and name, edges by the names of their ends.
#[derive(Clone, Debug)]
pub struct Graph {
    pub nodes: Vec<DagNode>,
    /// (from, to), data flows from the first to the second.
    pub edges: Vec<(usize, usize)>,
    /// The node that a focus was asked for.
    pub focus: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    Upstream,
    Downstream,
    Both,
}

impl Direction {
    fn up(self) -> bool {
        matches!(self, Self::Upstream | Self::Both)
    }

    fn down(self) -> bool {
        matches!(self, Self::Downstream | Self::Both)
    }
}

#[derive(Serialize)]
struct JsonGraph<'a> {
    nodes: Vec<&'a DagNode>,
    edges: Vec<JsonEdge<'a>>,
}

#[derive(Serialize)]
struct JsonEdge<'a> {
    from: &'a str,
    to: &'a str,
}

impl Graph {
    pub fn new(nodes: impl IntoIterator<Item = DagNode>) -> Self {
        let mut nodes: Vec<DagNode> = nodes.into_iter().collect();
        nodes.sort_by(|a, b| (a.node_type, &a.name).cmp(&(b.node_type, &b.name)));
        let index: BTreeMap<&str, usize> =
            nodes.iter().enumerate().map(|(index, node)| (node.name.as_str(), index)).collect();
        let mut edges: BTreeSet<(&str, &str)> = BTreeSet::new();
        for node in &nodes {
            edges.extend(node.upstream.iter().map(|upstream| (upstream.as_str(), node.name.as_str())));
            edges.extend(node.downstream.iter().map(|downstream| (node.name.as_str(), downstream.as_str())));
        }
        let edges = edges.into_iter().filter_map(|(from, to)| Some((*index.get(from)?, *index.get(to)?))).collect();
        Self { nodes, edges, focus: None }
    }

    pub fn find(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name == name)
    }

    /// Targets of each node's edges, in edge order.
    pub fn children(&self) -> Vec<Vec<usize>> {
        let mut children = vec![Vec::new(); self.nodes.len()];
        for &(from, to) in &self.edges {
            children[from].push(to);
        }
        children
    }

    pub fn parents(&self) -> Vec<Vec<usize>> {
        let mut parents = vec![Vec::new(); self.nodes.len()];
        for &(from, to) in &self.edges {
            parents[to].push(from);
        }
        parents
    }

    /// The node at `focus` and what lies at most `depth` edges away from it.
    pub fn around(&self, focus: usize, direction: Direction, depth: Option<usize>) -> Graph {
        let mut kept = BTreeSet::from([focus]);
        if direction.up() {
            reach(&self.parents(), focus, depth, &mut kept);
        }
        if direction.down() {
            reach(&self.children(), focus, depth, &mut kept);
        }
        let name = self.nodes[focus].name.clone();
        let mut graph = self.keep(|index, _| kept.contains(&index));
        graph.focus = graph.find(&name);
        graph
    }

    /// The nodes for which `keep` says yes, and the edges with both ends kept.
    pub fn keep(&self, keep: impl Fn(usize, &DagNode) -> bool) -> Graph {
        let kept: Vec<usize> = (0..self.nodes.len()).filter(|&index| keep(index, &self.nodes[index])).collect();
        let names: BTreeSet<&str> = kept.iter().map(|&index| self.nodes[index].name.as_str()).collect();
        let only = |list: &[String]| list.iter().filter(|name| names.contains(name.as_str())).cloned().collect();
        Graph::new(kept.iter().map(|&index| {
            let node = &self.nodes[index];
            DagNode { upstream: only(&node.upstream), downstream: only(&node.downstream), ..node.clone() }
        }))
    }

    /// The edges that close a cycle: those to a node on the stack of a depth-first walk from every node in order.
    pub fn back_edges(&self) -> BTreeSet<(usize, usize)> {
        let children = self.children();
        let mut state = vec![Visit::New; self.nodes.len()];
        let mut back = BTreeSet::new();
        for start in 0..self.nodes.len() {
            if state[start] != Visit::New {
                continue;
            }
            state[start] = Visit::OnStack;
            let mut stack = vec![(start, 0)];
            while let Some((node, next)) = stack.last_mut() {
                let Some(&child) = children[*node].get(*next) else {
                    state[*node] = Visit::Done;
                    stack.pop();
                    continue;
                };
                *next += 1;
                match state[child] {
                    Visit::New => {
                        state[child] = Visit::OnStack;
                        stack.push((child, 0));
                    }
                    Visit::OnStack => {
                        back.insert((*node, child));
                    }
                    Visit::Done => {}
                }
            }
        }
        back
    }

    /// `{nodes, edges}`, nodes by name.
    pub fn json(&self) -> serde_json::Value {
        let mut nodes: Vec<&DagNode> = self.nodes.iter().collect();
        nodes.sort_by(|a, b| a.name.cmp(&b.name));
        let edge = |&(from, to): &(usize, usize)| JsonEdge { from: &self.nodes[from].name, to: &self.nodes[to].name };
        crate::cli::outcome::json(&JsonGraph { nodes, edges: self.edges.iter().map(edge).collect() })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Visit {
    New,
    OnStack,
    Done,
}

fn reach(next: &[Vec<usize>], focus: usize, depth: Option<usize>, kept: &mut BTreeSet<usize>) {
    let mut seen = BTreeSet::from([focus]);
    let mut queue = VecDeque::from([(focus, 0)]);
    while let Some((node, distance)) = queue.pop_front() {
        if depth.is_some_and(|depth| distance >= depth) {
            continue;
        }
        for &other in &next[node] {
            if seen.insert(other) {
                queue.push_back((other, distance + 1));
            }
        }
    }
    kept.extend(seen);
}

/// What a node is called beside its name: its materialization for a model, its type otherwise.
pub fn label(node: &DagNode) -> &'static str {
    match (node.node_type, node.materialized) {
        (NodeType::Source, _) => "source",
        (NodeType::Exposure, _) => "exposure",
        (NodeType::Model, Some(materialized)) => materialized.as_str(),
        (NodeType::Model, None) => "model",
    }
}

pub fn type_word(node_type: NodeType) -> &'static str {
    match node_type {
        NodeType::Source => "source",
        NodeType::Model => "model",
        NodeType::Exposure => "exposure",
    }
}
