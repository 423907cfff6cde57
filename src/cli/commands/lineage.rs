//! `streamt lineage`: the project graph as a tree, JSON, Mermaid, DOT or a picture.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::cli::args::ProjectArgs;
use crate::cli::context::Context;
use crate::cli::doc::Doc;
use crate::cli::lineage::{Direction, Graph, dot, mermaid, picture, tree};
use crate::cli::outcome::{CmdResult, Failure, Outcome};
use crate::cli::output;
use crate::cli::project;
use crate::codes::{Code, Diagnostic};
use crate::compiler::ResolvedModel;
use crate::project::Project;

use super::lineage_columns;

const MAX_NODES: usize = 5_000;
const MAX_EDGES: usize = 20_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Format {
    Ascii,
    Json,
    Mermaid,
    Dot,
    Svg,
}

/// Show which sources, models and exposures feed each other
#[derive(Debug, Args)]
pub struct LineageArgs {
    #[command(flatten)]
    project: ProjectArgs,

    /// Source, model or exposure to look at
    #[arg(short, long, value_name = "NAME")]
    model: Option<String>,

    /// Only what feeds it
    #[arg(long, requires = "model")]
    upstream: bool,

    /// Only what it feeds
    #[arg(long, requires = "model")]
    downstream: bool,

    /// Lineage of its columns
    #[arg(long, requires = "model")]
    columns: bool,

    /// Edges away from it
    #[arg(long, value_name = "N", requires = "model")]
    depth: Option<usize>,

    /// Only sources and models with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,

    /// Form of the graph
    #[arg(long, value_enum, default_value = "ascii")]
    format: Format,

    /// Write the graph to a file
    #[arg(long, value_name = "FILE")]
    output_file: Option<PathBuf>,
}

pub fn run(context: &Context, args: &LineageArgs) -> CmdResult {
    let opened = project::open(context, &args.project)?;
    let (models, graph) = project::graph(&opened.project);
    if let (true, Some(name)) = (args.columns, &args.model) {
        return columns(context, args, &opened, &models, name);
    }
    let graph = filtered(&opened.project, graph, args)?;
    if graph.nodes.len() > MAX_NODES || graph.edges.len() > MAX_EDGES {
        let message = format!(
            "The graph has {} nodes and {} edges; at most {MAX_NODES} and {MAX_EDGES} are drawn",
            graph.nodes.len(),
            graph.edges.len()
        );
        return Err(Failure::new(
            Diagnostic::new(Code::E510DocsInvalid, message).suggest("Narrow it with --model or --tag"),
        ));
    }
    let mut text = document(&opened.project, &graph, args.format);
    if let Some(file) = &args.output_file {
        text = written(context, file, &text)?;
    }
    let mut outcome = Outcome::new(&graph.json(), text);
    outcome.warnings = opened.warnings;
    Ok(outcome)
}

/// Columns of one model: neither further hops nor a picture.
fn columns(
    context: &Context,
    args: &LineageArgs,
    opened: &project::Opened,
    models: &[ResolvedModel],
    name: &str,
) -> CmdResult {
    if args.upstream || args.downstream || args.depth.is_some() || args.tag.is_some() {
        return Err(Failure::usage("--columns shows one model and what it reads directly")
            .hint("Leave --upstream, --downstream, --depth and --tag out"));
    }
    let json = match args.format {
        Format::Ascii => false,
        Format::Json => true,
        Format::Mermaid | Format::Dot | Format::Svg => {
            return Err(Failure::usage("--columns has no picture").hint("Use --format ascii or --format json"));
        }
    };
    let mut outcome = lineage_columns::outcome(&opened.project, models, name, json)?;
    if let Some(file) = &args.output_file {
        outcome.text = written(context, file, &outcome.text)?;
    }
    Ok(outcome.warn(opened.warnings.iter().cloned()))
}

/// Writes a document; what is said instead of it.
fn written(context: &Context, file: &Path, text: &Doc) -> Result<Doc, Failure> {
    let path = context.directory.join(file);
    output::write(&path, &text.render(false))?;
    let mut said = Doc::new();
    said.line(format!("Lineage written to {}", path.display()));
    Ok(said)
}

fn filtered(project: &Project, graph: Graph, args: &LineageArgs) -> Result<Graph, Failure> {
    let mut graph = graph;
    if let Some(name) = args.model.as_deref() {
        let Some(focus) = graph.find(name) else {
            let known = graph.nodes.iter().map(|node| node.name.as_str());
            return Err(project::not_found(Code::E102ModelNotFound, "model", name, known));
        };
        let direction = match (args.upstream, args.downstream) {
            (true, false) => Direction::Upstream,
            (false, true) => Direction::Downstream,
            (true, true) | (false, false) => Direction::Both,
        };
        graph = graph.around(focus, direction, args.depth);
    }
    if let Some(tag) = &args.tag {
        let sources = project.sources.iter().filter(|source| source.tags.contains(tag)).map(|source| &source.name);
        let models = project.models.iter().filter(|model| model.tags.contains(tag)).map(|model| &model.name);
        let tagged: std::collections::BTreeSet<&String> = sources.chain(models).collect();
        let focus = graph.focus.map(|index| graph.nodes[index].name.clone());
        graph = graph.keep(|_, node| tagged.contains(&node.name));
        graph.focus = focus.and_then(|name| graph.find(&name));
    }
    Ok(graph)
}

fn document(project: &Project, graph: &Graph, format: Format) -> Doc {
    match format {
        Format::Ascii => tree(graph),
        Format::Json => Doc::document(format!("{}\n", serde_json::to_string_pretty(&graph.json()).unwrap_or_default())),
        Format::Mermaid => Doc::document(mermaid(graph)),
        Format::Dot => Doc::document(dot(graph)),
        Format::Svg => Doc::document(picture(graph, &project.name)),
    }
}
