//! What a host is opened with.

use crate::error::Error;
use crate::host::Placement;
use crate::runner_choice::{RunnerChoice, refuse_in_runner};
use camino::{Utf8Path, Utf8PathBuf};
use placement_contract::{Clock, Code, OwnerId, Refusal};
use placement_policy::Config;
use placement_runner::SystemClock;
use placement_service::{Service, ServiceConfig};
use std::sync::Arc;

/// Where short-lived files of children go unless the host says otherwise.
const TEMPORARY_BASE: &str = "/tmp";

/// Opens a host with other than the default settings.
///
/// Nothing is read from the environment: what a child shall see of it is given here by name.
#[derive(Debug, Clone)]
#[must_use]
pub struct Builder {
    root: Option<Utf8PathBuf>,
    owner: Option<String>,
    operators: Vec<String>,
    configuration: Config,
    search_path: Option<String>,
    environment: Vec<(String, String)>,
    temporary_base: Option<Utf8PathBuf>,
    runner: RunnerChoice,
    clock: Arc<dyn Clock>,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            root: None,
            owner: None,
            operators: Vec::new(),
            configuration: Config::default(),
            search_path: None,
            environment: Vec::new(),
            temporary_base: None,
            runner: RunnerChoice::default(),
            clock: Arc::new(SystemClock),
        }
    }

    /// Takes what a configuration file says, [`Config::decode`]; what is given to the builder by name
    /// counts before it, whichever comes first.
    pub fn configuration(mut self, configuration: Config) -> Self {
        self.configuration = configuration;
        self
    }

    /// Names the private root: receipts and homes lie below it. It is made 0700 on first use; a
    /// relative path is taken from the current directory.
    pub fn root(mut self, root: impl AsRef<Utf8Path>) -> Self {
        self.root = Some(root.as_ref().to_owned());
        self
    }

    /// Names the owner of the attempts; `local:` and the user id otherwise.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Names somebody who may settle uncertain attempts by a word, besides those of the configuration;
    /// only the user who owns the root may where nobody is named.
    pub fn operator(mut self, operator: impl Into<String>) -> Self {
        self.operators.push(operator.into());
        self
    }

    /// Sets where programs are searched, which is also the PATH of every child;
    /// `/usr/local/bin:/usr/bin:/bin` otherwise.
    pub fn search_path(mut self, path: impl Into<String>) -> Self {
        self.search_path = Some(path.into());
        self
    }

    /// Offers a value of the host's environment; it reaches children if the launch policy lets its
    /// name through, as the built-in one does for LANG, USER, TZ and the like.
    pub fn pass_environment(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Sets below which directory children get their TMPDIR; `/tmp` otherwise.
    pub fn temporary_base(mut self, directory: impl AsRef<Utf8Path>) -> Self {
        self.temporary_base = Some(directory.as_ref().to_owned());
        self
    }

    /// Names the runner program; `placement-runner` beside the host otherwise, and the host itself
    /// where that is missing.
    pub fn runner_at(mut self, path: impl AsRef<Utf8Path>) -> Self {
        self.runner = RunnerChoice::At(path.as_ref().to_owned());
        self
    }

    /// Takes the host itself as the runner, whatever lies beside it; needs
    /// [`enter`](crate::runner::enter).
    pub fn runner_itself(mut self) -> Self {
        self.runner = RunnerChoice::Itself;
        self
    }

    /// Replaces the wall clock, which is for display and records only.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Opens the host; makes the root and the store on first use.
    ///
    /// # Errors
    /// INVALID for a missing root, a bad owner, a missing runner program or a default policy that is
    /// not defined, UNSUPPORTED for a configuration that asks for more than this version has, CONFLICT
    /// in a process that was started as a runner and for a root of another machine, STORAGE where the
    /// root cannot be used.
    pub fn open(self) -> Result<Placement, Error> {
        refuse_in_runner()?;
        let host = self.configuration.host.clone();
        let owner = match &self.owner {
            Some(owner) => named("owner", owner)?,
            None => host.owner.unwrap_or_else(local_owner),
        };
        let operators = self.operators.iter().map(|operator| named("operator", operator));
        let operators: Vec<OwnerId> = operators.collect::<Result<_, _>>()?;
        let mut snapshot = self.configuration.snapshot()?.with_environment(self.environment);
        let operators = operators.into_iter().chain(host.operators);
        snapshot = snapshot.with_operators(operators);
        if let Some(path) = self.search_path {
            snapshot = snapshot.with_search_path(path);
        }
        let base = self.temporary_base.or(host.temporary_base);
        let config = ServiceConfig {
            root: absolute_root(self.root.or(host.root))?,
            owner,
            snapshot,
            runner: self.runner.command()?,
            clock: Arc::clone(&self.clock),
            temporary_base: Some(base.unwrap_or_else(|| Utf8PathBuf::from(TEMPORARY_BASE))),
        };
        Ok(Placement::new(Service::open(config)?, self.clock))
    }
}

fn named(role: &str, text: &str) -> Result<OwnerId, Refusal> {
    OwnerId::parse(text).map_err(|rule| Refusal::new(Code::Invalid, format!("the {role} {rule}")))
}

fn absolute_root(root: Option<Utf8PathBuf>) -> Result<Utf8PathBuf, Refusal> {
    let Some(root) = root else {
        return Err(Refusal::new(Code::Invalid, "no root is named")
            .with_hint("name a private directory with root()"));
    };
    camino::absolute_utf8(&root).map_err(|_| {
        Refusal::new(Code::Invalid, "the root is empty or the current directory is gone")
            .with_hint("name the root by an absolute path")
    })
}

/// The owner named after the effective user id.
fn local_owner() -> OwnerId {
    let user = rustix::process::geteuid().as_raw();
    OwnerId::parse(&format!("local:{user}")).expect("a short ASCII text is an id")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_a_root_is_refused() {
        let error = Builder::new().open().unwrap_err();
        assert_eq!(error.code(), Code::Invalid);
        assert!(error.to_string().contains("no root"), "{error}");
    }

    #[test]
    fn a_bad_owner_is_refused() {
        let error = Builder::new().root("/tmp/x").owner("").open().unwrap_err();
        assert!(error.to_string().contains("the owner must not be empty"), "{error}");
    }

    #[test]
    fn the_owner_is_the_user() {
        assert!(local_owner().as_str().starts_with("local:"));
    }
}
