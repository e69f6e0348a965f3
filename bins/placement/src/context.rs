//! What the environment and the global options say; the only place that reads the environment.

use crate::args::Cli;
use camino::{Utf8Path, Utf8PathBuf};
use placement::{Code, Placement, Refusal};

/// How answers are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    /// JSON instead of text.
    pub(crate) json: bool,
    /// More on stderr.
    pub(crate) verbose: bool,
    /// Whether `NO_COLOR` was set to something.
    pub(crate) no_color: bool,
}

/// Where and for whom the binary works.
#[derive(Debug)]
pub(crate) struct Context {
    root: Option<Utf8PathBuf>,
    owner: Option<String>,
    style: Style,
    environment: Vec<(String, String)>,
}

impl Context {
    /// Reads the environment once; values that are not UTF-8 are as if not set.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
    pub(crate) fn read(cli: &Cli) -> Self {
        let environment: Vec<(String, String)> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let no_color =
            environment.iter().any(|(name, value)| name == "NO_COLOR" && !value.is_empty());
        Self {
            root: cli.root.clone(),
            owner: cli.owner.clone(),
            style: Style { json: cli.json, verbose: cli.verbose, no_color },
            environment,
        }
    }

    /// Returns how answers are shown.
    pub(crate) const fn style(&self) -> Style {
        self.style
    }

    /// Returns the user's own home, if it is said.
    pub(crate) fn user_home(&self) -> Option<&Utf8Path> {
        self.value("HOME").map(Utf8Path::new)
    }

    /// Returns the search path of the caller, if it is said.
    pub(crate) fn search_path(&self) -> Option<&str> {
        self.value("PATH")
    }

    /// Opens the root.
    pub(crate) fn open(&self) -> Result<Placement, Refusal> {
        let mut builder = Placement::builder().root(self.root_directory()?).runner_itself();
        if let Some(owner) = &self.owner {
            builder = builder.owner(owner);
        }
        if let Some(path) = self.search_path() {
            builder = builder.search_path(path);
        }
        if let Some(base) = self.temporary_base() {
            builder = builder.temporary_base(base);
        }
        for (name, value) in &self.environment {
            builder = builder.pass_environment(name, value);
        }
        builder.open().map_err(Refusal::from)
    }

    fn root_directory(&self) -> Result<Utf8PathBuf, Refusal> {
        if let Some(root) = &self.root {
            return Ok(root.clone());
        }
        if let Some(state) = self.value("XDG_STATE_HOME").filter(|path| path.starts_with('/')) {
            return Ok(Utf8Path::new(state).join("placement"));
        }
        match self.user_home() {
            Some(home) if home.is_absolute() => Ok(home.join(".local/state/placement")),
            Some(_) | None => {
                let message = "no root is named and HOME is not set to an absolute path";
                Err(Refusal::new(Code::Invalid, message).with_hint("name one with --root DIR"))
            }
        }
    }

    /// The caller's TMPDIR, unless it goes when the user logs out.
    fn temporary_base(&self) -> Option<&Utf8Path> {
        let base = Utf8Path::new(self.value("TMPDIR")?);
        let volatile = self.value("XDG_RUNTIME_DIR").is_some_and(|run| base.starts_with(run));
        (base.is_absolute() && base.is_dir() && !volatile).then_some(base)
    }

    fn value(&self, name: &str) -> Option<&str> {
        let found = self.environment.iter().find(|(known, _)| known == name)?;
        Some(found.1.as_str()).filter(|value| !value.is_empty())
    }
}
