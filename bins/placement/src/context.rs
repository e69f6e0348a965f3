//! What the environment and the global options say; the only place that reads the environment.

use crate::args::Cli;
use crate::configured::{ConfigFile, Configured};
use camino::{Utf8Path, Utf8PathBuf};
use placement::{Code, Config, OwnerId, Placement, Refusal};

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
    config: Option<Utf8PathBuf>,
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
            config: cli.config.clone(),
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

    /// Reads the configuration file.
    pub(crate) fn configured(&self) -> Result<Configured, Refusal> {
        self.config_file().read()
    }

    /// Names the root.
    pub(crate) fn root(&self) -> Result<Utf8PathBuf, Refusal> {
        match self.effective(self.configured()?.config)?.host.root {
            Some(root) => Ok(root),
            None => self.usual_root(),
        }
    }

    /// Opens the root.
    pub(crate) fn open(&self) -> Result<Placement, Refusal> {
        self.open_as(&self.effective(self.configured()?.config)?)
    }

    /// Opens the root that a configuration names, after [`Context::effective`].
    pub(crate) fn open_as(&self, config: &Config) -> Result<Placement, Refusal> {
        let mut builder = Placement::builder().configuration(config.clone()).runner_itself();
        for (name, value) in &self.environment {
            builder = builder.pass_environment(name, value);
        }
        builder.open().map_err(Refusal::from)
    }

    /// Completes a configuration: an option counts before the file, the file before the environment.
    pub(crate) fn effective(&self, mut config: Config) -> Result<Config, Refusal> {
        let host = &mut config.host;
        host.root = Some(match self.root.as_ref().or(host.root.as_ref()) {
            Some(root) => root.clone(),
            None => self.usual_root()?,
        });
        if let Some(owner) = &self.owner {
            let owner = OwnerId::parse(owner)
                .map_err(|rule| Refusal::new(Code::Invalid, format!("the owner {rule}")))?;
            host.owner = Some(owner);
        }
        if host.search_path.is_none() {
            host.search_path = self.value("PATH").map(str::to_owned);
        }
        if host.temporary_base.is_none() {
            host.temporary_base = self.temporary_base().map(Utf8Path::to_owned);
        }
        Ok(config)
    }

    fn config_file(&self) -> ConfigFile {
        if let Some(named) = &self.config {
            return ConfigFile::Named(named.clone());
        }
        match self.usual("XDG_CONFIG_HOME", ".config") {
            Some(directory) => ConfigFile::Usual(directory.join("config.toml")),
            None => ConfigFile::Nowhere,
        }
    }

    fn usual_root(&self) -> Result<Utf8PathBuf, Refusal> {
        self.usual("XDG_STATE_HOME", ".local/state").ok_or_else(|| {
            let message = "no root is named and HOME is not set to an absolute path";
            Refusal::new(Code::Invalid, message).with_hint("name one with --root DIR")
        })
    }

    /// The directory of this program in one of the user's base directories.
    fn usual(&self, variable: &str, below_home: &str) -> Option<Utf8PathBuf> {
        let named = self.value(variable).map(Utf8Path::new).filter(|path| path.is_absolute());
        let home = || self.user_home().filter(|home| home.is_absolute());
        let base = named.map(Utf8Path::to_owned).or_else(|| Some(home()?.join(below_home)))?;
        Some(base.join("placement"))
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
