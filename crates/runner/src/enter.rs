//! How a process becomes a runner.

use crate::run::run;
use placement_process::{
    Signals, become_subreaper, close_all_but, new_session, set_non_dumpable, settle_signals,
    use_one_heap,
};
use placement_protocol::{LinkKind, Order, OrderReply, RUNNER_ARGUMENT};
use placement_transport::{Gate, Link, Stream};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time in which the order comes.
const ORDER: Duration = Duration::from_secs(10);

static ENTERED: AtomicBool = AtomicBool::new(false);

/// Says whether this process was started as a runner.
pub fn is_runner_process() -> bool {
    std::env::args_os().nth(1).is_some_and(|argument| argument == RUNNER_ARGUMENT)
}

/// Says whether [`enter`] was called in this process, so that it may be re-executed as a runner.
pub fn was_entered() -> bool {
    ENTERED.load(Ordering::Relaxed)
}

/// Becomes the runner of one attempt if this process was started as one; returns at once otherwise.
///
/// A host that is its own runner calls this before anything else: before threads, before files. In a
/// runner process it never returns.
pub fn enter() {
    ENTERED.store(true, Ordering::Relaxed);
    if is_runner_process() {
        let code = become_runner().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
        std::process::exit(i32::from(code != ExitCode::SUCCESS));
    }
}

/// Takes the order from descriptor 0 and carries it out; `None` where there is none to carry out.
fn become_runner() -> Option<()> {
    use_one_heap();
    close_all_but(&[]).ok()?;
    // Fails only where it leads a group already, as under a debugger; then it has one of its own.
    new_session().ok();
    let signals = settle_signals().ok()?;
    become_subreaper().ok()?;
    let stream = Stream::take_stdin().ok()?;
    let deadline = Instant::now() + ORDER;
    let mut port = Link::new(stream, LinkKind::HostPort);
    Gate::host_port().admit(&mut port, deadline).ok()?;
    let frame = port.receive(deadline).ok()?;
    let order = Order::from_frame(&frame).ok()?;
    drop(frame);
    carry_out(order, port, signals);
    Some(())
}

fn carry_out(order: Order, port: Link, signals: Signals) {
    match order {
        Order::Probe => {
            let report = placement_capability::measure();
            crate::finish::answer(port, &OrderReply::Probed(report));
        }
        Order::Launch(order) => {
            // Its memory holds the token; a failure only leaves it as readable as its user's files.
            set_non_dumpable().ok();
            run(*order, port, signals);
        }
    }
}
