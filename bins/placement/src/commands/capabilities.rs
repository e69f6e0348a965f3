//! `capabilities`: what was measured here.

use crate::context::Context;
use crate::exit_code;
use crate::failure::Failure;
use crate::progress::Awaiting;
use crate::render;
use placement::{Capabilities, Placement};

pub(crate) fn run(context: &Context) -> Result<u8, Failure> {
    let measured = measured(&context.open()?)?;
    if context.style().json {
        render::json(&measured)?;
        return Ok(exit_code::SUCCESS);
    }
    let mut rows = vec![["MECHANISM", "AVAILABLE", "DETAIL"].map(str::to_owned).to_vec()];
    for seen in &measured.report.mechanisms {
        rows.push(vec![seen.mechanism.to_string(), yes_no(seen.available), seen.worth()]);
    }
    render::table(&rows, context.style())?;
    let (scope, exit) = (measured.report.capability, measured.report.exit_observation);
    render::line(&format!("strongest scope: {scope}; exit observation: {exit}"))?;
    render::line(&format!("limits of a cgroup leaf: {}", limits(&measured)))?;
    Ok(exit_code::SUCCESS)
}

/// Measures.
pub(crate) fn measured(host: &Placement) -> Result<Capabilities, Failure> {
    let _awaited = Awaiting::start("measuring what can be contained here");
    Ok(host.capabilities()?)
}

/// Names what a leaf can be limited by.
pub(crate) fn limits(measured: &Capabilities) -> String {
    let names: Vec<_> = measured.report.controllers.iter().map(|it| it.label()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Says yes or no.
pub(crate) fn yes_no(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_owned()
}
