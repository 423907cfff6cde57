//! Measures whole commands against each other. Absolute times depend on the machine: every figure that is judged is a ratio
//! of two commands that ran in turns in one run. `perf/README.md` says what is measured and what came out.
#![allow(clippy::disallowed_methods)]

mod connect;
mod contend;
#[path = "../tests/live/faults/mod.rs"]
mod faults;
mod figures;
mod generate;
mod kafka;
mod live;
mod losses;
mod postgres;
mod table;
mod timing;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use figures::Bench;
use generate::Shape;
use timing::Task;

const USAGE: &str = "usage: perf figures STREAMT SCRATCH RUNS [HOST:PORT [DSN]]
       perf generate MODELS DIRECTORY [--kafka HOST:PORT PREFIX | --sql]
       perf time RUNS -- COMMAND...
       perf pair RUNS -- COMMAND... --- COMMAND...
       perf describe HOST:PORT PREFIX COUNT
       perf create HOST:PORT PREFIX COUNT [--led]
       perf delete HOST:PORT PREFIX
       perf contend STREAMT HOST:PORT OWNER_DSN ROUNDS
       perf connectors STREAMT SCRATCH RUNS HOST:PORT WORKER USER PASSWORD
       perf losses KILLS SILENCES HOST:PORT REGISTRY POSTGRES...";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("perf: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> Result<(), Failure> {
    match words {
        ["figures", streamt, scratch, runs, rest @ ..] if rest.len() < 3 => {
            let mut bench = Bench {
                streamt: PathBuf::from(streamt),
                bare: std::env::current_exe()?,
                scratch: PathBuf::from(scratch),
                runs: runs.parse()?,
                table: table::Table::default(),
            };
            let outcome = bench.offline().and_then(|()| match rest {
                [servers, more @ ..] => bench.live(servers, more.first().copied()),
                [] => Ok(()),
            });
            bench.table.print();
            outcome
        }
        ["connectors", streamt, scratch, runs, servers, url, user, password] => {
            let mut bench = Bench {
                streamt: PathBuf::from(streamt),
                bare: std::env::current_exe()?,
                scratch: PathBuf::from(scratch),
                runs: runs.parse()?,
                table: table::Table::default(),
            };
            let outcome = bench.connectors(servers, connect::Worker { url, user, password });
            bench.table.print();
            outcome
        }
        ["generate", models, directory, rest @ ..] => {
            let plain = Shape { models: models.parse()?, ..Shape::default() };
            let shape = match rest {
                [] => plain,
                ["--sql"] => Shape { sql: true, ..plain },
                ["--kafka", servers, prefix] => Shape { servers, prefix, ..plain },
                _ => return Err(USAGE.into()),
            };
            generate::project(&shape, Path::new(directory))
        }
        ["time", runs, "--", command @ ..] => {
            let task = Task::of(command)?;
            let took = timing::single(runs.parse()?, &task, || Ok(()))?;
            println!("ms  {took}\npeak {:.1} MiB", task.watch()?.peak as f64 / 1024.0);
            Ok(())
        }
        ["pair", runs, "--", both @ ..] => {
            let cut = both.iter().position(|word| *word == "---").ok_or(USAGE)?;
            let (first, second) = (Task::of(&both[..cut])?, Task::of(&both[cut + 1..])?);
            let pairs = timing::pair(runs.parse()?, [&first, &second], |_| Ok(()))?;
            println!("first  ms {}\nsecond ms {}\nratio     {}", pairs.first, pairs.second, pairs.ratios);
            Ok(())
        }
        ["describe", servers, prefix, count] => kafka::describe(servers, prefix, count),
        ["create", servers, prefix, count] => kafka::create(servers, prefix, count, false),
        ["create", servers, prefix, count, "--led"] => kafka::create(servers, prefix, count, true),
        ["losses", kills, silences, kafka, registry, databases @ ..] if !databases.is_empty() => {
            let services = losses::Services { databases: databases.to_vec(), kafka, registry };
            losses::measure(&services, kills.parse()?, silences.parse()?)
        }
        ["delete", servers, prefix] => kafka::delete(servers, prefix),
        ["contend", streamt, servers, owner, rounds] => contend::run(streamt, servers, owner, rounds.parse()?),
        _ => Err(USAGE.into()),
    }
}

/// What a measurement may fail with; shown as it is.
pub type Failure = Box<dyn std::error::Error>;
