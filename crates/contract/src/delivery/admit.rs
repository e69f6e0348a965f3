//! Whether a delivery was made from what the host selected, and from nothing else.

use super::{Composition, DeliveredFile, Delivery};
use crate::exact::{DecodeError, invalid};
use crate::id::ProviderRef;
use crate::request::Gateway;

/// The source of a file that tells the program of its gateway.
pub const GATEWAY_SOURCE: &str = "bee:gateway_endpoint";
/// The source of a file that holds the instructions.
pub const INSTRUCTIONS_SOURCE: &str = "bee:profile_instructions";
/// The source of a file that is made from options.
pub const OPTIONS_SOURCE: &str = "bee:profile_options";
/// The source of a file that is copied with the login.
pub const LOGIN_SOURCE: &str = "bee:provider_login";

/// What the host selected for a launch.
#[derive(Debug, Clone, Copy, Default)]
pub struct Admission<'a> {
    /// The provider.
    pub provider_ref: Option<&'a ProviderRef>,
    /// The gateway.
    pub gateway: Option<&'a Gateway>,
    /// The final instructions.
    pub instructions: Option<&'a str>,
    /// Whether the provider's home is a private one.
    pub private_home: bool,
}

impl Delivery {
    /// Checks that every file has a source that the host selected and is what that source gives.
    ///
    /// # Errors
    /// [`DecodeError`] names the file and the rule that it breaks.
    pub fn check_sources(&self, admission: &Admission<'_>) -> Result<(), DecodeError> {
        for (index, file) in self.files.iter().enumerate() {
            let field = format!("files[{index}]");
            check_source(file, &field, admission)?;
            check_secrets(file, &field, admission)?;
        }
        Ok(())
    }
}

fn check_source(
    file: &DeliveredFile,
    field: &str,
    admission: &Admission<'_>,
) -> Result<(), DecodeError> {
    let wrong = |rule: &str| Err(invalid(format!("{field}.provider_ref"), rule));
    match file.provider_ref.as_str() {
        GATEWAY_SOURCE if admission.gateway.is_none() => wrong("needs a gateway"),
        INSTRUCTIONS_SOURCE if admission.instructions != Some(file.content.as_str()) => {
            Err(invalid(format!("{field}.content"), "must be the instructions"))
        }
        LOGIN_SOURCE if !admission.private_home => wrong("needs a private home"),
        LOGIN_SOURCE if !matches!(file.composition, Some(Composition::Copy { .. })) => {
            wrong("is for a copy only")
        }
        GATEWAY_SOURCE | INSTRUCTIONS_SOURCE | LOGIN_SOURCE | OPTIONS_SOURCE => Ok(()),
        _ if admission.provider_ref == Some(&file.provider_ref) => Ok(()),
        _ => wrong("must be a source that the host selected"),
    }
}

fn check_secrets(
    file: &DeliveredFile,
    field: &str,
    admission: &Admission<'_>,
) -> Result<(), DecodeError> {
    for (index, secret) in file.secret_fields.iter().enumerate() {
        let Some(gateway) =
            admission.gateway.filter(|_| file.provider_ref.as_str() == GATEWAY_SOURCE)
        else {
            return Err(invalid(format!("{field}.secret_fields"), "are for gateway files only"));
        };
        let known = secret.environment == gateway.destination
            || gateway.hook_destination.as_ref() == Some(&secret.environment);
        if !known {
            let field = format!("{field}.secret_fields[{index}].environment");
            return Err(invalid(field, "must be a destination of the gateway"));
        }
    }
    Ok(())
}
