//! A host's configuration as one launch sees it, from admission to materialization.

use crate::definitions::{
    DRIVER_BINDING_REVISION, DRIVER_PROFILE_REVISION, Definition, Definitions, POLICY_REVISION,
};
use crate::gateway::HostGateway;
use crate::roots::{self, AdmittedRoot, UsableRoots};
use camino::Utf8Path;
use placement_contract::definition::{LaunchPolicy, PlacementBinding, PlacementProfile};
use placement_contract::limits::{ENVIRONMENT_PASS_MAX, ENVIRONMENT_VALUE_BYTES_MAX};
use placement_contract::{
    Access, BindingRef, Code, Digest, EnvironmentName, OwnerId, PlacementBindingRef,
    PlacementProfileRef, PolicyRef, ProfileId, Refusal, RootRef,
};
use std::collections::{BTreeMap, BTreeSet};

/// Where programs are looked for unless the host says otherwise.
pub const SEARCH_PATH_DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin";

/// The type of a binding whose requests a driver plans.
const DRIVER_TYPE: &str = "harness.driver";

/// A name and the measured digest of what it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named<R> {
    /// The name.
    pub r#ref: R,
    /// The digest of its definition.
    pub digest: Digest,
}

/// A launch policy, measured.
#[derive(Debug, Clone, PartialEq)]
struct MeasuredPolicy {
    name: Named<PolicyRef>,
    rules: LaunchPolicy,
}

/// A placement profile, measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MeasuredProfile {
    pub(crate) digest: Digest,
    pub(crate) binding: PlacementBindingRef,
}

/// A host's configuration: what requests must name, and what they may use.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    binding: Named<BindingRef>,
    profile: Named<ProfileId>,
    default_policy: PolicyRef,
    policies: BTreeMap<PolicyRef, MeasuredPolicy>,
    placement_bindings: BTreeMap<PlacementBindingRef, PlacementBinding>,
    placement_profiles: BTreeMap<PlacementProfileRef, MeasuredProfile>,
    gateway: Option<HostGateway>,
    admitted_roots: Vec<AdmittedRoot>,
    usable_roots: UsableRoots,
    search_path: String,
    environment_pass: BTreeSet<EnvironmentName>,
    environment: BTreeMap<EnvironmentName, String>,
    /// Whether the binding is a driver's, and not for simple commands.
    is_driven: bool,
    operators: BTreeSet<OwnerId>,
}

impl Snapshot {
    /// Takes the definitions that are built in, the default search path, no roots and no
    /// environment.
    pub fn embedded() -> Self {
        Self::new(Definitions::embedded()).expect("the embedded definitions are part of the build")
    }

    /// Measures definitions; takes the default search path, no roots and no environment.
    ///
    /// # Errors
    /// INVALID for a definition that breaks a rule of its own, and for a default policy that is not
    /// defined.
    pub fn new(definitions: Definitions) -> Result<Self, Refusal> {
        let policies = measured_policies(definitions.policies)?;
        if !policies.contains_key(&definitions.default_policy) {
            return Err(Refusal::new(Code::Invalid, "the default launch policy is not defined"));
        }
        let bindings = definitions.placement_bindings.into_iter();
        let bindings = bindings.map(|(name, entry)| Ok((name.clone(), entry.resolve(name)?)));
        let profiles = definitions.placement_profiles.into_iter();
        let profiles = profiles.map(|(name, profile)| {
            let bytes = serde_json::to_vec(&profile).map_err(|_| rounded("a profile"))?;
            let profile = PlacementProfile::decode(&bytes)?;
            let digest = profile.digest(&name);
            Ok::<_, Refusal>((name, MeasuredProfile { digest, binding: profile.binding() }))
        });
        let (binding, profile) = (definitions.binding, definitions.profile);
        let binding_digest =
            binding.digest(DRIVER_BINDING_REVISION).ok_or_else(|| rounded("binding"))?;
        let profile_digest =
            profile.digest(DRIVER_PROFILE_REVISION).ok_or_else(|| rounded("profile"))?;
        let kind = binding.definition.pointer("/meta/type");
        let is_driven = kind.is_some_and(|kind| kind == DRIVER_TYPE);
        Ok(Self {
            binding: Named { digest: binding_digest, r#ref: binding.r#ref },
            profile: Named { digest: profile_digest, r#ref: profile.r#ref },
            default_policy: definitions.default_policy,
            policies,
            placement_bindings: bindings.collect::<Result<_, Refusal>>()?,
            placement_profiles: profiles.collect::<Result<_, _>>()?,
            gateway: None,
            admitted_roots: Vec::new(),
            usable_roots: UsableRoots::Any,
            search_path: SEARCH_PATH_DEFAULT.to_owned(),
            environment_pass: BTreeSet::new(),
            environment: BTreeMap::new(),
            is_driven,
            operators: BTreeSet::new(),
        })
    }

    /// Names who may settle an attempt of which nothing can be proven; the user who owns the root
    /// where nobody is named.
    #[must_use]
    pub fn with_operators(mut self, operators: impl IntoIterator<Item = OwnerId>) -> Self {
        self.operators = operators.into_iter().collect();
        self
    }

    /// Takes another search path; it is the `PATH` of every child too.
    #[must_use]
    pub fn with_search_path(mut self, search_path: impl Into<String>) -> Self {
        self.search_path = search_path.into();
        self
    }

    /// Takes the gateway that launches are told of whose policy has tools or hooks.
    #[must_use]
    pub fn with_gateway(mut self, gateway: HostGateway) -> Self {
        self.gateway = Some(gateway);
        self
    }

    /// Takes names that reach every child whatever its policy; before
    /// [`Snapshot::with_environment`]. Those beyond the 32nd are left out.
    #[must_use]
    pub fn with_environment_pass(
        mut self,
        names: impl IntoIterator<Item = EnvironmentName>,
    ) -> Self {
        self.environment_pass = names.into_iter().take(ENVIRONMENT_PASS_MAX).collect();
        self
    }

    /// Takes those values of the host's environment that a launch policy lets through; one that
    /// is longer than a launch itself may supply is as if not set.
    #[must_use]
    pub fn with_environment(mut self, values: impl IntoIterator<Item = (String, String)>) -> Self {
        let passes = |name: &EnvironmentName| {
            self.policies.values().any(|policy| policy.rules.environment_pass.contains(name))
                || self.environment_pass.contains(name)
        };
        self.environment = values
            .into_iter()
            .filter_map(|(name, value)| Some((EnvironmentName::parse(&name)?, value)))
            .filter(|(name, value)| {
                let fits = value.len() <= ENVIRONMENT_VALUE_BYTES_MAX && !value.contains('\0');
                fits && passes(name)
            })
            .collect();
        self
    }

    /// Admits a directory and returns the name that grants use for it.
    ///
    /// The name is `dir:` and 32 hexadecimal characters of the SHA-256 of the physical path, so
    /// that a request made again names the same root. A directory that is admitted twice keeps the
    /// wider access. One that is not there is admitted all the same, under the path that it would
    /// have: a replay needs its name only, and a new launch is refused when its grants are
    /// resolved.
    ///
    /// # Errors
    /// INVALID for a relative path or too many roots.
    pub fn admit(
        &mut self,
        directory: impl AsRef<Utf8Path>,
        access: Access,
    ) -> Result<RootRef, Refusal> {
        roots::admit(&mut self.admitted_roots, directory.as_ref(), access)
    }

    /// Lets launches use only the directories that were admitted before, and what is in them.
    #[must_use]
    pub fn with_listed_roots_only(mut self) -> Self {
        self.usable_roots = UsableRoots::Listed(self.admitted_roots.clone());
        self
    }

    /// Lets launches use any directory, whatever is listed.
    #[must_use]
    pub fn with_any_named_root(mut self) -> Self {
        self.usable_roots = UsableRoots::Any;
        self
    }

    /// Admits a directory that a launch names by its path, if launches may use it.
    ///
    /// # Errors
    /// As [`Snapshot::admit`], and FORBIDDEN for what [`Snapshot::check_use`] refuses.
    pub fn admit_named(
        &mut self,
        directory: impl AsRef<Utf8Path>,
        access: Access,
    ) -> Result<RootRef, Refusal> {
        let directory = directory.as_ref();
        roots::admit_usable(&mut self.admitted_roots, &self.usable_roots, directory, access)
    }

    /// Checks by its physical path whether launches may use a directory. Where the host lists
    /// directories, the innermost of them decides.
    ///
    /// # Errors
    /// FORBIDDEN for what lies in no listed directory, and for writing in one that is listed for
    /// reading.
    pub fn check_use(&self, physical: impl AsRef<Utf8Path>, access: Access) -> Result<(), Refusal> {
        self.usable_roots.check(physical.as_ref(), access)
    }

    /// Returns the driver binding that requests must name.
    pub const fn binding(&self) -> &Named<BindingRef> {
        &self.binding
    }

    /// Returns the profile that requests must name.
    pub const fn profile(&self) -> &Named<ProfileId> {
        &self.profile
    }

    /// Returns the launch policy of who names none.
    pub fn policy(&self) -> &Named<PolicyRef> {
        let found = self.policies.get(&self.default_policy);
        &found.expect("the default policy was looked up when the definitions were measured").name
    }

    /// Finds a launch policy by its name.
    pub fn policy_named(&self, name: &PolicyRef) -> Option<&Named<PolicyRef>> {
        self.policies.get(name).map(|policy| &policy.name)
    }

    /// Finds what a launch policy allows and selects.
    pub fn rules(&self, name: &PolicyRef) -> Option<&LaunchPolicy> {
        self.policies.get(name).map(|policy| &policy.rules)
    }

    /// Returns what each launch policy allows and selects.
    pub fn all_rules(&self) -> impl Iterator<Item = &LaunchPolicy> {
        self.policies.values().map(|policy| &policy.rules)
    }

    /// Says whether requests are a driver's, and not simple commands.
    pub const fn is_driven(&self) -> bool {
        self.is_driven
    }

    /// Returns who may settle an attempt of which nothing can be proven; empty where nobody is named.
    pub const fn operators(&self) -> &BTreeSet<OwnerId> {
        &self.operators
    }

    /// Finds a placement binding, measured, with its eleven targets.
    pub fn placement_binding(&self, name: &PlacementBindingRef) -> Option<&PlacementBinding> {
        self.placement_bindings.get(name)
    }

    pub(crate) fn placement_profile(&self, name: &PlacementProfileRef) -> Option<&MeasuredProfile> {
        self.placement_profiles.get(name)
    }

    /// Returns the digest of a placement profile.
    pub fn placement_profile_digest(&self, name: &PlacementProfileRef) -> Option<&Digest> {
        self.placement_profiles.get(name).map(|profile| &profile.digest)
    }

    /// Returns the gateway.
    pub const fn gateway(&self) -> Option<&HostGateway> {
        self.gateway.as_ref()
    }

    /// Finds an admitted directory.
    pub fn root(&self, root_ref: &RootRef) -> Option<&AdmittedRoot> {
        self.admitted_roots.iter().find(|root| root.root_ref == *root_ref)
    }

    /// Returns the admitted directories in the order in which they were admitted.
    pub fn admitted_roots(&self) -> &[AdmittedRoot] {
        &self.admitted_roots
    }

    /// Returns where programs are looked for.
    pub fn search_path(&self) -> &str {
        &self.search_path
    }

    /// Returns the values of the host's environment that reach a child under a launch policy; none
    /// under one that is not defined.
    pub fn environment(
        &self,
        policy: &PolicyRef,
    ) -> impl Iterator<Item = (&EnvironmentName, &str)> {
        let rules = self.rules(policy);
        self.environment.iter().filter_map(move |(name, value)| {
            let passes =
                self.environment_pass.contains(name) || rules?.environment_pass.contains(name);
            (rules.is_some() && passes).then_some((name, value.as_str()))
        })
    }
}

fn measured_policies(
    policies: BTreeMap<PolicyRef, LaunchPolicy>,
) -> Result<BTreeMap<PolicyRef, MeasuredPolicy>, Refusal> {
    let measured = policies.into_iter().map(|(name, rules)| {
        let rules = rules.checked()?;
        let measured = Definition { r#ref: &name, definition: &rules };
        let digest = measured.digest(POLICY_REVISION).ok_or_else(|| rounded("a launch policy"))?;
        Ok((name.clone(), MeasuredPolicy { name: Named { r#ref: name, digest }, rules }))
    });
    measured.collect()
}

fn rounded(what: &str) -> Refusal {
    let message = format!("{what} has a number that canonical JSON would round");
    Refusal::new(Code::Invalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(snapshot: &Snapshot, policy: &str) -> Vec<String> {
        let policy = PolicyRef::parse(policy).unwrap();
        snapshot.environment(&policy).map(|(name, _)| name.to_string()).collect()
    }

    fn host() -> Vec<(String, String)> {
        let pairs = [("LANG", "C.UTF-8"), ("PATH", "/x"), ("CLAUDECODE", "1"), ("TZ", "a\0b")];
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
    }

    #[test]
    fn only_names_of_the_policy_pass() {
        let snapshot = Snapshot::embedded().with_environment(host());
        assert_eq!(names(&snapshot, "placement.default"), ["LANG"]);
        assert!(names(&snapshot, "another").is_empty());
    }

    #[test]
    fn a_value_that_no_order_carries_does_not_pass() {
        let count = |length| {
            let value = [("LANG".to_owned(), "x".repeat(length))];
            names(&Snapshot::embedded().with_environment(value), "placement.default").len()
        };
        assert_eq!(count(ENVIRONMENT_VALUE_BYTES_MAX), 1);
        assert_eq!(count(ENVIRONMENT_VALUE_BYTES_MAX + 1), 0);
    }

    #[test]
    fn a_policy_passes_its_own_names_and_no_others() {
        let mut definitions = Definitions::embedded();
        let strict = LaunchPolicy {
            environment_pass: vec![EnvironmentName::parse("CLAUDECODE").unwrap()],
            ..LaunchPolicy::default()
        };
        definitions.policies.insert(PolicyRef::parse("strict").unwrap(), strict);
        let snapshot = Snapshot::new(definitions).unwrap().with_environment(host());
        assert_eq!(names(&snapshot, "placement.default"), ["LANG"]);
        assert_eq!(names(&snapshot, "strict"), ["CLAUDECODE"]);
    }

    #[test]
    fn what_the_host_passes_reaches_every_child() {
        let pass = [EnvironmentName::parse("CLAUDECODE").unwrap()];
        let snapshot = Snapshot::embedded().with_environment_pass(pass).with_environment(host());
        assert_eq!(names(&snapshot, "placement.default"), ["CLAUDECODE", "LANG"]);
    }

    #[test]
    fn a_default_policy_that_is_not_defined_is_refused() {
        let mut definitions = Definitions::embedded();
        definitions.default_policy = PolicyRef::parse("another").unwrap();
        assert_eq!(Snapshot::new(definitions).unwrap_err().code, Code::Invalid);
    }
}
