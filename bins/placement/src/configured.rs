//! The configuration file: where it is, and what it says.

use camino::{Utf8Path, Utf8PathBuf};
use placement::{CONFIG_BYTES_MAX, Code, Config, Refusal};
use std::fs::File;
use std::io::{self, Read as _};

/// What a configuration file says, and which one it was.
#[derive(Debug, Default)]
pub(crate) struct Configured {
    /// The file; none where there is none.
    pub(crate) file: Option<Utf8PathBuf>,
    /// What it says; empty where there is none.
    pub(crate) config: Config,
}

/// Which file is read.
#[derive(Debug)]
pub(crate) enum ConfigFile {
    /// The one that was named; it must be there.
    Named(Utf8PathBuf),
    /// The one in the user's configuration directory, if it is there.
    Usual(Utf8PathBuf),
    /// None: no directory is said.
    Nowhere,
}

impl ConfigFile {
    /// Reads it.
    pub(crate) fn read(&self) -> Result<Configured, Refusal> {
        let (path, may_be_missing) = match self {
            Self::Named(path) => (path, false),
            Self::Usual(path) => (path, true),
            Self::Nowhere => return Ok(Configured::default()),
        };
        let text = match text_of(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound && may_be_missing => {
                return Ok(Configured::default());
            }
            Err(error) => return Err(unreadable(path, error.kind())),
        };
        let config = Config::decode(&text).map_err(|error| {
            Refusal::new(Code::Invalid, format!("the configuration file {path:?}: {error}"))
                .with_hint("correct the named key of the configuration file")
        })?;
        Ok(Configured { file: Some(path.clone()), config })
    }
}

/// Reads one byte more than is allowed, so that what is too large is seen to be. What is no regular
/// file may have no end, or no beginning.
fn text_of(path: &Utf8Path) -> io::Result<String> {
    let metadata = std::fs::metadata(path)?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !metadata.is_file() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let bytes_max = u64::try_from(CONFIG_BYTES_MAX + 1).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    File::open(path)?.take(bytes_max).read_to_end(&mut bytes)?;
    if bytes.len() > CONFIG_BYTES_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData.into())
}

fn unreadable(path: &Utf8Path, kind: io::ErrorKind) -> Refusal {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the kinds of I/O errors are open")]
    let rule = match kind {
        io::ErrorKind::NotFound => "does not exist",
        io::ErrorKind::PermissionDenied => "may not be read by this user",
        io::ErrorKind::InvalidData => "is not UTF-8",
        io::ErrorKind::FileTooLarge => "is larger than 1 MiB",
        io::ErrorKind::IsADirectory => "is a directory",
        io::ErrorKind::Unsupported => "is not a regular file",
        _ => "cannot be read",
    };
    Refusal::new(Code::Invalid, format!("the configuration file {path:?} {rule}"))
        .with_hint("name another one with --config FILE")
}
