//! What this version knows by name and refuses.

use clap::{Args, Subcommand};

/// Options that this version knows and refuses.
#[derive(Debug, Args)]
pub(crate) struct LaterOptions {
    #[arg(long, hide = true)]
    secret: Vec<String>,
    #[arg(long, hide = true)]
    worktree: bool,
    #[arg(long, hide = true)]
    confine: Option<String>,
    #[arg(long, hide = true)]
    wait_login: Option<String>,
}

impl LaterOptions {
    /// Returns the first option that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [
            ("--secret", !self.secret.is_empty()),
            ("--worktree", self.worktree),
            ("--confine", self.confine.is_some()),
            ("--wait-login", self.wait_login.is_some()),
        ];
        given.into_iter().find_map(|(name, is_given)| is_given.then_some(name))
    }
}

/// Commands that this version knows and refuses.
#[derive(Debug, Subcommand)]
pub(crate) enum LaterCommand {
    #[command(hide = true)]
    Turn(Anything),
    #[command(hide = true)]
    Profile(Anything),
    #[command(hide = true)]
    Locate(Anything),
}

impl LaterCommand {
    /// Returns the command's name.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Turn(_) => "turn",
            Self::Profile(_) => "profile",
            Self::Locate(_) => "locate",
        }
    }
}

/// Arguments that are not looked at.
#[derive(Debug, Args)]
pub(crate) struct Anything {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _arguments: Vec<String>,
}
