//! Mermaid and DOT.

use std::fmt::Write;

use crate::compiler::{DagNode, NodeType};
use crate::project::model::Materialized;

use super::graph::{Graph, type_word};

struct Palette {
    node_type: NodeType,
    fill: &'static str,
    stroke: &'static str,
}

const PALETTE: [Palette; 3] = [
    Palette { node_type: NodeType::Source, fill: "#e1f5fe", stroke: "#0288d1" },
    Palette { node_type: NodeType::Model, fill: "#e8f5e9", stroke: "#2e7d32" },
    Palette { node_type: NodeType::Exposure, fill: "#fff3e0", stroke: "#ef6c00" },
];

/// Fill and stroke of a type, the same in every form.
pub fn colours(node_type: NodeType) -> (&'static str, &'static str) {
    let entry = match node_type {
        NodeType::Source => &PALETTE[0],
        NodeType::Model => &PALETTE[1],
        NodeType::Exposure => &PALETTE[2],
    };
    (entry.fill, entry.stroke)
}

/// Injective, so that `a-b` and `a.b` stay two nodes.
fn mermaid_id(node: &DagNode) -> String {
    let mut id = format!("{}_", type_word(node.node_type));
    for character in node.name.chars() {
        match character {
            '_' => id.push_str("__"),
            c if c.is_ascii_alphanumeric() => id.push(c),
            c => {
                let _ = write!(id, "_x{:x}_", u32::from(c));
            }
        }
    }
    id
}

fn mermaid_label(name: &str) -> String {
    name.replace('#', "#35;").replace('&', "#amp;").replace('<', "#lt;").replace('>', "#gt;").replace('"', "#quot;")
}

pub fn mermaid(graph: &Graph) -> String {
    let mut out = String::from("graph LR\n");
    let ids: Vec<String> = graph.nodes.iter().map(mermaid_id).collect();
    for (node, id) in graph.nodes.iter().zip(&ids) {
        let (open, close) = match (node.node_type, node.materialized) {
            (NodeType::Source, _) => ("[(", ")]"),
            (NodeType::Exposure, _) => ("{{", "}}"),
            (NodeType::Model, Some(Materialized::Sink)) => ("[[", "]]"),
            (NodeType::Model, _) => ("[", "]"),
        };
        let _ = writeln!(out, "    {id}{open}\"{}\"{close}", mermaid_label(&node.name));
    }
    for &(from, to) in &graph.edges {
        let _ = writeln!(out, "    {} --> {}", ids[from], ids[to]);
    }
    for Palette { node_type, fill, stroke } in PALETTE {
        let members: Vec<&str> = (graph.nodes.iter().zip(&ids))
            .filter(|(node, _)| node.node_type == node_type)
            .map(|(_, id)| id.as_str())
            .collect();
        if !members.is_empty() {
            let word = type_word(node_type);
            let _ = writeln!(out, "    classDef {word} fill:{fill},stroke:{stroke},color:#000");
            let _ = writeln!(out, "    class {} {word}", members.join(","));
        }
    }
    out
}

fn dot_quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

pub fn dot(graph: &Graph) -> String {
    let mut out = String::from(
        "digraph streamt {\n    rankdir=LR;\n    node [shape=box, style=filled, fillcolor=\"#f5f5f5\"];\n",
    );
    let ids: Vec<String> =
        (graph.nodes.iter()).map(|node| dot_quote(&format!("{}.{}", type_word(node.node_type), node.name))).collect();
    for (node, id) in graph.nodes.iter().zip(&ids) {
        let shape = match node.node_type {
            NodeType::Source => ", shape=cylinder",
            NodeType::Model => "",
            NodeType::Exposure => ", shape=hexagon",
        };
        let (fill, _) = colours(node.node_type);
        let _ = writeln!(out, "    {id} [label={}{shape}, fillcolor=\"{fill}\"];", dot_quote(&node.name));
    }
    for &(from, to) in &graph.edges {
        let _ = writeln!(out, "    {} -> {};", ids[from], ids[to]);
    }
    out.push_str("}\n");
    out
}
