//! Seeded interleavings of hosts, runners, faults and the clock over one real store, and the truth
//! about every attempt beside them: what is recorded must never say more than is true.
//!
//! A step is one operation of one host, or one step of one runner. While a host is at work, another
//! one may act at any of its points, and it may end there. After every step everything that must
//! hold is looked at. A seed repeats a life; `cargo xtask simulate --seed N` shows it.
//!
//! Reading order: `life`, `steps`, `operations`, `runners`, `runner`, `judge`, `bed`, `processes`.

mod bed;
mod judge;
mod life;
mod operations;
mod processes;
mod runner;
mod runners;
mod steps;

use life::{Lie, Life, live};

/// Seeds that every run of the tests lives through.
const SEEDS: std::ops::Range<u64> = 0..48;
/// Seeds within which each lie must be found.
const LIED_TO: u64 = 100;

/// Lives through seeds on as many threads as there are processors, and tells the first that breaks a
/// rule.
fn live_through(seeds: impl IntoIterator<Item = u64>) {
    let seeds: Vec<u64> = seeds.into_iter().collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(4);
    let next = std::sync::atomic::AtomicUsize::new(0);
    let broken = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let Some(seed) = seeds.get(at) else { return };
                    let life = live(*seed, Lie::None);
                    if life.broken.is_some() {
                        broken.lock().unwrap().push(life);
                    }
                }
            });
        }
    });
    let mut broken = broken.into_inner().unwrap();
    broken.sort_by_key(|life: &Life| life.seed);
    if let Some(life) = broken.first() {
        panic!("{} of {} seeds break a rule; the first:\n{life}", broken.len(), seeds.len());
    }
    println!("simulation: {} seeds, no rule broken", seeds.len());
}

/// The seeds that `cargo xtask simulate` asks for, as `FIRST..END`.
#[expect(clippy::disallowed_methods, reason = "a campaign asks for more seeds than a test run has")]
fn asked_for() -> Option<std::ops::Range<u64>> {
    let asked = std::env::var("PLACEMENT_SIMULATE").ok()?;
    let (first, end) = asked.split_once("..").expect("FIRST..END");
    Some(first.parse().expect("a number")..end.parse().expect("a number"))
}

#[test]
fn no_interleaving_breaks_a_rule() {
    let asked = asked_for();
    if let Some(seeds) = &asked
        && seeds.end - seeds.start == 1
    {
        println!("{}", live(seeds.start, Lie::None));
    }
    live_through(asked.unwrap_or(SEEDS));
}

#[test]
fn a_seed_repeats_its_life() {
    for seed in [3, 1_000_003] {
        let (first, again) = (live(seed, Lie::None), live(seed, Lie::None));
        assert_eq!(first.trace, again.trace, "seed {seed}");
        assert!(first.trace.len() > 40, "{first}");
    }
}

/// A lie that no rule notices would show that the rules see nothing.
fn finds(lie: Lie, rule: &str) {
    let broken = |seed: &u64| live(*seed, lie).broken.is_some_and(|it| it.contains(rule));
    let found = (0..LIED_TO).find(broken);
    println!("{lie:?}: found by seed {found:?}");
    assert!(found.is_some(), "{lie:?} breaks no rule about {rule} in {LIED_TO} seeds");
}

#[test]
fn a_second_claim_is_noticed() {
    finds(Lie::SecondClaim, "claimed");
}

#[test]
fn a_tree_that_is_called_gone_and_lives_is_noticed() {
    finds(Lie::TreeGone, "tree");
}

#[test]
fn output_that_comes_again_is_noticed() {
    finds(Lie::DeliveredAgain, "came again");
}

#[test]
fn a_stranger_that_is_ended_is_noticed() {
    finds(Lie::StrangerEnded, "stranger");
}
