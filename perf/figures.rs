//! The figures that `perf/README.md` promises, each with its target, and whether this run met it.

use std::path::{Path, PathBuf};

use crate::generate::{self, Shape};
use crate::timing::{self, Pairs, Task};
use crate::{Failure, kafka};

const SMALL: usize = 1_000;
const LARGE: usize = 10_000;
const MEBIBYTE: f64 = 1024.0;
/// Exit codes of a plan under `--detailed-exitcode`: without changes, with changes.
const PLANNED: &[i32] = &[0, 2];

pub struct Bench {
    /// The program that is measured.
    pub streamt: PathBuf,
    /// This program, for the bare calls.
    pub bare: PathBuf,
    /// Scratch space, on a real file system: what is durable is flushed to it.
    pub scratch: PathBuf,
}

fn head(text: &str) {
    println!("\n{text:<47} {:>9} {:>9} {:>9}", "min", "median", "max");
}

fn verdict(name: &str, value: f64, target: f64, unit: &str) {
    let met = if value <= target { "met" } else { "MISSED" };
    println!("  {name:<57} {value:9.2} {unit:<3} (at most {target} {unit}: {met})");
}

impl Bench {
    fn streamt<const N: usize>(&self, arguments: [&str; N]) -> Task {
        Task::new(&self.streamt, arguments)
    }

    fn on(&self, project: &Path, arguments: &[&str]) -> Task {
        let mut words: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
        words.extend(["--project-dir".to_owned(), project.display().to_string()]);
        Task::new(&self.streamt, words)
    }

    fn project(&self, shape: &Shape) -> Result<PathBuf, Failure> {
        let name = format!("{}{}", shape.models, if shape.sql { "-sql" } else { "" });
        let directory = self.scratch.join(name);
        generate::project(shape, &directory)?;
        Ok(directory)
    }

    /// What needs no service.
    pub fn offline(&self, runs: usize) -> Result<(), Failure> {
        head("milliseconds");
        let version = self.streamt(["--version"]);
        let took = timing::single(runs * 4, &version, || Ok(()))?;
        println!("{:<46} {took}", "streamt --version");
        verdict("its least time", took.min(), 5.0, "ms");
        println!("  {:<57} {:9.2} ms", "its mean processor time", timing::processor(runs * 4, &version, || Ok(()))?);
        for (sql, label) in [(false, "topics"), (true, "half of the models with SQL")] {
            let shape = |models| Shape { models, sql, ..Shape::default() };
            let (small, large) = (self.project(&shape(SMALL))?, self.project(&shape(LARGE))?);
            head(&format!("milliseconds, {label}"));
            self.scaling("validate", &["validate"], [&small, &large], runs, 20.0)?;
            self.scaling("compile --dry-run", &["compile", "--dry-run"], [&small, &large], runs, 60.0)?;
            self.scaling("compile, files written", &["compile"], [&small, &large], runs, 60.0)?;
        }
        Ok(())
    }

    fn scaling(
        &self,
        name: &str,
        arguments: &[&str],
        [small, large]: [&Path; 2],
        runs: usize,
        target: f64,
    ) -> Result<(), Failure> {
        let tasks = [self.on(small, arguments), self.on(large, arguments)];
        let projects = [small, large];
        let pairs = timing::pair(runs, [&tasks[0], &tasks[1]], |side| clean(&projects[side].join("generated")))?;
        println!("{:<46} {}", format!("{name}, {SMALL} models"), pairs.first);
        println!("{:<46} {}", format!("{name}, {LARGE} models"), pairs.second);
        verdict(&format!("least time of {SMALL}"), pairs.first.min(), target, "ms");
        let busy = timing::processor(runs, &tasks[0], || clean(&small.join("generated")))?;
        println!("  {:<57} {busy:9.2} ms", format!("mean processor time of {SMALL}"));
        verdict(&format!("{LARGE} over {SMALL}"), 1.0 / pairs.ratio_of_minima(), 10.5, "x");
        clean(&large.join("generated"))?;
        let seen = tasks[1].watch()?;
        verdict(
            &format!("peak memory of {LARGE}"),
            seen.peak as f64 / MEBIBYTE,
            100.0 * 1e6 / f64::from(1 << 20),
            "MiB",
        );
        if seen.reactor {
            println!("  an async runtime was started: MISSED");
        }
        Ok(())
    }

    /// What needs a broker: creates and deletes topics of its own.
    pub fn live(&self, servers: &str, runs: usize) -> Result<(), Failure> {
        let prefix = format!("streamt-perf-{}.", std::process::id());
        let outcome = self.measure_live(servers, &prefix, runs);
        let swept = kafka::delete(servers, &prefix);
        outcome.and(swept)
    }

    fn measure_live(&self, servers: &str, prefix: &str, runs: usize) -> Result<(), Failure> {
        let ours = format!("{prefix}a.");
        let bare = format!("{prefix}b.");
        let shape = Shape { models: SMALL, servers, prefix: &ours, sql: false };
        let project = self.scratch.join("live");
        generate::project(&shape, &project)?;
        let count = SMALL.to_string();
        let bare_topics = generate::model_topics(&bare);
        let create = Task::new(&self.bare, ["create", servers, &bare_topics, &count]);
        let apply = self.on(&project, &["apply", "--confirm"]);

        head(&format!("milliseconds, {SMALL} topics at {servers}"));
        let led = Task::new(&self.bare, ["create", servers, &bare_topics, &count, "--led"]);
        let fresh = |_| {
            kafka::delete(servers, prefix)?;
            clean(&project.join(".streamt"))
        };
        let pairs = timing::pair(runs.div_ceil(7), [&led, &create], fresh)?;
        report("one bare CreateTopics, until all have leaders", "one bare CreateTopics", &pairs, f64::INFINITY);
        let pairs = timing::pair(runs.div_ceil(7), [&apply, &create], fresh)?;
        report("apply, all created, all with leaders", "one bare CreateTopics", &pairs, 3.0);
        fresh(0)?;
        apply.run()?;

        let live_topics = generate::model_topics(&ours);
        let describe = Task::new(&self.bare, ["describe", servers, &live_topics, &count]);
        let mut plan = self.on(&project, &["plan", "--detailed-exitcode"]);
        plan.accepted = PLANNED;
        let pairs = timing::pair(runs, [&plan, &describe], |_| Ok(()))?;
        report("plan, no changes", "bare DescribeTopics and DescribeConfigs", &pairs, 1.5);
        Ok(())
    }
}

fn report(first: &str, second: &str, pairs: &Pairs, target: f64) {
    println!("{first:<46} {}", pairs.first);
    println!("{second:<46} {}", pairs.second);
    println!("{:<46} {}", "ratio, pair by pair", pairs.ratios);
    if target.is_finite() {
        verdict("ratio of the least times", pairs.ratio_of_minima(), target, "x");
    }
}

fn clean(directory: &Path) -> Result<(), Failure> {
    match std::fs::remove_dir_all(directory) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
    }
}
