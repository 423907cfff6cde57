//! Circles of a directed graph: one path for each, first member repeated, the same for any order of declaration.

use std::collections::{BTreeMap, HashMap};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Open,
    Done,
}

/// Depth-first in name order; each back edge that is met gives one path. Linear in nodes and edges, without recursion.
pub fn find<'a>(edges: &BTreeMap<&'a str, Vec<&'a str>>) -> Vec<Vec<&'a str>> {
    let mut marks: HashMap<&str, Mark> = HashMap::with_capacity(edges.len());
    let mut found = Vec::new();
    for start in edges.keys() {
        if marks.contains_key(start) {
            continue;
        }
        let mut path: Vec<(&'a str, usize)> = vec![(start, 0)];
        marks.insert(start, Mark::Open);
        while let Some((node, next)) = path.last_mut() {
            let target = edges.get(node).and_then(|targets| targets.get(*next)).copied();
            *next += 1;
            match target {
                None => {
                    marks.insert(node, Mark::Done);
                    path.pop();
                }
                Some(target) => match marks.get(target) {
                    Some(Mark::Done) => {}
                    Some(Mark::Open) => {
                        let from = path.iter().position(|(node, _)| *node == target).unwrap_or_default();
                        let mut circle: Vec<&str> = path[from..].iter().map(|(node, _)| *node).collect();
                        let smallest = (0..circle.len()).min_by_key(|&index| circle[index]).unwrap_or_default();
                        circle.rotate_left(smallest);
                        circle.extend(circle.first().copied());
                        found.push(circle);
                    }
                    None => {
                        marks.insert(target, Mark::Open);
                        path.push((target, 0));
                    }
                },
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(&'static str, &[&'static str])]) -> BTreeMap<&'static str, Vec<&'static str>> {
        edges.iter().map(|(node, targets)| (*node, targets.to_vec())).collect()
    }

    #[test]
    fn a_circle_is_named_from_its_first_member_in_name_order() {
        let found = find(&graph(&[("0", &["c"]), ("c", &["a"]), ("a", &["b"]), ("b", &["c"]), ("x", &["a"])]));
        assert_eq!(found, [vec!["a", "b", "c", "a"]]);
    }

    #[test]
    fn a_self_reference_is_a_circle_and_a_diamond_is_none() {
        assert_eq!(find(&graph(&[("a", &["a"])])), [vec!["a", "a"]]);
        assert!(find(&graph(&[("a", &["b", "c"]), ("b", &["d"]), ("c", &["d"]), ("d", &[])])).is_empty());
    }

    #[test]
    fn a_long_chain_needs_no_stack() {
        let names: Vec<String> = (0..50_000).map(|n| format!("{n:06}")).collect();
        let edges = names.windows(2).map(|pair| (pair[0].as_str(), vec![pair[1].as_str()])).collect();
        assert!(find(&edges).is_empty());
    }
}
