//! Places for the picture: layers from left to right, few crossings, whole numbers only.

use std::collections::BTreeSet;

use super::graph::Graph;

pub const WIDTH: usize = 180;
pub const HEIGHT: usize = 44;
const HGAP: usize = 80;
const VGAP: usize = 24;
const MARGIN: usize = 24;
const SWEEPS: usize = 8;

/// One drawn edge: the points it passes (right side, centres of the layers between, left side).
pub struct Route {
    pub points: Vec<(usize, usize)>,
    /// Drawn against its direction because it closes a cycle.
    pub reversed: bool,
}

pub struct Layout {
    pub size: (usize, usize),
    /// Upper left corner of each node.
    pub corners: Vec<(usize, usize)>,
    /// In edge order; an edge from a node to itself has no route.
    pub routes: Vec<Route>,
}

/// Items are nodes first, then the dummies of long edges.
struct Layers {
    order: Vec<Vec<usize>>,
    /// Neighbours of each item on the layer before and after.
    before: Vec<Vec<usize>>,
    after: Vec<Vec<usize>>,
    /// The items of each forward edge, ends included.
    chains: Vec<Vec<usize>>,
}

pub fn layout(graph: &Graph) -> Layout {
    let back = graph.back_edges();
    let forward: Vec<(usize, usize)> = graph
        .edges
        .iter()
        .map(|&(from, to)| if back.contains(&(from, to)) { (to, from) } else { (from, to) })
        .collect();
    let layer = layers(graph.nodes.len(), &forward);
    let mut layers = build(graph.nodes.len(), &layer, &forward);
    order(&mut layers);
    place(graph, &back, &layers)
}

/// The longest way from a node without upstream, by a topological walk.
fn layers(nodes: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let edges: BTreeSet<(usize, usize)> = edges.iter().copied().filter(|(from, to)| from != to).collect();
    let mut incoming = vec![0_usize; nodes];
    let mut children = vec![Vec::new(); nodes];
    for &(from, to) in &edges {
        incoming[to] += 1;
        children[from].push(to);
    }
    let mut layer = vec![0; nodes];
    let mut ready: Vec<usize> = (0..nodes).filter(|&node| incoming[node] == 0).collect();
    while let Some(node) = ready.pop() {
        for &child in &children[node] {
            layer[child] = layer[child].max(layer[node] + 1);
            incoming[child] -= 1;
            if incoming[child] == 0 {
                ready.push(child);
            }
        }
    }
    layer
}

fn build(nodes: usize, layer: &[usize], forward: &[(usize, usize)]) -> Layers {
    let count = layer.iter().max().map_or(0, |last| last + 1);
    let mut layers = Layers {
        order: vec![Vec::new(); count],
        before: vec![Vec::new(); nodes],
        after: vec![Vec::new(); nodes],
        chains: Vec::with_capacity(forward.len()),
    };
    for (node, &layer) in layer.iter().enumerate() {
        layers.order[layer].push(node);
    }
    for &(from, to) in forward {
        let mut chain = vec![from];
        for between in layer[from] + 1..layer[to] {
            let dummy = layers.before.len();
            layers.before.push(Vec::new());
            layers.after.push(Vec::new());
            layers.order[between].push(dummy);
            chain.push(dummy);
        }
        chain.push(to);
        for pair in chain.windows(2).filter(|pair| pair[0] != pair[1]) {
            layers.after[pair[0]].push(pair[1]);
            layers.before[pair[1]].push(pair[0]);
        }
        layers.chains.push(chain);
    }
    layers
}

/// Barycentre sweeps; the arrangement with the fewest crossings stays, the earliest of equals.
fn order(layers: &mut Layers) {
    let mut position = vec![0; layers.before.len()];
    positions(&layers.order, &mut position);
    let mut best = layers.order.clone();
    let mut fewest = crossings(layers, &position);
    for sweep in 0..SWEEPS {
        let downward = sweep % 2 == 0;
        let count = layers.order.len();
        for step in 1..count {
            let index = if downward { step } else { count - 1 - step };
            let neighbours = if downward { &layers.before } else { &layers.after };
            sort_layer(&mut layers.order[index], neighbours, &mut position);
        }
        let found = crossings(layers, &position);
        if found < fewest {
            fewest = found;
            best.clone_from(&layers.order);
        }
    }
    layers.order = best;
}

fn sort_layer(items: &mut [usize], neighbours: &[Vec<usize>], position: &mut [usize]) {
    let mut weighted: Vec<(usize, usize, usize)> = (items.iter().enumerate())
        .map(|(index, &item)| match neighbours[item].len() {
            0 => (index, 1, item),
            count => (neighbours[item].iter().map(|&other| position[other]).sum(), count, item),
        })
        .collect();
    weighted.sort_by(|a, b| (a.0 * b.1).cmp(&(b.0 * a.1)));
    for (index, (slot, (_, _, item))) in items.iter_mut().zip(weighted).enumerate() {
        *slot = item;
        position[item] = index;
    }
}

fn positions(order: &[Vec<usize>], position: &mut [usize]) {
    for layer in order {
        for (index, &item) in layer.iter().enumerate() {
            position[item] = index;
        }
    }
}

/// Inversions between neighbouring layers, counted with a Fenwick tree.
fn crossings(layers: &Layers, position: &[usize]) -> usize {
    let mut total = 0;
    for pair in layers.order.windows(2) {
        let mut counts = vec![0_usize; pair[1].len() + 1];
        let mut seen = 0;
        for &item in &pair[0] {
            let mut targets: Vec<usize> = layers.after[item].iter().map(|&other| position[other]).collect();
            targets.sort_unstable();
            for &target in &targets {
                total += seen - up_to(&counts, target);
            }
            for &target in &targets {
                add(&mut counts, target);
            }
            seen += targets.len();
        }
    }
    total
}

/// How many were added at positions up to and including `index`.
fn up_to(counts: &[usize], index: usize) -> usize {
    let mut sum = 0;
    let mut slot = index + 1;
    while slot > 0 {
        sum += counts[slot];
        slot &= slot - 1;
    }
    sum
}

fn add(counts: &mut [usize], index: usize) {
    let mut slot = index + 1;
    while slot < counts.len() {
        counts[slot] += 1;
        slot += slot & slot.wrapping_neg();
    }
}

fn place(graph: &Graph, back: &BTreeSet<(usize, usize)>, layers: &Layers) -> Layout {
    let tall = |items: usize| items * HEIGHT + items.saturating_sub(1) * VGAP;
    let inner = layers.order.iter().map(|layer| tall(layer.len())).max().unwrap_or(0);
    let mut corners = vec![(0, 0); layers.before.len()];
    for (column, layer) in layers.order.iter().enumerate() {
        let top = MARGIN + (inner - tall(layer.len())) / 2;
        for (row, &item) in layer.iter().enumerate() {
            corners[item] = (MARGIN + column * (WIDTH + HGAP), top + row * (HEIGHT + VGAP));
        }
    }
    let routes = (graph.edges.iter().zip(&layers.chains))
        .filter(|((from, to), _)| from != to)
        .map(|(edge, chain)| Route { points: points(chain, &corners), reversed: back.contains(edge) })
        .collect();
    let columns = layers.order.len();
    let size = (2 * MARGIN + columns * WIDTH + columns.saturating_sub(1) * HGAP, 2 * MARGIN + inner);
    corners.truncate(graph.nodes.len());
    Layout { size, corners, routes }
}

fn points(chain: &[usize], corners: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let last = chain.len() - 1;
    (chain.iter().enumerate())
        .map(|(step, &item)| {
            let (x, y) = corners[item];
            let x = match step {
                0 => x + WIDTH,
                step if step == last => x,
                _ => x + WIDTH / 2,
            };
            (x, y + HEIGHT / 2)
        })
        .collect()
}
