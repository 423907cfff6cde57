//! Wall time, peak memory and runtime of whole processes.

use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::Failure;

/// One command of a measurement: the same arguments in every run.
#[derive(Clone)]
pub struct Task {
    pub program: PathBuf,
    pub arguments: Vec<String>,
    /// Set beside those of this process.
    pub variables: Vec<(String, String)>,
    /// Exit codes that count as success.
    pub accepted: &'static [i32],
}

impl Task {
    pub fn new(program: impl Into<PathBuf>, arguments: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            program: program.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            variables: Vec::new(),
            accepted: &[0],
        }
    }

    pub fn of(words: &[&str]) -> Result<Self, Failure> {
        let (program, arguments) = words.split_first().ok_or("no command")?;
        Ok(Self::new(*program, arguments.iter().copied()))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn check(&self, status: ExitStatus) -> Result<(), Failure> {
        match status.code() {
            Some(code) if self.accepted.contains(&code) => Ok(()),
            _ => Err(format!("{} {} ended with {status}", self.program.display(), self.arguments.join(" ")).into()),
        }
    }

    /// One run; nothing looks at the process while it runs.
    pub fn run(&self) -> Result<Duration, Failure> {
        let start = Instant::now();
        let status = self.command().status()?;
        let wall = start.elapsed();
        self.check(status)?;
        Ok(wall)
    }

    /// One run under observation; its time is of no use.
    pub fn watch(&self) -> Result<Watched, Failure> {
        let mut child = self.command().spawn()?;
        let process = PathBuf::from(format!("/proc/{}", child.id()));
        let mut watched = Watched::default();
        loop {
            if let Some(status) = child.try_wait()? {
                self.check(status)?;
                return Ok(watched);
            }
            let status = std::fs::read_to_string(process.join("status")).unwrap_or_default();
            watched.peak = watched.peak.max(high_water(&status).unwrap_or(0));
            watched.reactor |= std::fs::read_dir(process.join("fd")).is_ok_and(|open| {
                open.flatten()
                    .filter_map(|file| file.path().read_link().ok())
                    .any(|to| to.ends_with("anon_inode:[eventpoll]"))
            });
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

/// What a process was seen to use.
#[derive(Default)]
pub struct Watched {
    /// KiB resident, the high-water mark last seen; the process may have grown in its last tenth of a millisecond.
    pub peak: u64,
    /// Whether it polled descriptors, as every async runtime does.
    pub reactor: bool,
}

fn high_water(status: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix(" kB")?.parse().ok()
}

/// Sorted measurements.
pub struct Spread(Vec<f64>);

impl Spread {
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    pub fn min(&self) -> f64 {
        self.0.first().copied().unwrap_or(f64::NAN)
    }

    pub fn median(&self) -> f64 {
        self.0.get(self.0.len() / 2).copied().unwrap_or(f64::NAN)
    }

    pub fn max(&self) -> f64 {
        self.0.last().copied().unwrap_or(f64::NAN)
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:9.2} {:9.2} {:9.2}", self.min(), self.median(), self.max())
    }
}

/// Two commands that ran in turns.
pub struct Pairs {
    /// Milliseconds.
    pub first: Spread,
    pub second: Spread,
    /// First over second, pair by pair.
    pub ratios: Spread,
}

impl Pairs {
    /// Of the walls of both sides, in the order of their turns.
    pub fn of([first, second]: [Vec<Duration>; 2]) -> Self {
        let [first, second] = [first, second].map(|walls| walls.into_iter().map(millis).collect::<Vec<_>>());
        let ratios = first.iter().zip(&second).map(|(first, second)| first / second).collect();
        Self { first: Spread::of(first), second: Spread::of(second), ratios: Spread::of(ratios) }
    }

    /// The least of many runs is the one that the machine disturbed least.
    pub fn ratio_of_minima(&self) -> f64 {
        self.first.min() / self.second.min()
    }
}

/// Milliseconds of `runs` runs after one that is not counted; `before` prepares each run.
pub fn single(runs: usize, task: &Task, mut before: impl FnMut() -> Result<(), Failure>) -> Result<Spread, Failure> {
    let mut walls = Vec::with_capacity(runs);
    for run in 0..=runs {
        before()?;
        let wall = millis(task.run()?);
        if run > 0 {
            walls.push(wall);
        }
    }
    Ok(Spread::of(walls))
}

/// Both in turns, after one pair that is not counted; the side that goes first alternates.
pub fn pair(
    runs: usize,
    tasks: [&Task; 2],
    mut before: impl FnMut(usize) -> Result<(), Failure>,
) -> Result<Pairs, Failure> {
    let mut walls = [Vec::with_capacity(runs), Vec::with_capacity(runs)];
    for run in 0..=runs {
        for turn in 0..2 {
            let side = (turn + run) % 2;
            before(side)?;
            let wall = tasks[side].run()?;
            if run > 0 {
                walls[side].push(wall);
            }
        }
    }
    Ok(Pairs::of(walls))
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Ticks of `/proc` a second: a constant of the Linux ABI, whatever the kernel's own.
const USER_HZ: f64 = 100.0;

/// Mean milliseconds of processor time, all threads, user and system: what a busy machine changes least.
pub fn processor(runs: usize, task: &Task, mut before: impl FnMut() -> Result<(), Failure>) -> Result<f64, Failure> {
    let start = ticks_of_children()?;
    for _ in 0..runs {
        before()?;
        task.run()?;
    }
    Ok((ticks_of_children()? - start) / USER_HZ * 1e3 / runs.max(1) as f64)
}

fn ticks_of_children() -> Result<f64, Failure> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    // proc_pid_stat(5): cutime and cstime are fields 16 and 17; the state behind the name is the third.
    match fields.get(13..15) {
        Some([user, system]) => Ok(user.parse::<f64>()? + system.parse::<f64>()?),
        Some(_) | None => Err("/proc/self/stat has another form".into()),
    }
}
