//! Random moments that can be drawn again.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A sequence that its seed decides; the seed is printed.
pub struct Moments {
    state: u64,
}

impl Moments {
    /// Seeded by `STREAMT_SEED`, or by the clock.
    pub fn new(test: &str) -> Self {
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_nanos() as u64;
        let seed = match std::env::var("STREAMT_SEED") {
            Ok(seed) => seed.parse().expect("STREAMT_SEED is a number"),
            Err(_) => clock,
        };
        println!("{test}: STREAMT_SEED={seed}");
        Self { state: seed }
    }

    /// SplitMix64.
    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// 0..bound
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    pub fn within(&mut self, longest: Duration) -> Duration {
        Duration::from_micros(self.below(longest.as_micros() as u64))
    }

    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }
}
