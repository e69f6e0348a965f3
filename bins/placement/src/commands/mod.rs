//! One command per file; each returns the exit code.

mod adopt_root;
mod attach;
mod capabilities;
mod close_stdin;
mod completions;
mod doctor;
mod evidence;
mod follow;
mod health;
mod launching;
mod logs;
mod man;
mod measure;
mod prune;
mod ps;
mod resolve;
mod room;
mod run;
mod selection;
mod settle;
mod show;
mod shown;
mod sink;
mod start;
mod stdin;
mod stop;
mod sweep;
mod verify;
mod wait;
mod window;

use crate::args::{Command, Settled};
use crate::context::Context;
use crate::failure::Failure;

/// Does what was asked.
pub(crate) fn run(command: Command, context: &Context) -> Result<u8, Failure> {
    match command {
        Command::Run(launch) => run::run(&launch, context),
        Command::Start(launch) => start::run(&launch, context),
        Command::Window(launch) => window::run(&launch, context),
        Command::Wait { attempts } => wait::run(&attempts, context),
        Command::Attach { attempt, observe: true, .. } => attach::observe(&attempt, context),
        Command::Attach { attempt, observe: false, input } => {
            attach::take_over(&attempt, input, context)
        }
        Command::Stop { attempts, all, force } => stop::run(&attempts, all, force, context),
        Command::CloseStdin { attempt } => close_stdin::run(&attempt, context),
        Command::Cleanup(selection) => settle::cleanup(&selection, context),
        Command::Reconcile(selection) => settle::reconcile(&selection, context),
        Command::Resolve { attempt, operator, state: Settled::Exited, reason } => {
            resolve::run(&attempt, operator, &reason, context)
        }
        Command::Prune { older_than } => prune::run(older_than, context),
        Command::Sweep { watch: false, .. } => sweep::once(context),
        Command::Sweep { watch: true, every } => sweep::watch(every, context),
        Command::AdoptRoot => adopt_root::run(context),
        Command::Ps { all } => ps::run(all, context),
        Command::Show { attempt } => show::run(&attempt, context),
        Command::Evidence { attempt, after, limit, timeline } => {
            evidence::run(&attempt, after, limit, timeline, context)
        }
        Command::Logs { attempt, follow, stream } => logs::run(&attempt, follow, stream, context),
        Command::Verify { selection, head } => verify::run(&selection, head.as_deref(), context),
        Command::Measure { path } => measure::run(&path, context),
        Command::Capabilities => capabilities::run(context),
        Command::Doctor => doctor::run(context),
        Command::Completions { shell } => completions::run(shell),
        Command::Man { command } => man::run(command.as_deref()),
        Command::Later(later) => Err(Failure::unsupported_command(later.name())),
    }
}
