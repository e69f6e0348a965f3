//! Looking through configuration that is copied from the host's home into a private one.

use crate::document::{DocumentError, TextFormat, text_of};
use crate::limits::SCANNED_NESTING_MAX;
use crate::tree::Tree;
use crate::{json, toml};
use placement_contract::limits::COMPOSED_BYTES_MAX;
use placement_contract::request::RelativePath;
use toml_edit::Formatted;
use toml_edit::visit_mut::VisitMut;

/// How a reference to a file begins.
const FILE: &str = "{file:";
/// What names something of the host's environment.
const EXPANSIONS: [&str; 2] = ["${", "{env:"];

/// A file that a driver declares for a private home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeclaredFile<'a> {
    /// Where it comes from, below the host's home.
    pub source_path: &'a RelativePath,
    /// Where it goes, below the private home.
    pub path: &'a RelativePath,
    /// Whether it is there in this launch.
    pub presence: DeclaredPresence,
}

/// Whether a declared file is materialized by this launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeclaredPresence {
    /// It is.
    Materialized,
    /// It is optional and its source is missing.
    Missing,
}

/// From where to where configuration is copied.
#[derive(Clone, Copy, Debug)]
pub struct Projection<'a> {
    /// The host's home, an absolute path.
    pub host_home: &'a str,
    /// The private home, an absolute path.
    pub private_home: &'a str,
    /// What the driver declares.
    pub files: &'a [DeclaredFile<'a>],
}

/// Why configuration is not copied into a private home. Says nothing of what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScanError {
    /// It cannot be used.
    #[error("the copied configuration cannot be used")]
    Document(#[source] DocumentError),
    /// It takes something from the environment, which a private home does not have.
    #[error("the copied configuration refers to the host's environment")]
    Environment,
    /// It names a path by the home directory outside a reference to a file.
    #[error("the copied configuration names a path below the home directory")]
    HomePath,
    /// It refers to a file in another way than by the home directory, or without an end.
    #[error("the copied configuration refers to a file outside the home directory")]
    ForeignFile,
    /// It refers to a file by a path that leads up or has an empty part.
    #[error("the copied configuration refers to a file by a path that is refused")]
    Traversal,
    /// It refers to a file that is not declared.
    #[error("the copied configuration refers to a file that is not declared")]
    Undeclared,
    /// It refers to a declared file that this launch does not have.
    #[error("the copied configuration refers to a declared file that is missing")]
    Missing,
    /// One of its names is a reference, where only values may be.
    #[error("the copied configuration has a reference in the place of a name")]
    ReferenceAsName,
    /// With the private paths it is above the bound.
    #[error("the copied configuration is larger than {COMPOSED_BYTES_MAX} bytes")]
    ResultTooLarge,
}

/// Looks through configuration and leads its references to files into the private home.
///
/// `{file:…}` may name a declared file that this launch materializes, by the host's home or by `~/`.
/// Text that mentions a path of the host's home stays as it is. Where nothing is changed the result
/// is the input to the byte; of changed TOML the comments and the spelling of the rest are kept.
/// Comments are no values and are not looked at.
///
/// # Errors
/// [`ScanError`], which holds no value.
pub fn scan(
    format: TextFormat,
    bytes: &[u8],
    projection: &Projection<'_>,
) -> Result<Vec<u8>, ScanError> {
    let text = text_of(bytes).map_err(ScanError::Document)?;
    let result = match format {
        TextFormat::Json => scan_json(text, projection)?,
        TextFormat::Toml => scan_toml(text, projection)?,
    };
    let result = result.map_or_else(|| bytes.to_vec(), String::into_bytes);
    if result.len() > COMPOSED_BYTES_MAX {
        return Err(ScanError::ResultTooLarge);
    }
    Ok(result)
}

fn scan_json(text: &str, projection: &Projection<'_>) -> Result<Option<String>, ScanError> {
    if text.is_empty() {
        return Ok(None);
    }
    let mut tree = json::read(text, SCANNED_NESTING_MAX).map_err(ScanError::Document)?;
    let changed = rewrite(&mut tree, projection)?;
    Ok(changed.then(|| json::write(&tree)))
}

fn scan_toml(text: &str, projection: &Projection<'_>) -> Result<Option<String>, ScanError> {
    let mut document = toml::read(text).map_err(ScanError::Document)?;
    let mut tree = toml::tree_of(&document, SCANNED_NESTING_MAX).map_err(ScanError::Document)?;
    if !rewrite(&mut tree, projection)? {
        return Ok(None);
    }
    let mut texts = Texts { projection, failed: None };
    texts.visit_document_mut(&mut document);
    texts.failed.map_or_else(|| Ok(Some(document.to_string())), Err)
}

/// Leads every text into the private home; says whether one was changed.
fn rewrite(tree: &mut Tree, projection: &Projection<'_>) -> Result<bool, ScanError> {
    let mut changed = false;
    match tree {
        Tree::Scalar(_) => {}
        Tree::Text(text) => {
            if let Some(led) = lead(text, projection)? {
                *text = led;
                changed = true;
            }
        }
        Tree::List(items) => {
            for item in items {
                changed |= rewrite(item, projection)?;
            }
        }
        Tree::Table(entries) => {
            for (name, value) in entries {
                if lead(name, projection)?.is_some() {
                    return Err(ScanError::ReferenceAsName);
                }
                changed |= rewrite(value, projection)?;
            }
        }
    }
    Ok(changed)
}

/// Leads the texts of a TOML document, which keeps everything around them.
struct Texts<'a> {
    projection: &'a Projection<'a>,
    failed: Option<ScanError>,
}

impl VisitMut for Texts<'_> {
    fn visit_string_mut(&mut self, node: &mut Formatted<String>) {
        match lead(node.value(), self.projection) {
            Ok(None) => {}
            Ok(Some(led)) => {
                let around = node.decor().clone();
                *node = Formatted::new(led);
                *node.decor_mut() = around;
            }
            Err(error) => self.failed = Some(error),
        }
    }
}

/// Returns a text with its references led into the private home, `None` where it has none.
fn lead(text: &str, projection: &Projection<'_>) -> Result<Option<String>, ScanError> {
    if EXPANSIONS.iter().any(|expansion| text.contains(expansion)) {
        return Err(ScanError::Environment);
    }
    if text.starts_with("~/") {
        return Err(ScanError::HomePath);
    }
    let mut led = String::new();
    let mut rest = text;
    while let Some((before, reference)) = rest.split_once(FILE) {
        let (named, after) = reference.split_once('}').ok_or(ScanError::ForeignFile)?;
        let file = projection.find(named)?;
        led.push_str(before);
        led.push_str(FILE);
        led.push_str(projection.private_home.trim_end_matches('/'));
        led.push('/');
        led.push_str(file.path.as_str());
        led.push('}');
        rest = after;
    }
    if led.is_empty() {
        return Ok(None);
    }
    led.push_str(rest);
    Ok(Some(led))
}

impl Projection<'_> {
    fn find(&self, named: &str) -> Result<&DeclaredFile<'_>, ScanError> {
        let below_home = named.strip_prefix("~/").or_else(|| {
            named.strip_prefix(self.host_home.trim_end_matches('/'))?.strip_prefix('/')
        });
        let below_home = below_home.ok_or(ScanError::ForeignFile)?;
        let path = RelativePath::parse(below_home).map_err(|_| ScanError::Traversal)?;
        let declared = self.files.iter().find(|file| *file.source_path == path);
        let file = declared.ok_or(ScanError::Undeclared)?;
        match file.presence {
            DeclaredPresence::Materialized => Ok(file),
            DeclaredPresence::Missing => Err(ScanError::Missing),
        }
    }
}
