//! The shortest host: launches a program once, prints what it says, and ends with proof.
//!
//! Started again with the same root it prints what is left of the recorded attempt, and runs
//! nothing.

use placement::{Launch, Placement};
use std::io::Write;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    placement::runner::enter(); // only for a single-file host
    let mut stdout = std::io::stdout();
    let host = Placement::open("state")?; // private root and receipts, 0700 on first use
    let launch = Launch::program("sh").args(["-c", "echo hello"]).write(".").key("ci-4711");
    let attempt = host.launch(launch)?;
    for chunk in attempt.output() {
        stdout.write_all(chunk?.bytes())?; // acknowledged when the next one is asked for
    }
    let end = attempt.finish()?; // exit observed, tree proven gone, home removed
    writeln!(stdout, "{end}")?; // exited 0; tree gone (cgroup); 12 evidence rows
    Ok(())
}
