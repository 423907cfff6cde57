//! The pure half on a project of 1 000 models, step by step: `cargo bench --bench pure`.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use streamt::compiler::columns::Columns;
use streamt::compiler::resolve::resolve;
use streamt::compiler::{Compiled, compile};
use streamt::planner::observation::{Observations, TopicObservation};
use streamt::planner::{Desired, Evidence, PlanInput, plan};
use streamt::project::{DiskFs, EnvironmentInput, Project, load};
use streamt::state::model::OwnershipState;
use streamt::validate::validate;

#[allow(dead_code)] // the generator serves the whole-command measurements too
#[path = "../perf/generate.rs"]
mod generate;

type Failure = Box<dyn std::error::Error>;

const MODELS: usize = 1_000;

fn loaded(directory: &Path) -> Arc<Project> {
    let fs = DiskFs::open(directory).expect("the project was written");
    Arc::new(load(&fs, &EnvironmentInput::default()).expect("the project is right").project)
}

/// Every topic is there and as it is declared.
fn live(compiled: &Compiled) -> Observations {
    let topics = compiled.artifacts.topics.iter().map(|topic| {
        let seen = TopicObservation {
            name: topic.name.clone(),
            exists: true,
            partitions: Some(topic.partitions),
            replication_factor: Some(topic.replication_factor),
            config: topic.config.clone(),
        };
        (topic.name.clone(), seen)
    });
    Observations { topics: topics.collect(), ..Observations::default() }
}

fn pure(criterion: &mut Criterion) {
    for sql in [false, true] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let shape = generate::Shape { models: MODELS, sql, ..generate::Shape::default() };
        generate::project(&shape, directory.path()).expect("a generated project");
        let name = |step: &str| format!("{step}{}/{MODELS}", if sql { "-sql" } else { "" });

        criterion.bench_function(&name("load"), |bencher| bencher.iter(|| black_box(loaded(directory.path()))));
        let project = loaded(directory.path());
        criterion.bench_function(&name("validate"), |bencher| bencher.iter(|| black_box(validate(&project))));
        // A project of its own for each run: the first finding of a file keeps its tree.
        criterion.bench_function(&name("compile"), |bencher| {
            bencher.iter_batched(
                || loaded(directory.path()),
                |project| black_box(compile(project)),
                BatchSize::LargeInput,
            );
        });
        if sql {
            continue;
        }
        let compiled = compile(project).expect("the project compiles");
        let (desired, observations) = (Desired::of(&compiled), live(&compiled));
        let state = OwnershipState::empty(compiled.project.name.as_str(), compiled.project.environment.name.as_str());
        let evidence = Evidence::Online { state: &state, observations: &observations };
        criterion.bench_function(&name("plan"), |bencher| {
            bencher.iter(|| black_box(plan(PlanInput { desired: &desired, evidence, selection: None })));
        });
    }
}

/// Outline, tree, scopes, types and lineage of models with the queries that Flink's planner accepts.
fn analysis(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    corpus(directory.path()).expect("a project of the corpus");
    let project = loaded(directory.path());
    let (models, _) = resolve(&project);
    criterion.bench_function(&format!("analyse-sql/{MODELS}"), |bencher| {
        bencher.iter(|| black_box(Columns::of(&project, &models)));
    });
}

/// A project whose sources are the corpus's tables and whose models are its queries, again and again.
fn corpus(directory: &Path) -> Result<(), Failure> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/sql");
    let mut sources = "sources:\n".to_owned();
    let mut tables = Vec::new();
    for line in std::fs::read_to_string(root.join("tables.sql"))?.lines() {
        if let Some(name) = line.strip_prefix("CREATE TABLE ") {
            tables.push(name.trim_end_matches(" (").to_owned());
            sources.push_str(&format!("  - name: {0}\n    topic: {0}\n    columns:\n", tables[tables.len() - 1]));
        } else if let Some((name, data_type)) = line.strip_prefix("    ").and_then(|column| column.split_once(' ')) {
            match name {
                "WATERMARK" | "PRIMARY" => {}
                _ if data_type.starts_with("AS ") => {
                    sources.push_str(&format!("      - {{name: {name}, proctime: true}}\n"));
                }
                _ => {
                    let data_type = data_type.trim_end_matches(',');
                    sources.push_str(&format!("      - {{name: {name}, type: \"{data_type}\"}}\n"));
                }
            }
        }
    }
    let mut queries = Vec::new();
    let mut files: Vec<_> = std::fs::read_dir(root.join("accepted"))?.collect::<Result<_, _>>()?;
    files.sort_by_key(std::fs::DirEntry::path);
    for file in files {
        let text = std::fs::read_to_string(file.path())?;
        queries.extend(text.split(";\n").filter(|query| !query.trim().is_empty()).map(str::to_owned));
    }
    let mut models = "models:\n".to_owned();
    for (index, query) in queries.iter().cycle().take(MODELS).enumerate() {
        let mut query = query.replace('\n', "\n      ");
        for table in &tables {
            for word in ["FROM", "JOIN", "TABLE"] {
                let call = format!("{word} {{{{ source(\"{table}\") }}}}");
                query = query.replace(&format!("{word} {table}"), &call);
            }
        }
        models.push_str(&format!("  - name: m{index}\n    materialized: flink\n    sql: |\n      {query}\n"));
    }
    std::fs::create_dir_all(directory.join("models"))?;
    std::fs::create_dir_all(directory.join("sources"))?;
    std::fs::write(directory.join("models/corpus.yml"), models)?;
    std::fs::write(directory.join("sources/corpus.yml"), sources)?;
    let project = "apiVersion: streamt.dev/v1alpha1\nproject: {name: corpus}\n\
                   runtime: {kafka: {bootstrap_servers: \"localhost:9092\"}}\n";
    std::fs::write(directory.join("stream_project.yml"), project)?;
    Ok(())
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).measurement_time(Duration::from_secs(3));
    targets = pure, analysis
}
criterion_main!(benches);
