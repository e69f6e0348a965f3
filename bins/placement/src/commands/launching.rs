//! The launch that the options of `run`, `start` and `window` describe.

use crate::args::{LaunchArgs, MechanismName, Scope, StopOrKeep};
use crate::failure::Failure;
use crate::progress::Awaiting;
use crate::signals::Signals;
use camino::Utf8PathBuf;
use placement::{AttemptHandle, CleanupScope, Launch, Leftovers, Mechanism, OnHostLoss, Placement};
use std::ops::ControlFlow;

/// Refuses what this version knows by name and does not offer.
pub(crate) fn refuse_later(arguments: &LaunchArgs) -> Result<(), Failure> {
    if let Some(option) = arguments.later.given() {
        return Err(Failure::unsupported(option));
    }
    Ok(())
}

/// Describes the launch; the input is the caller's to add.
pub(crate) fn launch(arguments: &LaunchArgs, default: OnHostLoss) -> Result<Launch, Failure> {
    let mut words = arguments.program.iter().cloned();
    let program = words.next().ok_or_else(|| Failure::invalid("no program is named"))?;
    let directory = match &arguments.cwd {
        Some(directory) => directory.clone(),
        None => current_directory()?,
    };
    let mut launch = Launch::program(program).args(words).cwd(&directory);
    if arguments.write.is_empty() {
        launch = launch.write(&directory);
    }
    for written in &arguments.write {
        launch = launch.write(written);
    }
    for read in &arguments.read {
        launch = launch.read(read);
    }
    for pair in &arguments.env {
        let (name, value) = pair.split_once('=').ok_or_else(|| {
            Failure::invalid(format!("--env {pair} has no value; write NAME=VALUE"))
        })?;
        launch = launch.env(name, value);
    }
    launch = launch.on_host_loss(arguments.on_host_loss.map_or(default, |rule| match rule {
        StopOrKeep::Stop => OnHostLoss::Stop,
        StopOrKeep::Keep => OnHostLoss::Keep,
    }));
    launch = launch.leftovers(match arguments.leftovers {
        StopOrKeep::Stop => Leftovers::Stop,
        StopOrKeep::Keep => Leftovers::Keep,
    });
    if let Some(key) = &arguments.key {
        launch = launch.key(key);
    }
    if let Some(policy) = &arguments.policy {
        launch = launch.policy(policy);
    }
    if let Some(session) = &arguments.session {
        launch = launch.session(session);
    }
    if let Some(patience) = arguments.wait_session {
        launch = launch.wait_session(patience);
    }
    if let Some(scope) = arguments.require {
        launch = launch.require(match scope {
            Scope::DirectProcess => CleanupScope::DirectProcess,
            Scope::ProcessGroup => CleanupScope::ProcessGroup,
            Scope::ContainedTree => CleanupScope::ContainedTree,
        });
    }
    if let Some(mechanism) = arguments.mechanism {
        launch = launch.mechanism(match mechanism {
            MechanismName::Cgroup => Mechanism::Cgroup,
            MechanismName::Subreaper => Mechanism::Subreaper,
            MechanismName::PidNamespace => Mechanism::PidNamespace,
        });
    }
    if let Some(bytes) = arguments.memory {
        launch = launch.memory_bytes(bytes);
    }
    if let Some(pids) = arguments.pids {
        launch = launch.pids(pids);
    }
    if let Some(millis) = arguments.cpu {
        launch = launch.cpu_millis(millis);
    }
    if let Some(deadline) = arguments.timeout {
        launch = launch.deadline(deadline);
    }
    if let Some(grace) = arguments.grace {
        launch = launch.grace(grace);
    }
    if arguments.keep_home {
        launch = launch.keep_home();
    }
    if arguments.no_transcript {
        launch = launch.no_transcript();
    }
    Ok(launch)
}

/// Launches; says on a terminal what is awaited, and waits for no session once a signal came.
pub(crate) fn begin(
    host: &Placement,
    launch: &Launch,
    signals: Option<&Signals>,
) -> Result<AttemptHandle, Failure> {
    let mut awaited = Some(Awaiting::start("waiting for the program to start"));
    let mut holder = None;
    let mut interrupted = false;
    let launched = host.launch_waiting(launch, |held| {
        if holder.as_ref() != Some(held) {
            // The former line is not said any more before this one is begun.
            drop(awaited.take());
            awaited = Some(Awaiting::start(format!("waiting: {held}")));
            holder = Some(held.clone());
        }
        interrupted = signals.is_some_and(Signals::came);
        if interrupted { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    drop(awaited);
    match launched {
        Err(_) if interrupted => Err(Failure::Interrupted),
        launched => Ok(launched?),
    }
}

/// Says that nothing was launched now, and what is followed instead.
pub(crate) fn replayed(attempt: &AttemptHandle) -> Result<String, Failure> {
    let id = attempt.id();
    Ok(if attempt.is_pruned()? {
        format!("replayed: the recorded attempt {id} was pruned; nothing runs, its output is gone")
    } else {
        format!("replayed: following the recorded attempt {id}")
    })
}

fn current_directory() -> Result<Utf8PathBuf, Failure> {
    let path = std::env::current_dir()
        .map_err(|_| Failure::invalid("the current directory is gone; name another with --cwd"))?;
    Utf8PathBuf::from_path_buf(path).map_err(|_| {
        Failure::invalid("the current directory is not UTF-8; name another with --cwd")
    })
}
