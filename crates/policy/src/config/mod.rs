//! A host's configuration file: what its tables are, and how it is read.

mod error;
mod lines;

pub use error::ConfigError;

use crate::definitions::Definitions;
use crate::limits::{CONFIG_BYTES_MAX, LISTED_ROOTS_MAX, OPERATORS_MAX, SEARCH_PATH_BYTES_MAX};
use crate::snapshot::Snapshot;
use camino::{Utf8Path, Utf8PathBuf};
use lines::{Document, Syntax};
use placement_contract::definition::LaunchPolicy;
use placement_contract::limits::ENVIRONMENT_PASS_MAX;
use placement_contract::{
    Access, Code, EnvironmentName, OwnerId, PolicyRef, Refusal, decode_exactly,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a host's configuration file says; every table and every key may be missing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The host itself.
    pub host: HostTable,
    /// Directories that launches may use.
    pub resources: ResourcesTable,
    /// What of the host's environment reaches children.
    pub environment: EnvironmentTable,
    /// Launch policies by name; one of a name that is built in replaces it.
    pub policies: BTreeMap<PolicyRef, LaunchPolicy>,
}

/// `[host]`: where and for whom it works.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HostTable {
    /// The private root for receipts and homes, an absolute path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<Utf8PathBuf>,
    /// Who owns the attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<OwnerId>,
    /// Who may settle an attempt of which nothing can be proven, at most 64; the user who owns the
    /// root where nobody is named.
    pub operators: Vec<OwnerId>,
    /// Where programs are looked for, absolute directories between colons; the `PATH` of every
    /// child.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search_path: Option<String>,
    /// Below which directory children get their temporary one, an absolute path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temporary_base: Option<Utf8PathBuf>,
    /// The launch policy of who names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_policy: Option<PolicyRef>,
}

/// `[resources]`: directories that launches may use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ResourcesTable {
    /// Who grants them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<ResourceMode>,
    /// The directories that launches may use, and what is in them, at most 128; any where none is
    /// listed.
    pub admitted: Vec<AdmittedTable>,
}

/// Who grants directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceMode {
    /// An authority that is asked for every grant.
    Granted,
    /// The host, by its list.
    HostConfigured,
}

/// `[[resources.admitted]]`: one directory that the host admits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdmittedTable {
    /// The directory, an absolute path.
    pub directory: Utf8PathBuf,
    /// The most that a grant on it may allow.
    pub access: Access,
}

/// `[environment]`: what of the host's environment reaches children.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EnvironmentTable {
    /// Names that reach every child, besides those of its launch policy; at most 32.
    pub pass: Vec<EnvironmentName>,
}

impl Config {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// [`ConfigError`] names the key, its line and the rule that it breaks, never its value.
    pub fn decode(text: &str) -> Result<Self, ConfigError> {
        if text.len() > CONFIG_BYTES_MAX {
            return Err(ConfigError::of_file(None, "is larger than 1 MiB"));
        }
        let document = Document::parse(text)
            .map_err(|Syntax { line, rule }| ConfigError::of_file(line, rule))?;
        let bytes = document
            .to_json()
            .map_err(|key| ConfigError::at(&document, &key, "must not be a date or a time"))?;
        // A value of TOML is at most six times as long in JSON, by its escapes.
        let config: Self = decode_exactly("configuration", &bytes, CONFIG_BYTES_MAX * 8)
            .map_err(|error| ConfigError::at(&document, &error.field, &error.rule))?;
        config.check().map_err(|(key, rule)| ConfigError::at(&document, &key, &rule))?;
        Ok(config)
    }

    /// Makes the snapshot that launches are held against: built-in definitions, the policies of the
    /// file, its roots and its search path. Values of the environment are given to it afterwards.
    ///
    /// # Errors
    /// INVALID for a default policy that is not defined; UNSUPPORTED, by the name of the key, for an
    /// authority that grants directories and for what a policy says of drivers, homes and gateways.
    pub fn snapshot(&self) -> Result<Snapshot, Refusal> {
        if self.resources.mode == Some(ResourceMode::Granted) {
            let message = "resources.mode: granted is not offered by this version";
            return Err(Refusal::new(Code::Unsupported, message)
                .with_hint("write host_configured, and list the directories"));
        }
        for (name, policy) in &self.policies {
            if let Some(key) = of_later(policy) {
                let message = format!("policies.{name}.{key}: is not offered by this version");
                return Err(Refusal::new(Code::Unsupported, message).with_hint("leave the key out"));
            }
        }
        let mut definitions = Definitions::embedded();
        definitions.policies.extend(self.policies.clone());
        if let Some(name) = &self.host.default_policy {
            definitions.default_policy = name.clone();
        }
        let mut snapshot = Snapshot::new(definitions)?
            .with_operators(self.host.operators.iter().cloned())
            .with_environment_pass(self.environment.pass.iter().cloned());
        if let Some(path) = &self.host.search_path {
            snapshot = snapshot.with_search_path(path);
        }
        for root in &self.resources.admitted {
            snapshot.admit(&root.directory, root.access)?;
        }
        if !self.resources.admitted.is_empty() {
            snapshot = snapshot.with_listed_roots_only();
        }
        Ok(snapshot)
    }

    /// Checks what spans keys; returns the key and the rule.
    fn check(&self) -> Result<(), (String, String)> {
        let host = &self.host;
        for (key, path) in [("root", &host.root), ("temporary_base", &host.temporary_base)] {
            if path.as_deref().is_some_and(|path| !is_absolute(path)) {
                return Err(broken(format!("host.{key}"), "must be an absolute path"));
            }
        }
        let relative = |part: &str| !is_absolute(Utf8Path::new(part));
        if host.search_path.as_ref().is_some_and(|path| path.split(':').any(relative)) {
            return Err(broken("host.search_path", "must be absolute paths between colons"));
        }
        if let Some(name) = &host.default_policy
            && !self.policies.contains_key(name)
            && !Definitions::embedded().policies.contains_key(name)
        {
            return Err(broken("host.default_policy", "must name a launch policy"));
        }
        if host.search_path.as_ref().is_some_and(|path| path.len() > SEARCH_PATH_BYTES_MAX) {
            return Err(broken("host.search_path", "must be at most 16384 bytes"));
        }
        if host.operators.len() > OPERATORS_MAX {
            return Err(broken("host.operators", "must have at most 64 items"));
        }
        if self.environment.pass.len() > ENVIRONMENT_PASS_MAX {
            return Err(broken("environment.pass", "must have at most 32 items"));
        }
        if self.resources.admitted.len() > LISTED_ROOTS_MAX {
            return Err(broken("resources.admitted", "must have at most 128 items"));
        }
        for (index, root) in self.resources.admitted.iter().enumerate() {
            if !is_absolute(&root.directory) {
                let key = format!("resources.admitted[{index}].directory");
                return Err(broken(key, "must be an absolute path"));
            }
        }
        for (name, policy) in &self.policies {
            let checked = policy.clone().checked();
            checked.map_err(|error| (format!("policies.{name}.{}", error.field), error.rule))?;
        }
        Ok(())
    }
}

/// Returns the first key of a policy that no launch has yet.
fn of_later(policy: &LaunchPolicy) -> Option<&'static str> {
    let keys = [
        ("provider_ref", policy.provider_ref.is_some()),
        ("instructions", policy.instructions.is_some()),
        ("instruction_builder", policy.instruction_builder.is_some()),
        ("profile_instructions", policy.profile_instructions),
        ("gateway_tools", !policy.gateway_tools.is_empty()),
        ("gateway_hooks", !policy.gateway_hooks.is_empty()),
        ("hook_command_ref", policy.hook_command_ref.is_some()),
        ("prepare_options", !policy.prepare_options.is_empty()),
        ("profile_options", !policy.profile_options.is_empty()),
        ("environment_refs", policy.environment_refs.is_some()),
        ("allow_host_home", policy.allow_host_home),
        ("fixture", policy.fixture),
    ];
    keys.into_iter().find_map(|(key, is_said)| is_said.then_some(key))
}

fn broken(key: impl Into<String>, rule: &str) -> (String, String) {
    (key.into(), rule.to_owned())
}

fn is_absolute(path: &Utf8Path) -> bool {
    path.is_absolute() && !path.as_str().chars().any(char::is_control)
}
