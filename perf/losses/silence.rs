//! Links that go silent while a change is in flight: how long until the lease is closed, and how long until the server gives
//! the lock away.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use streamt::actors::Runtime;
use streamt::messages::operation::{ApplyEnd, Control, Observer, OperationEvent};

use super::Services;
use super::journal;
use super::site::{Shape, Site, request, sweep};
use crate::Failure;
use crate::faults::{Fault, Gate, Hit, Moments, Order, Proxy, every};

const PATIENCE: Duration = Duration::from_secs(60);

struct Run {
    name: String,
    key: i64,
    link: Proxy,
    /// Of its own, as is then its client: no apply waits behind another one's request.
    _kafka: Proxy,
    flying: Hit,
    compiled: Arc<streamt::compiler::Compiled>,
    wait: Duration,
}

/// Seconds from the silence.
struct Told {
    closed: f64,
    freed: f64,
    code: String,
}

pub fn measure(services: &Services, runs: usize) -> Result<(), Failure> {
    let mut moments = Moments::new("silence");
    let mut told = Vec::new();
    for database in &services.databases {
        told.extend(on(services, database, runs.div_ceil(services.databases.len()), &mut moments)?);
    }
    let least = |of: fn(&Told) -> f64| told.iter().map(of).fold(f64::INFINITY, f64::min);
    let most = |of: fn(&Told) -> f64| told.iter().map(of).fold(0.0, f64::max);
    println!("\n{:<47} {:>9} {:>9}", "seconds after the link goes silent", "min", "max");
    println!("{:<47} {:>9.2} {:>9.2}", "the lease is closed", least(|one| one.closed), most(|one| one.closed));
    println!("{:<47} {:>9.2} {:>9.2}", "the server frees the lock", least(|one| one.freed), most(|one| one.freed));
    let kept = told.iter().filter(|one| one.closed <= 3.0 && one.closed < one.freed && one.code == "E423").count();
    super::verdict("until the lease is closed", most(|one| one.closed), 3.0, "s");
    println!("  {kept} of {} closed within 3 s, before the server freed the lock, and told E423", told.len());
    Ok(())
}

fn on(services: &Services, database: &str, runs: usize, moments: &mut Moments) -> Result<Vec<Told>, Failure> {
    let site = Site::new(database)?;
    let order = Order::default();
    let gate = Gate::default();
    let base = format!("perf-{}", uuid::Uuid::new_v4().simple());
    let mut all = Vec::new();
    for run in 0..runs {
        let name = format!("{base}-{run}");
        let link = Proxy::postgres(&order, database);
        let kafka = Proxy::kafka(&order, services.kafka);
        let flying = kafka.rule(every(|request| request.mutates), Fault::Hold(gate.clone()));
        let shape = Shape { name: &name, models: 1, kafka: kafka.address(), registry: None };
        let compiled = site.project(&shape, &site.writer_dsn(Some(link.address())))?;
        let key = site.key(&name)?;
        all.push(Run {
            name,
            key,
            link,
            _kafka: kafka,
            flying,
            compiled,
            wait: moments.within(Duration::from_secs(1)),
        });
    }
    journal::clear();
    let done = AtomicBool::new(false);
    let runtime = Runtime::start().map_err(|error| error.message)?;
    let (outcomes, freed) = std::thread::scope(|scope| {
        let watch = scope.spawn(|| watch(&site, &all, &done));
        let applies: Vec<_> = all.iter().map(|run| scope.spawn(|| silenced(run, &runtime, &all))).collect();
        let outcomes: Result<Vec<_>, String> =
            applies.into_iter().map(|apply| apply.join().unwrap_or_else(|_| Err("a panic".to_owned()))).collect();
        done.store(outcomes.is_err(), Ordering::SeqCst);
        (outcomes, watch.join())
    });
    gate.open();
    let freed = freed.map_err(|_| "the watcher panicked")?.map_err(|error| error.to_string())?;
    let entries = journal::entries();
    let mut told = Vec::new();
    for (run, (at, operation, code)) in all.iter().zip(outcomes?) {
        let epoch = entries.iter().find(|entry| entry.operation == operation).ok_or("an admission")?.epoch;
        let close = entries.iter().find(|entry| entry.closes() && entry.epoch == epoch).and_then(|entry| entry.at);
        let since =
            |end: Option<Instant>| end.map_or(f64::INFINITY, |end| end.saturating_duration_since(at).as_secs_f64());
        if close.is_none_or(|close| close < at) || code != "E423" {
            let reason = entries.iter().find(|entry| entry.closes() && entry.epoch == epoch).map(|entry| &entry.reason);
            eprintln!(
                "perf: {}: {code}, {reason:?} {:?} before the link went silent",
                run.name,
                close.map(|close| at.saturating_duration_since(close))
            );
        }
        told.push(Told { closed: since(close), freed: since(freed.get(&run.key).copied()), code });
    }
    let names: Vec<String> = all.iter().map(|run| run.name.clone()).collect();
    drop(all);
    sweep(services.kafka, None, &names, 1)?;
    Ok(told)
}

/// When the link went silent, the operation, and the code of its end.
fn silenced(run: &Run, runtime: &Runtime, all: &[Run]) -> Result<(Instant, String, String), String> {
    let (begun, begins) = std::sync::mpsc::channel();
    let observer: Observer = Arc::new(move |event| {
        if let OperationEvent::Began { operation_id, .. } = event {
            let _ = begun.send(operation_id.to_string());
        }
    });
    std::thread::scope(|scope| {
        let apply = scope.spawn(|| {
            runtime.apply_blocking(request(Arc::clone(&run.compiled)), Control { observer, ..Control::default() })
        });
        let operation = begins.recv_timeout(PATIENCE).map_err(|_| "no operation began")?;
        let from = Instant::now();
        while all.iter().any(|run| run.flying.count() == 0) {
            if from.elapsed() > PATIENCE {
                return Err("not all changes are in flight".to_owned());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(run.wait);
        let at = Instant::now();
        run.link.silence();
        let outcome = apply.join().map_err(|_| "the apply panicked")?;
        let code = match &outcome.end {
            ApplyEnd::Failed(errors) => errors.iter().next().map_or("none", |error| error.code.number()).to_owned(),
            other => format!("{other:?}"),
        };
        Ok((at, operation, code))
    })
}

/// When each lock was seen to be free again, from another session.
fn watch(site: &Site, all: &[Run], done: &AtomicBool) -> Result<BTreeMap<i64, Instant>, String> {
    let (mut held, mut freed) = (std::collections::BTreeSet::new(), BTreeMap::new());
    let from = Instant::now();
    while freed.len() < all.len() && !done.load(Ordering::SeqCst) {
        if from.elapsed() > PATIENCE * 3 {
            return Err("the server never frees the lock".to_owned());
        }
        let now: std::collections::BTreeSet<i64> =
            site.holders().map_err(|error| error.to_string())?.into_iter().map(|(_, key)| key).collect();
        let at = Instant::now();
        for key in held.difference(&now) {
            freed.entry(*key).or_insert(at);
        }
        held.extend(&now);
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(freed)
}
