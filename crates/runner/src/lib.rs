#![doc = include_str!("../README.md")]

mod claim;
mod clock;
mod closing;
mod create;
mod desk;
mod drain;
mod enter;
mod finish;
mod input;
mod memory_spool;
mod output;
mod refused;
mod run;
mod runner;
mod scribe;
mod serve;
mod stop;
mod supervise;

pub use clock::SystemClock;
pub use enter::{enter, is_runner_process, was_entered};
