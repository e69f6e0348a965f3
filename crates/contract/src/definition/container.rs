//! The profile of a launch in a container.

use super::profile::check_revision;
use crate::exact::{DecodeError, Exact, Line, invalid, list, ranged};
use crate::id::{Id, PlacementBindingRef, ResourceName};
use crate::limits::{DEFINITION_BYTES_MAX, INTEGER_MAX, MOUNTS_MAX};
use crate::request::Access;
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Directories of a container that placement owns.
const RESERVED_TARGETS: &[&str] = &["/home/bee", "/tmp", "/proc", "/sys", "/dev", "/run"];
/// Networks that are the host's own or shared by everything.
const FORBIDDEN_NETWORKS: &[&str] = &["host", "default", "bridge"];

/// Where and how a container runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContainerProfile {
    /// The form, `bee.placement-profile@1`.
    pub schema_revision: String,
    /// The binding that runs containers.
    pub placement_binding: PlacementBindingRef,
    /// The image by its digest; or else `image_recipe_ref`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_ref: Option<ContainerImage>,
    /// The recipe of the image; or else `image_ref`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_recipe_ref: Option<Id>,
    /// The user, `uid:gid`, neither of them 0.
    pub user: Line<64>,
    /// The network, none of the host's own.
    pub network: Line<128>,
    /// What the container may use.
    pub limits: ContainerLimits,
    /// The executor of interactive launches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interactive_route_ref: Option<Id>,
    /// Where resources are mounted, at most 16, each resource once.
    #[serde(default, deserialize_with = "list::<_, _, 0, MOUNTS_MAX>")]
    pub mounts: Vec<Mount>,
}

/// An image pinned by its digest: `sha256:…` or `name@sha256:…`, at most 512 bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ContainerImage(String);

/// What a container may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContainerLimits {
    /// Memory, in bytes, at least 16 MiB.
    #[serde(deserialize_with = "ranged::<_, 16_777_216, INTEGER_MAX>")]
    pub memory: u64,
    /// Processor time, in microseconds of each period, at least 1000.
    #[serde(deserialize_with = "ranged::<_, 1_000, INTEGER_MAX>")]
    pub cpu: u64,
    /// Processes, at least 1.
    #[serde(deserialize_with = "ranged::<_, 1, INTEGER_MAX>")]
    pub pids: u64,
}

/// Where a resource is mounted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// The resource.
    pub resource: ResourceName,
    /// The directory in the container, absolute, at most 4096 bytes.
    pub target: Line<4096>,
    /// What is allowed.
    pub access: Access,
}

impl ContainerImage {
    /// Parses a pinned image.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (Some(name), digest),
            None => (None, text),
        };
        let named = name.is_none_or(|name| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'@')
        });
        let hex = digest.strip_prefix("sha256:")?;
        let pinned = crate::canonical::Digest::parse(hex).is_some();
        (text.len() <= 512 && named && pinned).then(|| Self(text.to_owned()))
    }

    /// Returns the image as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for ContainerImage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text)
            .ok_or_else(|| Error::custom("must be an image that is pinned by its sha256 digest"))
    }
}

impl Exact for ContainerProfile {
    const NAME: &str = "placement_profile";
    const BYTES_MAX: usize = DEFINITION_BYTES_MAX;

    fn check(&self) -> Result<(), DecodeError> {
        check_revision(&self.schema_revision)?;
        if self.image_ref.is_some() == self.image_recipe_ref.is_some() {
            return Err(invalid("image_ref", "must be given or else image_recipe_ref"));
        }
        let part = |text: &str| {
            text.bytes().all(|byte| byte.is_ascii_digit())
                && text.as_bytes().first().is_some_and(|first| *first != b'0')
        };
        if !self
            .user
            .as_str()
            .split_once(':')
            .is_some_and(|(user, group)| part(user) && part(group))
        {
            return Err(invalid("user", "must be uid:gid and neither of them 0"));
        }
        if FORBIDDEN_NETWORKS.contains(&self.network.as_str()) {
            return Err(invalid("network", "must not be the host's own"));
        }
        check_mounts(&self.mounts)
    }
}

fn check_mounts(mounts: &[Mount]) -> Result<(), DecodeError> {
    let resources: BTreeSet<_> = mounts.iter().map(|mount| &mount.resource).collect();
    if resources.len() != mounts.len() {
        return Err(invalid("mounts", "must not name a resource twice"));
    }
    for (index, mount) in mounts.iter().enumerate() {
        let field = format!("mounts[{index}].target");
        let target = mount.target.as_str();
        let Some(parts) = target.strip_prefix('/') else {
            return Err(invalid(field, "must be an absolute path"));
        };
        if target.contains(':') || parts.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(invalid(field, "must not contain a colon or an empty, . or .. part"));
        }
        if RESERVED_TARGETS.iter().any(|reserved| overlap(target, reserved)) {
            return Err(invalid(field, "must not overlap a directory of the container's own"));
        }
        if mounts[..index].iter().any(|other| overlap(target, other.target.as_str())) {
            return Err(invalid(field, "must not overlap another mount"));
        }
    }
    Ok(())
}

fn overlap(one: &str, other: &str) -> bool {
    let below = |inner: &str, outer: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    below(one, other) || below(other, one)
}
