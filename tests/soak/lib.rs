//! How long the loops of tests are: whole in `just soak`, a sample in every other run.
//!
//! `PODBAY_TEST_SOAK=1` asks for everything, `PODBAY_TEST_KILLS=N` for another number of kills, and
//! `PODBAY_TEST_SEED=N` for the sample of an earlier run, which printed that number.

use std::hash::BuildHasher;
use std::hash::RandomState;
use std::sync::OnceLock;

/// How often each loop kills something when nothing is left out.
const N_KILLS: u32 = 200;

/// Returns whether nothing is left out.
pub fn is_whole() -> bool {
    std::env::var("PODBAY_TEST_SOAK").is_ok_and(|value| value == "1")
}

/// Returns how often a loop kills something: as often as it says itself, at most a tenth of what
/// `just soak` does, in every other run.
pub fn n_kills(part: u32) -> u32 {
    debug_assert!(part <= N_KILLS / 10);
    let asked = std::env::var("PODBAY_TEST_KILLS")
        .ok()
        .and_then(|text| text.parse().ok());
    asked.unwrap_or(whole_or(N_KILLS, part))
}

/// Returns one number where nothing is left out, the other in every other run.
pub fn whole_or<T>(whole: T, part: T) -> T {
    if is_whole() { whole } else { part }
}

/// Keeps all items where nothing is left out, and one in `part`, at least one, in every other run.
/// Which ones the seed says.
pub fn sample<T>(items: impl IntoIterator<Item = T>, part: usize) -> Vec<T> {
    let mut items: Vec<T> = items.into_iter().collect();
    if is_whole() {
        return items;
    }
    let mut random = Random::seeded();
    let (mut left, mut wanted) = (items.len() as u64, items.len().div_ceil(part) as u64);
    items.retain(|_| {
        let is_taken = random.below(left) < wanted;
        left -= 1;
        wanted -= u64::from(is_taken);
        is_taken
    });
    items
}

/// Numbers that look random and are the same for the same seed.
pub struct Random(u64);

impl Random {
    /// Begins with the seed of this run, and says which that is: the test harness shows it with a
    /// test that fails.
    #[expect(clippy::print_stderr, reason = "whoever repeats a failure needs it")]
    pub fn seeded() -> Self {
        static SEED: OnceLock<u64> = OnceLock::new();
        let seed = *SEED.get_or_init(|| {
            let asked = std::env::var("PODBAY_TEST_SEED")
                .ok()
                .and_then(|text| text.parse().ok());
            asked.unwrap_or_else(|| RandomState::new().hash_one(std::process::id()))
        });
        eprintln!("PODBAY_TEST_SEED={seed} takes the same sample again");
        Self(seed)
    }

    /// Returns a number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}
