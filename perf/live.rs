//! The figures that need a broker, and those that need PostgreSQL beside it. Creates and deletes topics, a schema and a role of
//! its own.

use std::path::{Path, PathBuf};

use crate::Failure;
use crate::figures::{Bench, SMALL, clean, head, show};
use crate::generate::{self, Shape};
use crate::kafka;
use crate::postgres::Store;
use crate::timing::{self, Pairs, Task};

/// Exit codes of a plan under `--detailed-exitcode`: without changes, with changes.
const PLANNED: &[i32] = &[0, 2];
/// Counted pairs of what changes a cluster.
const APPLIES: usize = 3;

/// Names that this run alone uses.
struct Names {
    all: String,
    streamt: String,
    bare: String,
}

impl Bench {
    pub fn live(&mut self, servers: &str, postgres: Option<&str>) -> Result<(), Failure> {
        let all = format!("streamt-perf-{}.", std::process::id());
        let names = Names { streamt: format!("{all}a."), bare: format!("{all}b."), all };
        let store = postgres.map(Store::create).transpose()?;
        let outcome = self.measure_live(servers, &names, store.as_ref());
        let swept = kafka::delete(servers, &names.all);
        let dropped = store.map_or(Ok(()), Store::drop);
        outcome.and(swept).and(dropped)
    }

    fn measure_live(&mut self, servers: &str, names: &Names, store: Option<&Store>) -> Result<(), Failure> {
        let shape = Shape { models: SMALL, servers, prefix: &names.streamt, ..Shape::default() };
        let project = self.project("live", &shape)?;
        let count = SMALL.to_string();
        let bare_topics = generate::model_topics(&names.bare);
        let create = Task::new(&self.bare, ["create", servers, &bare_topics, &count]);
        let led = Task::new(&self.bare, ["create", servers, &bare_topics, &count, "--led"]);
        let apply = self.on(&project, &["apply", "--confirm"]);
        let fresh = |_| {
            kafka::delete(servers, &names.all)?;
            clean(&project.join(".streamt"))
        };

        head(&format!("milliseconds, {SMALL} topics at {servers}"));
        let pairs = timing::pair(APPLIES, [&apply, &create], fresh)?;
        show("apply, all created, all with leaders", "one bare CreateTopics", &pairs);
        self.ratio("apply of 1000 creates over one bare CreateTopics", 3.0, &pairs);
        let pairs = timing::pair(1, [&apply, &led], fresh)?;
        show("apply, all created, all with leaders", "one bare CreateTopics, then until all have leaders", &pairs);

        fresh(0)?;
        apply.run()?;
        let live_topics = generate::model_topics(&names.streamt);
        let describe = Task::new(&self.bare, ["describe", servers, &live_topics, &count]);
        let mut plan = self.on(&project, &["plan", "--detailed-exitcode"]);
        plan.accepted = PLANNED;
        let pairs = timing::pair(self.runs, [&plan, &describe], |_| Ok(()))?;
        show("plan, no changes", "bare DescribeTopics and DescribeConfigs", &pairs);
        self.ratio("plan of 1000 live topics over the bare calls", 1.5, &pairs);
        match store {
            Some(store) => self.remote(servers, names, (&project, &apply), store),
            None => Ok(()),
        }
    }

    /// The same apply with its state in PostgreSQL.
    fn remote(
        &mut self,
        servers: &str,
        names: &Names,
        (local, apply): (&Path, &Task),
        store: &Store,
    ) -> Result<(), Failure> {
        let prefix = format!("{}p.", names.all);
        let state = store.declaration();
        let shape = Shape { models: SMALL, servers, prefix: &prefix, state: &state, ..Shape::default() };
        // An address has one life: each run gets a project of its own name.
        let mut runs: Vec<PathBuf> = Vec::new();
        let turns = APPLIES + 1;
        for turn in 0..turns {
            let name = format!("perf-{turn}");
            let directory = self.project(&format!("remote-{turn}"), &Shape { name: &name, ..shape })?;
            let mut init =
                self.on(&directory, &["state", "init", "--writer-role", store.writer(), "--confirm-env", "default"]);
            let address = format!("streamt-state://perf/{name}/default");
            init.arguments.extend(["--confirm-project", &name, "--confirm-address", &address].map(str::to_owned));
            init.variables = store.variables();
            init.run()?;
            runs.push(directory);
        }
        let before = store.history()?;
        let mut walls = [Vec::new(), Vec::new()];
        for (turn, directory) in runs.iter().enumerate() {
            let mut remote = self.on(directory, &["apply", "--confirm"]);
            remote.variables = store.variables();
            for side in [turn % 2, (turn + 1) % 2] {
                kafka::delete(servers, &names.all)?;
                clean(&local.join(".streamt"))?;
                let wall = if side == 0 { remote.run()? } else { apply.run()? };
                if turn > 0 {
                    walls[side].push(wall);
                }
            }
        }
        let pairs = Pairs::of(walls);
        show("apply, state in PostgreSQL", "apply, state in local files", &pairs);
        self.ratio("apply with PostgreSQL state over local state", 1.5, &pairs);
        let a_action = (store.history()? - before) / (turns * SMALL) as f64 / 1000.0;
        self.table.at_most("history of one action in PostgreSQL", 2.0, "KB", a_action, "table, indexes and TOAST");
        Ok(())
    }

    fn ratio(&mut self, figure: &str, target: f64, pairs: &Pairs) {
        let note = format!(
            "{:.0} ms over {:.0} ms; pair by pair {:.2} to {:.2}, median {:.2}",
            pairs.first.min(),
            pairs.second.min(),
            pairs.ratios.min(),
            pairs.ratios.max(),
            pairs.ratios.median()
        );
        self.table.at_most(figure, target, "x", pairs.ratio_of_minima(), &note);
    }
}
