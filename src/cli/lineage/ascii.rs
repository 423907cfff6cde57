//! One tree per root, for terminals.

use crate::cli::doc::{Doc, Line, Tone};

use super::graph::{Graph, label};

struct Frame {
    node: usize,
    prefix: String,
    next: usize,
}

/// Trees in node order. A node seen on its own path ends there with `↺`; one that was expanded before, with `…`.
pub fn tree(graph: &Graph) -> Doc {
    let mut children = graph.children();
    children.iter_mut().for_each(|list| list.sort_unstable());
    let parents = graph.parents();
    let mut printed = vec![false; graph.nodes.len()];
    let mut doc = Doc::new();
    let roots = (0..graph.nodes.len()).filter(|&node| parents[node].is_empty());
    for root in roots.chain(0..graph.nodes.len()) {
        if printed[root] {
            continue;
        }
        if !doc.is_empty() {
            doc.blank();
        }
        one_tree(graph, &children, root, &mut printed, &mut doc);
    }
    doc
}

fn one_tree(graph: &Graph, children: &[Vec<usize>], root: usize, printed: &mut [bool], doc: &mut Doc) {
    printed[root] = true;
    doc.line(line(graph, "", root, ""));
    let mut on_path = vec![false; graph.nodes.len()];
    on_path[root] = true;
    let mut path = vec![Frame { node: root, prefix: String::new(), next: 0 }];
    while let Some(frame) = path.last_mut() {
        let list = &children[frame.node];
        let Some(&child) = list.get(frame.next) else {
            on_path[frame.node] = false;
            path.pop();
            continue;
        };
        frame.next += 1;
        let last = frame.next == list.len();
        let branch = format!("{}{}", frame.prefix, if last { "└── " } else { "├── " });
        let below = format!("{}{}", frame.prefix, if last { "    " } else { "│   " });
        if on_path[child] {
            doc.line(line(graph, &branch, child, " ↺"));
        } else if printed[child] && !children[child].is_empty() {
            doc.line(line(graph, &branch, child, " …"));
        } else {
            doc.line(line(graph, &branch, child, ""));
            printed[child] = true;
            on_path[child] = true;
            path.push(Frame { node: child, prefix: below, next: 0 });
        }
    }
}

fn line(graph: &Graph, branch: &str, node: usize, mark: &str) -> Line {
    let focus = if graph.focus == Some(node) { " ◀" } else { "" };
    let entry = &graph.nodes[node];
    Line::new()
        .tone(Tone::Unchanged, branch)
        .plain(entry.name.as_str())
        .tone(Tone::Unchanged, format!(" ({})", label(entry)))
        .plain(format!("{mark}{focus}"))
}
