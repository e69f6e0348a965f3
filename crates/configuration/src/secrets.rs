//! Putting secrets at their places in a rendered file.

use crate::document::DocumentError;
use crate::json;
use crate::limits::RENDERED_BYTES_MAX;
use placement_contract::Secret;
use placement_contract::delivery::{DeliveredFile, SecretField};
use placement_contract::limits::{COMPOSED_BYTES_MAX, SECRET_VALUE_BYTES_MAX};
use placement_contract::request::Destination;
use std::ops::Range;
use zeroize::Zeroizing;

/// Why no secret was put into a file. Says nothing of the file and nothing of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceSecretsError {
    /// The file cannot be used.
    #[error("the file with places for secrets cannot be used")]
    Document(#[source] DocumentError),
    /// There is no secret for a place.
    #[error("a secret for a place in a file is missing")]
    MissingSecret,
    /// A secret is empty, above its bound, or not text.
    #[error("a secret for a file is not 1 to {SECRET_VALUE_BYTES_MAX} bytes of text")]
    SecretRefused,
    /// The keys of a place lead to nothing.
    #[error("a place for a secret is not in the file")]
    NoSuchPlace,
    /// There is something at the place already: only an empty text is replaced.
    #[error("a place for a secret does not hold an empty text")]
    NotEmpty,
    /// Two secrets are for one place.
    #[error("a place in a file is for two secrets")]
    PlaceTwice,
    /// The file with its secrets is above its bound.
    #[error("the file with its secrets is larger than its bound")]
    ResultTooLarge,
}

/// Puts the secrets of a delivered file at their places.
///
/// `composed` is the file as it was composed, where it was; otherwise the content is taken. What was
/// delivered stays as it is: the result alone holds the secrets, in one buffer that is wiped. Bounds
/// are [`RENDERED_BYTES_MAX`] for what was delivered and [`COMPOSED_BYTES_MAX`] for what was composed.
///
/// # Errors
/// [`PlaceSecretsError`], which holds nothing of a secret.
pub fn place_secrets<'a>(
    file: &DeliveredFile,
    composed: Option<&str>,
    secret_of: impl Fn(&Destination) -> Option<&'a Secret>,
) -> Result<Secret, PlaceSecretsError> {
    let values = file
        .secret_fields
        .iter()
        .map(|field| value_of(field, secret_of(&field.environment)))
        .collect::<Result<Vec<_>, _>>()?;
    let alone = render(&file.content, &file.secret_fields, &values, RENDERED_BYTES_MAX)?;
    match composed {
        None => Ok(alone),
        Some(text) => render(text, &file.secret_fields, &values, COMPOSED_BYTES_MAX),
    }
}

/// Returns what is put at a place: the prefix and the secret, as one text.
fn value_of(
    field: &SecretField,
    secret: Option<&Secret>,
) -> Result<Zeroizing<String>, PlaceSecretsError> {
    let secret = secret.ok_or(PlaceSecretsError::MissingSecret)?.expose();
    if !(1..=SECRET_VALUE_BYTES_MAX).contains(&secret.len()) {
        return Err(PlaceSecretsError::SecretRefused);
    }
    let secret = std::str::from_utf8(secret).map_err(|_| PlaceSecretsError::SecretRefused)?;
    // As long as it will be: a buffer that grows leaves a copy behind.
    let mut value = Zeroizing::new(String::with_capacity(field.prefix.len() + secret.len()));
    value.push_str(&field.prefix);
    value.push_str(secret);
    Ok(value)
}

fn render(
    text: &str,
    fields: &[SecretField],
    values: &[Zeroizing<String>],
    bytes_max: usize,
) -> Result<Secret, PlaceSecretsError> {
    let mut places = fields
        .iter()
        .zip(values)
        .map(|(field, value)| Ok((place_of(text, field)?, value)))
        .collect::<Result<Vec<_>, PlaceSecretsError>>()?;
    places.sort_by_key(|(place, _)| place.start);
    if places.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Err(PlaceSecretsError::PlaceTwice);
    }
    let longest = |value: &Zeroizing<String>| value.len() * ESCAPED_BYTES_MAX + 2;
    let added: usize = values.iter().map(longest).sum();
    let mut out = Zeroizing::new(Vec::with_capacity(text.len() + added + 1));
    let room = out.capacity();
    let mut written = 0;
    for (place, value) in places {
        out.extend_from_slice(&text.as_bytes()[written..place.start]);
        serde_json::to_writer(&mut *out, value.as_str()).expect("a text is written to memory");
        written = place.end;
    }
    out.extend_from_slice(&text.as_bytes()[written..]);
    if !out.ends_with(b"\n") {
        out.push(b'\n');
    }
    assert!(out.capacity() == room, "a buffer with secrets must not have grown");
    if out.len() > bytes_max {
        return Err(PlaceSecretsError::ResultTooLarge);
    }
    Ok(Secret::new(std::mem::take(&mut *out)))
}

/// What one byte of a text takes at most once it is written as JSON: `\u001f`.
const ESCAPED_BYTES_MAX: usize = 6;

/// Returns where in the text the empty text stands to which the keys lead.
fn place_of(text: &str, field: &SecretField) -> Result<Range<usize>, PlaceSecretsError> {
    if text.len() > COMPOSED_BYTES_MAX {
        return Err(PlaceSecretsError::Document(DocumentError::TooLarge));
    }
    let mut value = json::well_formed(text).map_err(PlaceSecretsError::Document)?;
    for key in field.path.keys() {
        let members = json::members(value).map_err(PlaceSecretsError::Document)?;
        let mut members = members.ok_or(PlaceSecretsError::NoSuchPlace)?.into_iter();
        let found = members.find(|(name, _)| name == key.as_str());
        value = found.ok_or(PlaceSecretsError::NoSuchPlace)?.1;
    }
    if value != "\"\"" {
        return Err(PlaceSecretsError::NotEmpty);
    }
    // The value is a part of the text: how far it is from its beginning is where it stands.
    let start = value.as_ptr().addr() - text.as_ptr().addr();
    Ok(start..start + value.len())
}
