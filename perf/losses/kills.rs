//! A thousand killed lock sessions, each at a random moment of an apply, each beside a bare connection that the same statement
//! kills.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use streamt::actors::Runtime;
use streamt::messages::operation::{ApplyEnd, Control, Observer, OperationEvent};

use super::Services;
use super::journal;
use super::site::{Shape, Site, request, sweep};
use crate::Failure;
use crate::faults::{Moments, Order, Proxy};

const MODELS: usize = 2;
/// Rounds without a kill, to know how long an apply takes.
const WHOLE: usize = 5;
/// Rounds between two removals of what was created.
const BATCH: usize = 50;

#[derive(Default)]
struct Seen {
    /// Milliseconds from the statement that kills to the closed lease, and to the end of the bare connection.
    ours: Vec<f64>,
    bare: Vec<f64>,
    /// From the closed lease to the answer of the apply, resolution of a commit included.
    answered: Vec<f64>,
    late: usize,
    /// Admissions numbered after the close of their lease.
    admitted_late: usize,
    /// Requests that change something and that no admission before the close explains.
    unexplained: usize,
    /// All requests that change something.
    requests: usize,
    codes: std::collections::BTreeMap<String, usize>,
}

pub fn measure(services: &Services, kills: usize) -> Result<(), Failure> {
    let mut moments = Moments::new("kills");
    let mut seen = Seen::default();
    let share = kills.div_ceil(services.databases.len());
    for database in &services.databases {
        on(services, database, seen.ours.len() + share, &mut moments, &mut seen)?;
    }
    report(&mut seen, kills);
    Ok(())
}

fn on(
    services: &Services,
    database: &str,
    until: usize,
    moments: &mut Moments,
    seen: &mut Seen,
) -> Result<(), Failure> {
    let site = Site::new(database)?;
    let order = Order::default();
    let (kafka, registry) = (Proxy::kafka(&order, services.kafka), Proxy::http(&order, services.registry));
    let url = registry.url();
    let runtime = Runtime::start().map_err(|error| error.message)?;
    let base = format!("perf-{}", uuid::Uuid::new_v4().simple());
    let (mut whole, mut dirty, mut round) = (Vec::new(), Vec::new(), 0);
    let outcome = (|| {
        while seen.ours.len() < until {
            let name = format!("{base}-{round}");
            let shape = Shape { name: &name, models: MODELS, kafka: kafka.address(), registry: Some(&url) };
            let compiled = site.project(&shape, &site.writer_dsn(None))?;
            dirty.push(name);
            let kill_after = (round >= WHOLE).then(|| moments.within(whole[WHOLE / 2]));
            let ours_first = moments.below(2) == 0;
            let held = one(&site, &runtime, &order, compiled, kill_after, ours_first, seen)?;
            if round < WHOLE {
                whole.push(held);
                whole.sort();
            }
            round += 1;
            if dirty.len() == BATCH {
                sweep(services.kafka, Some(services.registry), &dirty, MODELS)?;
                dirty.clear();
                eprintln!("perf: {} of {until} kills", seen.ours.len());
            }
        }
        Ok(())
    })();
    sweep(services.kafka, Some(services.registry), &dirty, MODELS)?;
    outcome
}

/// One apply, killed or not; how long it held the lock.
fn one(
    site: &Site,
    runtime: &Runtime,
    order: &Order,
    compiled: Arc<streamt::compiler::Compiled>,
    kill_after: Option<Duration>,
    ours_first: bool,
    seen: &mut Seen,
) -> Result<Duration, Failure> {
    journal::clear();
    let begun = order.mark("round");
    let (bare_ended, bare_end) = mpsc::channel();
    let (_bare, bare_pid) = site.bare(move || {
        let _ = bare_ended.send(Instant::now());
    })?;
    let (locked, locks) = mpsc::channel();
    let observer: Observer = Arc::new(move |event| {
        if let OperationEvent::Locked = event {
            let _ = locked.send(Instant::now());
        }
    });
    let (killed, outcome, held, end) = std::thread::scope(|scope| {
        let apply = scope.spawn(|| {
            let control = Control { observer, ..Control::default() };
            let outcome = runtime.apply_blocking(request(compiled), control);
            (outcome, Instant::now())
        });
        let from = locks.recv_timeout(Duration::from_secs(60))?;
        let mut killed = None;
        if let Some(after) = kill_after {
            let holder = site.holders()?.first().map(|(pid, _)| *pid);
            std::thread::sleep(after.saturating_sub(from.elapsed()));
            if let Some(pid) = holder {
                let (first, second) = if ours_first { (pid, bare_pid) } else { (bare_pid, pid) };
                let at = Instant::now();
                let kill = "SELECT pg_terminate_backend($1), pg_terminate_backend($2)";
                site.engine.block_on(site.owner.query_one(kill, &[&first, &second]))?;
                killed = Some(at);
            }
        }
        let (outcome, end) = apply.join().map_err(|_| "the apply panicked")?;
        Ok::<_, Failure>((killed, outcome, end - from, end))
    })?;
    let entries = journal::entries();
    let close = entries.iter().find(|entry| entry.closes());
    judge(order, begun, &entries, seen);
    if let (Some(at), Some(close)) = (killed, close) {
        let bare = bare_end.recv_timeout(Duration::from_secs(10))?;
        let closed = close.at.ok_or("a time")?;
        if close.reason == "released" || closed < at {
            seen.late += 1;
        } else {
            seen.ours.push((closed - at).as_secs_f64() * 1e3);
            seen.bare.push(bare.saturating_duration_since(at).as_secs_f64() * 1e3);
            seen.answered.push(end.saturating_duration_since(closed).as_secs_f64() * 1e3);
            let code = match &outcome.end {
                ApplyEnd::Failed(errors) => errors.iter().next().map_or("none", |error| error.code.number()).to_owned(),
                ApplyEnd::Committed => "committed".to_owned(),
                other => format!("{other:?}"),
            };
            *seen.codes.entry(format!("{code} ({})", close.reason)).or_default() += 1;
        }
    } else if killed.is_none() && kill_after.is_none() && !matches!(outcome.end, ApplyEnd::Committed) {
        return Err(format!("an apply that nobody killed failed: {:?}", outcome.end).into());
    }
    Ok(held)
}

/// Every request that changes something follows an admission of its own, and none is admitted after the close.
fn judge(order: &Order, begun: usize, entries: &[journal::Entry], seen: &mut Seen) {
    let close = entries.iter().find(|entry| entry.closes());
    let late = |entry: &&journal::Entry| entry.admits() && close.is_some_and(|close| entry.number > close.number);
    seen.admitted_late += entries.iter().filter(late).count();
    let admitted: Vec<Instant> = entries
        .iter()
        .filter(|entry| entry.admits() && close.is_none_or(|close| entry.number < close.number))
        .filter_map(|entry| entry.at)
        .collect();
    let records = order.records();
    let mut before = records[begun].at;
    for request in records[begun..].iter().filter(|record| record.mutates) {
        seen.requests += 1;
        if !admitted.iter().any(|at| before < *at && *at < request.at) {
            seen.unexplained += 1;
        }
        before = request.at;
    }
}

fn report(seen: &mut Seen, kills: usize) {
    let ratio = |part: f64, ours: &[f64], bare: &[f64]| percentile(ours, part) / percentile(bare, part);
    seen.ours.sort_by(f64::total_cmp);
    seen.bare.sort_by(f64::total_cmp);
    seen.answered.sort_by(f64::total_cmp);
    println!("\n{:<47} {:>9} {:>9} {:>9}", "milliseconds after the statement that kills", "p50", "p99", "max");
    for (name, times) in [
        ("the lease is closed", &seen.ours),
        ("a bare connection future ends", &seen.bare),
        ("from the closed lease to the answer", &seen.answered),
    ] {
        let value = |part| percentile(times, part);
        println!("{name:<47} {:>9.2} {:>9.2} {:>9.2}", value(0.5), value(0.99), value(1.0));
    }
    let (half, most) = (ratio(0.5, &seen.ours, &seen.bare), ratio(0.99, &seen.ours, &seen.bare));
    super::verdict(&format!("p50 over p50, {} kills", seen.ours.len()), half, 1.5, "x");
    super::verdict("p99 over p99", most, 1.5, "x");
    println!("  {} killed of {kills} wanted, {} more came after the end", seen.ours.len(), seen.late);
    println!("  outcomes: {:?}", seen.codes);
    super::verdict("admissions after the close", seen.admitted_late as f64, 0.0, "");
    super::verdict(
        &format!("of {} changing requests, without an admission", seen.requests),
        seen.unexplained as f64,
        0.0,
        "",
    );
}

/// Of sorted values.
fn percentile(sorted: &[f64], part: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get((last as f64 * part).ceil() as usize).copied().unwrap_or(f64::NAN)
}
