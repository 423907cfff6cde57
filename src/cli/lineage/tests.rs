use crate::compiler::canonical::Checksum;
use crate::compiler::{DagNode, NodeType};
use crate::project::model::Materialized;

use super::*;

fn node(name: &str, node_type: NodeType, materialized: Option<Materialized>, up: &[&str], down: &[&str]) -> DagNode {
    let names = |list: &[&str]| list.iter().map(|&name| name.to_owned()).collect();
    DagNode { name: name.to_owned(), node_type, materialized, upstream: names(up), downstream: names(down) }
}

fn shop() -> Graph {
    use Materialized::{Sink, Topic, VirtualTopic};
    use NodeType::{Exposure, Model, Source};
    Graph::new([
        node("revenue_board", Exposure, None, &["orders_raw", "orders_valid"], &[]),
        node(
            "orders_valid",
            Model,
            Some(Topic),
            &["orders_raw"],
            &["orders_archive", "orders_public", "revenue_board"],
        ),
        node("audit_log", Model, Some(Topic), &[], &[]),
        node("orders_archive", Model, Some(Sink), &["orders_valid"], &[]),
        node("web_shop", Exposure, None, &[], &["orders_raw"]),
        node("orders_public", Model, Some(VirtualTopic), &["orders_valid"], &[]),
        node("orders_raw", Source, None, &["web_shop"], &["orders_valid", "revenue_board"]),
    ])
}

fn cyclic() -> Graph {
    use NodeType::{Exposure, Model, Source};
    Graph::new([
        node("a", Source, None, &["web_app"], &["b"]),
        node("b", Model, Some(Materialized::Topic), &["a"], &["web_app"]),
        node("web_app", Exposure, None, &["b"], &["a"]),
    ])
}

fn digest(text: &str) -> String {
    Checksum::of_bytes(text.as_bytes()).hex().to_owned()
}

/// The published vectors of the five forms.
#[test]
fn every_form_has_the_published_bytes() {
    let graph = shop();
    let json = format!("{}\n", serde_json::to_string_pretty(&graph.json()).unwrap());
    assert_eq!(json.len(), 1777, "{json}");
    assert_eq!(digest(&json), "8cbb04b9de2257762cd2c2f7d84bf0dd1176586bdc48ec3cfbab11b0b0b8d919");
    let mermaid = mermaid(&graph);
    assert_eq!(digest(&mermaid), "9d311470b41e17eaa597a7e627d7dabb3cd2dd2cd28d69bf4b268955bd9f1517", "{mermaid}");
    let dot = dot(&graph);
    assert_eq!(digest(&dot), "3b80de4fd35b11924edacc1990a3e5ee136f98b9011f648aaf1178c2c2d3f8e7", "{dot}");
    let tree = tree(&graph).render(false);
    assert_eq!(digest(&tree), "82a2e6770f25e3454bbb05d7dab3ae6fb5059c8642a6233fa55e4fa985c2c703", "{tree}");
    let svg = picture(&graph, "shop-streams");
    assert_eq!(svg.len(), 2846, "{svg}");
    assert_eq!(digest(&svg), "e61bd3e51106579a7ba5a1dbf71ff08ca0b0f061ffdc26ae34b53842ddf83e33", "{svg}");
}

#[test]
fn a_cycle_ends_in_every_form() {
    let graph = cyclic();
    insta::assert_snapshot!(tree(&graph).render(false), @r"
    a (source)
    └── b (topic)
        └── web_app (exposure)
            └── a (source) ↺
    ");
    assert_eq!(graph.back_edges().into_iter().collect::<Vec<_>>(), [(2, 0)]);
    let svg = picture(&graph, "p");
    assert!(svg.contains("<path marker-start=\"url(#la)\" stroke-dasharray=\"5 4\""), "{svg}");
}

#[test]
fn a_focus_keeps_what_it_reaches_and_depth_counts_edges() {
    let graph = shop();
    let names = |graph: &Graph| graph.nodes.iter().map(|node| node.name.clone()).collect::<Vec<_>>();
    let focus = graph.find("orders_valid").unwrap();
    assert_eq!(names(&graph.around(focus, Direction::Upstream, None)), ["orders_raw", "orders_valid", "web_shop"]);
    assert_eq!(names(&graph.around(focus, Direction::Upstream, Some(1))), ["orders_raw", "orders_valid"]);
    let down = graph.around(focus, Direction::Downstream, None);
    assert_eq!(names(&down), ["orders_archive", "orders_public", "orders_valid", "revenue_board"]);
    insta::assert_snapshot!(tree(&graph.around(focus, Direction::Both, Some(1))).render(false), @r"
    orders_raw (source)
    ├── orders_valid (topic) ◀
    │   ├── orders_archive (sink)
    │   ├── orders_public (virtual_topic)
    │   └── revenue_board (exposure)
    └── revenue_board (exposure)
    ");
}

#[test]
fn names_that_look_alike_stay_apart() {
    let model = |name| node(name, NodeType::Model, Some(Materialized::Topic), &[], &[]);
    let text = mermaid(&Graph::new([model("a-b"), model("a.b"), model("a_b")]));
    for id in ["model_a_x2d_b[", "model_a_x2e_b[", "model_a__b["] {
        assert!(text.contains(id), "{text}");
    }
}

/// A deep chain and a wide fan are drawn without recursion.
#[test]
fn five_thousand_nodes_are_drawn() {
    let chain = Graph::new((0..5000).map(|i| {
        let up: Vec<String> = (i > 0).then(|| format!("m{:04}", i - 1)).into_iter().collect();
        let up: Vec<&str> = up.iter().map(String::as_str).collect();
        node(&format!("m{i:04}"), NodeType::Model, Some(Materialized::Topic), &up, &[])
    }));
    assert!(picture(&chain, "p").ends_with("</svg>\n"));
    assert!(tree(&chain).render(false).contains("m4999"));
}
