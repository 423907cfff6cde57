//! The picture: one element per line, colours as presentation attributes, a text alternative.

use std::fmt::Write;

use super::graph::{Graph, label, type_word};
use super::layout::{HEIGHT, WIDTH, layout};
use super::markup::colours;

const LABEL: usize = 24;
const BEND: usize = 40;

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn short(name: &str) -> String {
    match name.char_indices().nth(LABEL) {
        None => name.to_owned(),
        Some((end, _)) => format!("{}…", &name[..end]),
    }
}

pub fn picture(graph: &Graph, project: &str) -> String {
    let layout = layout(graph);
    let (width, height) = layout.size;
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         role=\"img\" aria-labelledby=\"lt ld\" font-family=\"sans-serif\" font-size=\"13\">"
    );
    let _ = writeln!(out, "<title id=\"lt\">Lineage of {}</title>", escape(project));
    let _ = writeln!(out, "<desc id=\"ld\">{} nodes, {} edges</desc>", graph.nodes.len(), graph.edges.len());
    out.push_str(
        "<defs><marker id=\"la\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" \
         orient=\"auto-start-reverse\"><path d=\"M0 0L8 4L0 8Z\" fill=\"#78909c\"/></marker></defs>\n",
    );
    out.push_str("<g class=\"edges\" fill=\"none\" stroke=\"#78909c\" stroke-width=\"1.5\">\n");
    for route in &layout.routes {
        let marker = match route.reversed {
            false => "marker-end=\"url(#la)\"",
            true => "marker-start=\"url(#la)\" stroke-dasharray=\"5 4\"",
        };
        let mut path = String::new();
        for (step, &(x, y)) in route.points.iter().enumerate() {
            let _ = match step.checked_sub(1).map(|before| route.points[before]) {
                None => write!(path, "M{x} {y}"),
                Some((px, py)) => write!(path, "C{} {py} {} {y} {x} {y}", px + BEND, x.saturating_sub(BEND)),
            };
        }
        let _ = writeln!(out, "<path {marker} d=\"{path}\"/>");
    }
    out.push_str("</g>\n");
    for (node, &(x, y)) in graph.nodes.iter().zip(&layout.corners) {
        let (fill, stroke) = colours(node.node_type);
        let _ = writeln!(
            out,
            "<g class=\"node {}\"><title>{}</title><rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"6\" \
             fill=\"{fill}\" stroke=\"{stroke}\" stroke-width=\"1.5\"/><text x=\"{}\" y=\"{}\" fill=\"#1b1b1b\">{}</text>\
             <text x=\"{}\" y=\"{}\" fill=\"#555\" font-size=\"10\">{}</text></g>",
            type_word(node.node_type),
            escape(&node.name),
            x + 10,
            y + 19,
            escape(&short(&node.name)),
            x + 10,
            y + 35,
            label(node),
        );
    }
    out.push_str("</svg>\n");
    out
}
