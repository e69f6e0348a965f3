//! Measuring what can be cleaned here, with a runner that is started for nothing else.

use crate::Service;
use crate::limits::PROBE;
use crate::refusal::{not_started, unavailable};
use crate::wait::wait_readable;
use placement_contract::{CapabilityReport, MechanismReport, Refusal};
use placement_process::{Started, spawn_runner};
use placement_protocol::{Hello, LinkKind, Order, OrderReply, RUNNER_ARGUMENT};
use placement_transport::{Link, Stream, open, pair};
use std::sync::PoisonError;
use std::time::Instant;

impl Service {
    /// Returns what was measured here; measures once per service, and again where something had run
    /// out.
    ///
    /// The measurement happens in a process of its own: the host never forks, and its children
    /// stay its own.
    ///
    /// # Errors
    /// UNAVAILABLE where the probe could not be started or did not answer within 10 seconds; the
    /// next call measures again.
    pub fn measured(&self) -> Result<CapabilityReport, Refusal> {
        let mut known = self.inner.capability.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(report) = &*known {
            return Ok(report.clone());
        }
        let report = self.measure()?;
        if !report.mechanisms.iter().any(MechanismReport::was_short) {
            *known = Some(report.clone());
        }
        Ok(report)
    }

    fn measure(&self) -> Result<CapabilityReport, Refusal> {
        let deadline = Instant::now() + PROBE;
        let (ours, theirs) = pair().map_err(|error| unavailable(error.to_string()))?;
        let mut runner = spawn_runner(self.inner.runner.program(), [RUNNER_ARGUMENT], theirs)
            .map_err(not_started)?;
        let answer = Stream::adopt(ours)
            .map_err(|error| unavailable(error.to_string()))
            .and_then(|stream| ask(&mut Link::new(stream, LinkKind::HostPort), deadline));
        end(&mut runner, deadline);
        answer
    }
}

fn ask(port: &mut Link, deadline: Instant) -> Result<CapabilityReport, Refusal> {
    let silent = || unavailable("the capability probe did not answer");
    open(port, &Hello::host_port(), deadline).map_err(|_| silent())?;
    let order = Order::Probe.to_frame().map_err(|_| silent())?;
    let frame = port.call(order, deadline).map_err(|_| silent())?;
    match OrderReply::from_frame(&frame) {
        Ok(OrderReply::Probed(report)) => Ok(report),
        Ok(OrderReply::Refused(refusal)) => Err(refusal),
        Ok(OrderReply::Started { .. }) | Err(_) => Err(silent()),
    }
}

/// Lets the probe end by itself until the deadline, then ends it; reaps it either way.
fn end(runner: &mut Started, deadline: Instant) {
    if !wait_readable(runner.pidfd(), Some(deadline)) {
        let kill = rustix::process::Signal::KILL;
        // It fails only when the probe has ended meanwhile.
        rustix::process::pidfd_send_signal(runner.pidfd(), kill).ok();
    }
    // Ended or killed, so this does not wait long; somebody else's reaping is as good.
    runner.wait().ok();
}
