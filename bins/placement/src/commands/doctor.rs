//! `doctor`: what is missing here and how to get it.

use super::capabilities::{limits, measured, yes_no};
use super::health::{findings, in_words};
use crate::configured::Configured;
use crate::context::Context;
use crate::exit_code;
use crate::failure::{Failure, say_refusal};
use crate::render;
use camino::{Utf8Path, Utf8PathBuf};
use placement::{
    Capabilities, CleanupScope, Config, Controller, EnvironmentName, Mechanism, OwnerId, Placement,
    PolicyRef, StoreCheck,
};
use serde::Serialize;

pub(crate) fn run(context: &Context) -> Result<u8, Failure> {
    let Configured { file, config } = context.configured()?;
    let config = context.effective(config)?;
    let host = context.open_as(&config)?;
    let measured = measured(&host)?;
    let store = host.check_store()?;
    let code = if store.is_sound() { exit_code::SUCCESS } else { exit_code::FINDINGS };
    if context.style().json {
        say_all(&store, context);
        let configuration_file = file;
        render::json(&Findings { measured, store, configuration_file, configuration: config })?;
        return Ok(code);
    }
    let strongest = measured.report.capability;
    let has_tree = strongest == CleanupScope::ContainedTree;
    let mut rows = vec![vec![
        "contained_tree".to_owned(),
        yes_no(has_tree),
        match measured.report.mechanism {
            Some(mechanism) => format!("by {}", render::mechanism(mechanism)),
            None => format!("{strongest} is the strongest here"),
        },
    ]];
    for seen in &measured.report.mechanisms {
        rows.push(vec![format!("  {}", seen.mechanism), yes_no(seen.available), seen.worth()]);
    }
    let limited = yes_no(!measured.report.controllers.is_empty());
    rows.push(vec!["limits".to_owned(), limited, limits(&measured)]);
    rows.push(vec!["store".to_owned(), yes_no(store.is_sound()), in_words(&store).to_owned()]);
    let plain = crate::context::Style { no_color: true, ..context.style() };
    render::table(&rows, plain)?;
    render::line("")?;
    render::line(&format!("Survival: {}.", measured.survives_host.detail))?;
    for text in advice(&measured) {
        render::line("")?;
        render::line(text)?;
    }
    render::line("")?;
    render::table(&in_effect(file.as_deref(), &config, &host), plain)?;
    say_all(&store, context);
    Ok(code)
}

/// Says what is wrong with the store.
fn say_all(store: &StoreCheck, context: &Context) {
    for finding in findings(store) {
        say_refusal(&finding, context.style());
    }
}

/// What the doctor says in JSON.
#[derive(Serialize)]
struct Findings {
    #[serde(flatten)]
    measured: Capabilities,
    store: StoreCheck,
    configuration_file: Option<Utf8PathBuf>,
    configuration: Config,
}

/// Lists the configuration in effect: options, then the file, then the environment.
fn in_effect(file: Option<&Utf8Path>, config: &Config, host: &Placement) -> Vec<Vec<String>> {
    let or = |text: Option<&str>, otherwise: &str| text.unwrap_or(otherwise).to_owned();
    let all = |names: Vec<&str>, otherwise: &str| match names.as_slice() {
        [] => otherwise.to_owned(),
        names => names.join(", "),
    };
    let of_host = &config.host;
    let operators = of_host.operators.iter().map(OwnerId::as_str).collect();
    let policies = config.policies.keys().map(PolicyRef::as_str).collect();
    let pass = config.environment.pass.iter().map(EnvironmentName::as_str).collect();
    let mut rows = vec![
        ("configuration", or(file.map(Utf8Path::as_str), "no file")),
        ("  root", or(of_host.root.as_deref().map(Utf8Path::as_str), "")),
        ("  owner", host.owner().to_string()),
        ("  operators", all(operators, "the user who owns the root")),
        ("  search path", host.search_path()),
        ("  temporary base", or(of_host.temporary_base.as_deref().map(Utf8Path::as_str), "/tmp")),
        ("  default policy", host.default_policy().to_string()),
        ("  policies", all(policies, "the built-in one only")),
        ("  environment", all(pass, "what the launch policy passes")),
    ];
    let listed = &config.resources.admitted;
    if listed.is_empty() {
        rows.push(("  directories", "any that a launch names".to_owned()));
    }
    rows.extend(
        listed.iter().map(|root| ("  directory", format!("{} ({})", root.directory, root.access))),
    );
    rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect()
}

/// Says what gets more than was measured.
fn advice(measured: &Capabilities) -> Vec<&'static str> {
    let available =
        |mechanism| measured.report.of(mechanism).is_some_and(|report| report.available);
    let mut advice = Vec::new();
    if !available(Mechanism::Cgroup) {
        advice.push(
            "A cgroup leaf needs a writable cgroup2 subtree that this process sits in. With systemd:\n  \
             systemd-run --user --scope -p Delegate=yes placement doctor\n\
             Without it a runner that is killed with SIGKILL takes the proof of its tree along.",
        );
    }
    if !available(Mechanism::Subreaper) {
        advice.push(
            "The subreaper needs a kernel with PR_SET_CHILD_SUBREAPER and /proc/PID/task/TID/children, \
             and a /proc that shows every process: mount it without hidepid and subset.",
        );
    }
    if measured.report.controllers.len() < Controller::ALL.len() {
        advice.push(
            "Limits (--memory, --pids, --cpu) need their controllers in the cgroup.subtree_control of \
             the group that this process sits in. The kernel gives controllers only to the leaves of \
             a group without processes of its own, or of the hierarchy's root; controllers that are \
             mounted as cgroup v1 are not there at all.",
        );
    }
    if !available(Mechanism::PidNamespace) {
        advice.push(
            "A PID namespace (--mechanism pid_namespace) needs root or unprivileged user namespaces. \
             ENOSPC: raise\n  sysctl user.max_user_namespaces user.max_pid_namespaces\n\
             EPERM or EACCES: a container's filter, or AppArmor where\n  \
             sysctl kernel.apparmor_restrict_unprivileged_userns\nis 1. A container that hides parts \
             of /proc lets nobody mount another one.",
        );
    }
    if measured.report.capability != CleanupScope::ContainedTree {
        advice.push(
            "Launches get what was measured; a process that starts a session of its own can escape \
             the cleanup, and is reported where it is seen.",
        );
    }
    advice
}
