//! The runner of one attempt: claim, materialize, spawn, identify, publish, pump, exit, drain, finish.
//!
//! **Owns** one attempt's process: its child, its streams, its sockets, its evidence while it lives.
//! **Never** decides admission, and never lives longer than its attempt. **Limits**: Linux; one
//! attempt per process; what needs a living host (grants, secrets) is asked before there is a child.
//!
//! Two threads: the loop (`runner`) alone spawns, waits, polls and answers; the scribe alone touches
//! the store. A stalled store never stalls the loop.
//!
//! Reading order: `enter`, `run`, `claim`, `create`, `supervise`, `finish`, `refused`; then `runner`
//! (one turn of the loop), `serve`, `desk`, `output`, `memory_spool`, `input`, `closing`, `stop`, `drain`,
//! `plumbing`, `window`, `scribe`, `clock`.
//!
//! ```no_run
//! placement_runner::enter(); // never returns in a runner process
//! println!("this is the host");
//! ```

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
mod plumbing;
mod refused;
mod run;
mod runner;
mod scribe;
mod serve;
mod stop;
mod supervise;
mod window;

pub use clock::SystemClock;
pub use enter::{enter, is_runner_process, was_entered};
