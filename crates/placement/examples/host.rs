//! A host to be killed: launches a program, reads so many chunks, prints the attempt and waits.
//!
//! `host ROOT OWNER stop|keep CHUNKS PROGRAM [ARGUMENT…]`. The chunks go to standard output and are
//! acknowledged; then one line `attempt ID` goes to standard error, and the host waits for ever.
//! Started again with the same launch it takes over what the former one has left.

use placement::{Launch, OnHostLoss, Placement};
use std::io::Write;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    placement::runner::enter();
    let mut arguments = std::env::args().skip(1);
    let usage = "host ROOT OWNER stop|keep CHUNKS PROGRAM [ARGUMENT...]";
    let root = arguments.next().ok_or(usage)?;
    let owner = arguments.next().ok_or(usage)?;
    let rule = arguments.next().and_then(|rule| OnHostLoss::from_label(&rule)).ok_or(usage)?;
    let chunks: usize = arguments.next().ok_or(usage)?.parse()?;
    let program = arguments.next().ok_or(usage)?;

    let host = Placement::builder().root(&root).owner(owner).open()?;
    let launch = Launch::program(program).args(arguments).write(".").on_host_loss(rule);
    let key = format!("the one of {}", std::env::current_dir()?.display());
    let attempt = host.launch(launch.key(key))?;
    let mut output = attempt.output();
    for _ in 0..chunks {
        let Some(chunk) = output.next() else { break };
        std::io::stdout().write_all(chunk?.bytes())?;
    }
    output.acknowledge()?;
    std::io::stdout().flush()?;
    writeln!(std::io::stderr(), "attempt {}", attempt.id())?;
    loop {
        std::thread::park();
    }
}
