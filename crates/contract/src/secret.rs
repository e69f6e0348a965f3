//! A value that cannot be printed.

use std::fmt;
use zeroize::Zeroizing;

/// Bytes that are wiped when dropped and have no printed or serialized form.
///
/// The buffer is the value's own; copies that a caller makes from [`Secret::expose`] are the
/// caller's to wipe.
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Takes the bytes over.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Shows the bytes to the code that delivers them.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_print_its_bytes() {
        let secret = Secret::new(b"canary-7f3a".to_vec());
        assert_eq!(format!("{secret:?}"), "Secret");
        assert_eq!(secret.expose(), b"canary-7f3a");
    }
}
