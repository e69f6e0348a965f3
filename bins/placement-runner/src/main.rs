//! The runner program that lies beside a host.
//!
//! A host starts it, with its order on descriptor 0, once for each attempt. It has no use by hand.

use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    placement_runner::enter();
    // Whoever closed stderr does not want to read this.
    writeln!(std::io::stderr(), "placement-runner: is started by a host of placement, not by hand")
        .ok();
    ExitCode::from(2)
}
