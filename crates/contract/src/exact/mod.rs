//! Exact decoding, shared by every value that comes in from text.
//!
//! serde reads the fields, what was given is compared with what would be written, since the derived
//! decoders are more generous than the contract, and [`Exact::check`] looks at what spans fields.

mod bounded;
mod error;
mod given;
mod text;
mod worded;

pub(crate) use bounded::{distinct, list, map, object, some_distinct, some_list};
pub use error::DecodeError;
pub(crate) use error::invalid;
pub use text::{Line, Prose};
pub(crate) use text::{ranged, sized, some_ranged};

use given::Given;
use serde::Serialize;
use serde::de::{Deserialize, DeserializeOwned, IgnoredAny};
use worded::worded;

/// A value with one form in text.
pub(crate) trait Exact: Serialize + DeserializeOwned {
    /// The name that errors use for the whole value.
    const NAME: &str;
    /// Largest text, in bytes; a power of 1024.
    const BYTES_MAX: usize;

    /// Checks what spans fields.
    fn check(&self) -> Result<(), DecodeError>;
}

/// Decodes a value of the contract.
pub(crate) fn decode<T: Exact>(bytes: &[u8]) -> Result<T, DecodeError> {
    let value: T = decode_exactly(T::NAME, bytes, T::BYTES_MAX)?;
    value.check()?;
    Ok(value)
}

/// Decodes a value of a host's own and refuses every other form than the one in which it would be
/// written: a field that is not known, a name given twice, `null`, a list in the place of an
/// object. What has a default may be missing.
///
/// # Errors
/// [`DecodeError`] names the field and the rule that it breaks, never its value; the whole value
/// goes by `name`.
pub fn decode_exactly<T: Serialize + DeserializeOwned>(
    name: &str,
    bytes: &[u8],
    bytes_max: usize,
) -> Result<T, DecodeError> {
    if bytes.len() > bytes_max {
        return Err(invalid(name, format!("is larger than {}", binary_size(bytes_max))));
    }
    // Well-formed from the first to the last byte: what fails from here on is a field's fault.
    serde_json::from_slice::<IgnoredAny>(bytes)
        .map_err(|_| invalid(name, "is not well-formed JSON"))?;
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return Err(invalid(name, "has the wrong type, expected an object"));
    }
    let value: T = read(name, bytes)?;
    read::<Given>(name, bytes)?.reads_back(name, &value)?;
    Ok(value)
}

/// Checks a value that was built in the program by the rules of [`decode`].
pub(crate) fn checked<T: Exact>(value: &T) -> Result<T, DecodeError> {
    let bytes = serde_json::to_vec(value).map_err(|_| invalid(T::NAME, "cannot be written"))?;
    decode(&bytes)
}

fn read<'de, T: Deserialize<'de>>(name: &str, bytes: &'de [u8]) -> Result<T, DecodeError> {
    serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_slice(bytes))
        .map_err(|error| worded(name, &error.path().to_string(), &error.inner().to_string()))
}

fn binary_size(bytes: usize) -> String {
    const KIB: usize = 1024;
    const MIB: usize = KIB * KIB;
    if bytes >= MIB { format!("{} MiB", bytes / MIB) } else { format!("{} KiB", bytes / KIB) }
}
