//! How fast a lost lock stops an apply, against real servers: a killed session beside a bare connection that is killed by the
//! same statement, and a silent link beside the moment at which the server gives the lock away.

mod journal;
mod kills;
mod silence;
mod site;

use crate::Failure;

/// Services that a measurement needs.
pub struct Services<'a> {
    /// URLs of one or more PostgreSQL servers, as owner.
    pub databases: Vec<&'a str>,
    pub kafka: &'a str,
    pub registry: &'a str,
}

pub fn measure(services: &Services, kills: usize, silences: usize) -> Result<(), Failure> {
    journal::start()?;
    kills::measure(services, kills)?;
    silence::measure(services, silences)
}

fn verdict(name: &str, value: f64, target: f64, unit: &str) {
    let met = if value <= target { "met" } else { "MISSED" };
    println!("  {name:<57} {value:9.2} {unit:<3} (at most {target} {unit}: {met})");
}
