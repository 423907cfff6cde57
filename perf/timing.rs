//! Wall time and peak memory of whole processes.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::Failure;

struct Run {
    wall: Duration,
    /// KiB, the high-water mark last seen; the process may have grown in its last fraction of a millisecond.
    peak: u64,
}

pub fn single(runs: usize, command: &[&str]) -> Result<(), Failure> {
    let mut all = Vec::with_capacity(runs);
    run(command)?;
    for _ in 0..runs {
        all.push(run(command)?);
    }
    report("", &mut all);
    Ok(())
}

/// Runs both in turns and prints the ratio of the medians, first over second.
pub fn pair(runs: usize, first: &[&str], second: &[&str]) -> Result<(), Failure> {
    let (mut left, mut right) = (Vec::with_capacity(runs), Vec::with_capacity(runs));
    run(first)?;
    run(second)?;
    for _ in 0..runs {
        left.push(run(first)?);
        right.push(run(second)?);
    }
    let ratio = report("first  ", &mut left).as_secs_f64() / report("second ", &mut right).as_secs_f64();
    println!("ratio   {ratio:.2}");
    Ok(())
}

fn run(command: &[&str]) -> Result<Run, Failure> {
    let (program, arguments) = command.split_first().ok_or("no command")?;
    let start = Instant::now();
    let mut child = Command::new(program).args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
    let status_file = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        peak = std::fs::read_to_string(&status_file)
            .ok()
            .and_then(|text| high_water(&text))
            .map_or(peak, |kib| peak.max(kib));
        std::thread::sleep(Duration::from_micros(200));
    };
    if !status.success() {
        return Err(format!("{program} ended with {status}").into());
    }
    Ok(Run { wall: start.elapsed(), peak })
}

fn high_water(status: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix(" kB")?.parse().ok()
}

fn report(label: &str, runs: &mut [Run]) -> Duration {
    runs.sort_by_key(|run| run.wall);
    let median = runs[runs.len() / 2].wall;
    let peak = runs.iter().map(|run| run.peak).max().unwrap_or(0);
    println!(
        "{label}min {:8.2} ms  median {:8.2} ms  max {:8.2} ms  peak {:6.1} MiB",
        millis(runs[0].wall),
        millis(median),
        millis(runs[runs.len() - 1].wall),
        peak as f64 / 1024.0,
    );
    median
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
