//! Measures whole commands against each other. Absolute times depend on the machine: every figure that is judged is a ratio
//! of two commands that ran in turns in one run. `perf/README.md` says what is measured and what came out.

mod generate;
mod kafka;
mod timing;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: perf generate MODELS DIRECTORY [--kafka HOST:PORT | --sql]
       perf time RUNS -- COMMAND...
       perf pair RUNS -- COMMAND... --- COMMAND...
       perf describe HOST:PORT PREFIX COUNT
       perf create HOST:PORT PREFIX COUNT
       perf delete HOST:PORT PREFIX";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["generate", models, directory, rest @ ..] => match (models.parse(), rest) {
            (Ok(models), []) => generate::project(models, Path::new(directory), "localhost:9092", false),
            (Ok(models), ["--sql"]) => generate::project(models, Path::new(directory), "localhost:9092", true),
            (Ok(models), ["--kafka", servers]) => generate::project(models, Path::new(directory), servers, false),
            _ => Err(USAGE.into()),
        },
        ["time", runs, "--", command @ ..] if !command.is_empty() => {
            runs.parse().map_err(|_| USAGE.into()).and_then(|runs| timing::single(runs, command))
        }
        ["pair", runs, "--", both @ ..] => match (runs.parse(), both.iter().position(|word| *word == "---")) {
            (Ok(runs), Some(cut)) => timing::pair(runs, &both[..cut], &both[cut + 1..]),
            _ => Err(USAGE.into()),
        },
        ["describe", servers, prefix, count] => kafka::describe(servers, prefix, count),
        ["create", servers, prefix, count] => kafka::create(servers, prefix, count),
        ["delete", servers, prefix] => kafka::delete(servers, prefix),
        _ => Err(USAGE.into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("perf: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What a measurement may fail with; shown as it is.
pub type Failure = Box<dyn std::error::Error>;
