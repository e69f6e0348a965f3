//! What fuzzing feeds: one function for each decoder, for the fuzzer and for the tests alike.
//!
//! **Owns** the [`TARGETS`]: each takes any bytes, hands them to a decoder of placement and panics
//! where something does not hold that must: an accepted value is written and read again as the same
//! one, a refusal has a code of the list and is bounded, nothing changes for what was read before.
//! [`ALLOCATED_MAX`] is what all of them may set aside. **Never** looks for inputs itself: `cargo
//! xtask fuzz` does, with libFuzzer, and keeps them in `fixtures/corpora`; the tests of this crate
//! replay those. **Limits**: Linux; failures panic, since that is what a fuzzer looks for.
//!
//! [`PLANTED`] are decoders with a fault, by which a campaign shows that it finds one.
//!
//! ```
//! let names = placement_fuzz::target("names").expect("it is one of the targets");
//! names.feed(b"any bytes");
//! ```

mod cgroup;
mod config;
mod configuration;
mod contract;
mod exact;
mod exit_record;
mod frames;
mod input;
mod log;
mod messages;
mod names;
mod planted;
mod process_table;
mod program;
mod rows;
mod stored;

use std::fmt;

/// What may be set aside at once, in bytes, whatever the input: well above the largest order, the
/// largest exit record and the cache of a store, and far below what a length of 32 bits can ask for.
pub const ALLOCATED_MAX: usize = 256 * 1024 * 1024;

/// The largest input, in bytes: a record of a log and some more.
pub const INPUT_BYTES_MAX: usize = 128 * 1024;

/// One decoder as it is fed.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name, also that of its folder in `fixtures/corpora`.
    pub name: &'static str,
    run: fn(&[u8]),
    seeds: fn() -> Vec<Vec<u8>>,
}

/// Every decoder that takes bytes which placement did not write in the same process.
pub const TARGETS: &[Target] = &[
    Target { name: "cgroup", run: cgroup::run, seeds: cgroup::seeds },
    Target { name: "config", run: config::run, seeds: config::seeds },
    Target { name: "configuration", run: configuration::run, seeds: configuration::seeds },
    Target { name: "contract", run: contract::run, seeds: contract::seeds },
    Target { name: "exit_record", run: exit_record::run, seeds: exit_record::seeds },
    Target { name: "frames", run: frames::run, seeds: frames::seeds },
    Target { name: "log", run: log::run, seeds: log::seeds },
    Target { name: "messages", run: messages::run, seeds: messages::seeds },
    Target { name: "names", run: names::run, seeds: names::seeds },
    Target { name: "process_table", run: process_table::run, seeds: process_table::seeds },
    Target { name: "program", run: program::run, seeds: program::seeds },
    Target { name: "rows", run: rows::run, seeds: rows::seeds },
];

/// Decoders with one fault each: what a campaign must find, or it shows nothing.
pub const PLANTED: &[Target] = &[
    Target { name: "planted_panic", run: planted::panics, seeds: planted::seeds },
    Target { name: "planted_change", run: planted::changes, seeds: planted::seeds },
    Target { name: "planted_hang", run: planted::hangs, seeds: planted::seeds },
    Target { name: "planted_memory", run: planted::swells, seeds: planted::seeds },
];

impl Target {
    /// Feeds any bytes; what is beyond [`INPUT_BYTES_MAX`] is left out.
    ///
    /// # Panics
    /// Where something does not hold that must.
    pub fn feed(&self, bytes: &[u8]) {
        (self.run)(&bytes[..bytes.len().min(INPUT_BYTES_MAX)]);
    }

    /// Returns inputs of the decoder's own writing, from which a fuzzer may start.
    pub fn seeds(&self) -> Vec<Vec<u8>> {
        (self.seeds)()
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Target").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Finds a target, planted ones included, by its name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().chain(PLANTED).find(|target| target.name == name)
}
