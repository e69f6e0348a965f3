//! What a host defines and a request names by reference and digest: placement bindings, placement
//! profiles, launch policies, and what a driver's configuration is made from.

mod activation;
mod binding;
mod configuration;
mod container;
mod methods;
mod option_rule;
mod policy;
mod profile;

pub use activation::{
    ACTIVATION_REVISION, Activation, DriverContract, DriverContracts, DriverEntry, DriverMethods,
};
pub use binding::{
    BINDING_REVISION, BindingEntry, NATIVE_BINDING, PLACEMENT_CONTRACT, PlacementBinding,
    PlacementKind,
};
pub use configuration::{CONFIGURATION_REVISION, ConfigurationGateway, ConfigurationInputs};
pub use container::{ContainerImage, ContainerLimits, ContainerProfile, Mount};
pub use methods::{Method, MethodTargets};
pub use option_rule::OptionRule;
pub use policy::{InstructionBuilder, LaunchPolicy};
pub use profile::{NATIVE_PROFILE, PROFILE_REVISION, PlacementProfile};
