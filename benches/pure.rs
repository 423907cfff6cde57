//! The pure half on a project of 1 000 models, step by step: `cargo bench --bench pure`.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
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

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).measurement_time(Duration::from_secs(3));
    targets = pure
}
criterion_main!(benches);
