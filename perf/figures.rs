//! The figures of `perf/README.md` that need no service, each with its target, and whether this run met it.

use std::path::{Path, PathBuf};

use crate::Failure;
use crate::generate::{self, Shape};
use crate::table::Table;
use crate::timing::{self, Pairs, Task};

pub const SMALL: usize = 1_000;
pub const LARGE: usize = 10_000;
const MEGABYTE: f64 = 1e6;

pub struct Bench {
    /// The program that is measured.
    pub streamt: PathBuf,
    /// This program, for the bare calls.
    pub bare: PathBuf,
    /// Scratch space, on a real file system: what is durable is flushed to it.
    pub scratch: PathBuf,
    /// Counted runs of a short command; of longer ones fewer.
    pub runs: usize,
    pub table: Table,
}

pub fn head(text: &str) {
    println!("\n{text:<58} {:>9} {:>9} {:>9}", "min", "median", "max");
}

pub fn line(name: &str, value: impl std::fmt::Display) {
    println!("{name:<58} {value}");
}

impl Bench {
    pub fn on(&self, project: &Path, arguments: &[&str]) -> Task {
        let mut words: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
        words.extend(["--project-dir".to_owned(), project.display().to_string()]);
        Task::new(&self.streamt, words)
    }

    pub fn project(&self, name: &str, shape: &Shape<'_>) -> Result<PathBuf, Failure> {
        let directory = self.scratch.join(name);
        generate::project(shape, &directory)?;
        Ok(directory)
    }

    pub fn offline(&mut self) -> Result<(), Failure> {
        let runs = self.runs;
        head("milliseconds, whole processes");
        let version = Task::new(&self.streamt, ["--version"]);
        let took = timing::single(runs * 4, &version, || Ok(()))?;
        line("streamt --version", &took);
        let busy = timing::processor(runs * 4, &version, || Ok(()))?;
        let note = format!("median {:.2} ms, processor {busy:.2} ms", took.median());
        self.table.at_most("streamt --version", 5.0, "ms", took.min(), &note);
        let mut reactor = false;
        for (sql, label) in [(false, "topics"), (true, "half with SQL")] {
            let shape = |models| Shape { models, sql, ..Shape::default() };
            let small = self.project(&format!("small-{sql}"), &shape(SMALL))?;
            let large = self.project(&format!("large-{sql}"), &shape(LARGE))?;
            for (name, arguments, target) in
                [("validate", &["validate"][..], 20.0), ("compile --dry-run", &["compile", "--dry-run"], 60.0)]
            {
                reactor |= self.scaling(&format!("{name}, {label}"), arguments, [&small, &large], target)?;
            }
        }
        let small = self.scratch.join("small-false");
        let written =
            timing::single(runs.div_ceil(2), &self.on(&small, &["compile"]), || clean(&small.join("generated")))?;
        line(&format!("compile, files written, topics, {SMALL} models"), &written);
        let told = if reactor { "one was started" } else { "none was seen" };
        self.table.holds("async runtime of offline commands", "none", told, !reactor);
        Ok(())
    }

    /// Time of the small project, its growth to the large one, and the memory of that. Whether a runtime was seen.
    fn scaling(
        &mut self,
        name: &str,
        arguments: &[&str],
        [small, large]: [&Path; 2],
        target: f64,
    ) -> Result<bool, Failure> {
        let tasks = [self.on(small, arguments), self.on(large, arguments)];
        let pairs = timing::pair(self.runs, [&tasks[0], &tasks[1]], |_| Ok(()))?;
        line(&format!("{name}, {SMALL} models"), &pairs.first);
        line(&format!("{name}, {LARGE} models"), &pairs.second);
        let busy = [0, 1].map(|side| timing::processor(self.runs.div_ceil(2), &tasks[side], || Ok(())));
        let [busy_small, busy_large] =
            [busy[0].as_ref().ok(), busy[1].as_ref().ok()].map(|ms| ms.copied().unwrap_or(f64::NAN));
        let note = format!("median {:.1} ms, processor {busy_small:.1} ms", pairs.first.median());
        self.table.at_most(format!("{name}, {SMALL} models"), target, "ms", pairs.first.min(), &note);
        let note = format!("by processor time {:.2}x", busy_large / busy_small);
        self.table.at_most(format!("{name}, {LARGE} over {SMALL}"), 10.5, "x", 1.0 / pairs.ratio_of_minima(), &note);
        let seen = tasks[1].watch()?;
        let peak = seen.peak as f64 * 1024.0 / MEGABYTE;
        self.table.at_most(format!("{name}, peak memory of {LARGE}"), 100.0, "MB", peak, "");
        Ok(seen.reactor)
    }
}

/// Two commands side by side, and the ratio of their least times.
pub fn show(first: &str, second: &str, pairs: &Pairs) {
    line(first, &pairs.first);
    line(second, &pairs.second);
    line("ratio, pair by pair", &pairs.ratios);
}

pub fn clean(directory: &Path) -> Result<(), Failure> {
    match std::fs::remove_dir_all(directory) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
    }
}
