//! Flink jobs on real clusters: the shared one for what leaves it whole, one of its own where a process is killed.

mod client;
mod cluster;
mod continuous;
mod example;
mod kills;
mod life;
mod outcomes;
mod state;
mod sudden;
mod told;
mod yard;
