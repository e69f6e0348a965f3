//! A relative path that is safe to resolve below a directory.

use std::fmt;

use crate::limits::RELATIVE_BYTES_MAX;

/// A safe relative path: at most 512 bytes, no leading `/`, no backslash, no control character,
/// no empty, `.` or `..` segment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelativePath(String);

/// Which rule for relative paths a text breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathRefused {
    /// It has no bytes.
    #[error("the relative path is empty")]
    Empty,
    /// It is longer than 512 bytes.
    #[error("the relative path is longer than {RELATIVE_BYTES_MAX} bytes")]
    TooLong,
    /// It starts with `/`.
    #[error("the relative path starts with a slash")]
    Absolute,
    /// It holds a backslash.
    #[error("the relative path holds a backslash")]
    Backslash,
    /// It holds NUL or another control character.
    #[error("the relative path holds a control character")]
    ControlCharacter,
    /// It has an empty segment (`a//b`, `a/`).
    #[error("the relative path has an empty segment")]
    EmptySegment,
    /// It has a segment `.` or `..`.
    #[error("the relative path has a dot segment")]
    DotSegment,
    /// It holds a `/` where one single name is wanted.
    #[error("the name holds a slash")]
    NotOneName,
}

impl RelativePath {
    /// Parses a safe relative path.
    ///
    /// # Errors
    /// Returns the first rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, PathRefused> {
        if text.is_empty() {
            return Err(PathRefused::Empty);
        }
        if text.len() > RELATIVE_BYTES_MAX {
            return Err(PathRefused::TooLong);
        }
        if text.starts_with('/') {
            return Err(PathRefused::Absolute);
        }
        if text.contains('\\') {
            return Err(PathRefused::Backslash);
        }
        if text.chars().any(char::is_control) {
            return Err(PathRefused::ControlCharacter);
        }
        for segment in text.split('/') {
            if segment.is_empty() {
                return Err(PathRefused::EmptySegment);
            }
            if segment == "." || segment == ".." {
                return Err(PathRefused::DotSegment);
            }
        }
        Ok(Self(text.to_owned()))
    }

    /// Parses a path of exactly one segment.
    ///
    /// # Errors
    /// As [`RelativePath::parse`], and [`PathRefused::NotOneName`].
    pub fn parse_name(text: &str) -> Result<Self, PathRefused> {
        let path = Self::parse(text)?;
        if path.0.contains('/') {
            return Err(PathRefused::NotOneName);
        }
        Ok(path)
    }

    /// Returns the segments from first to last; there is at least one.
    pub fn segments(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/')
    }

    /// Returns all but the last segment, `None` when there is only one.
    pub fn parent(&self) -> Option<Self> {
        self.0.rsplit_once('/').map(|(parent, _)| Self(parent.to_owned()))
    }

    /// Returns the last segment.
    pub fn name(&self) -> &str {
        self.segments().next_back().expect("a parsed path has at least one segment")
    }

    /// Returns the path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RelativePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::str::FromStr for RelativePath {
    type Err = PathRefused;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(text: &str) -> PathRefused {
        RelativePath::parse(text).expect_err("the path must be refused")
    }

    #[test]
    fn a_plain_path_has_its_segments_parent_and_name() {
        let path = RelativePath::parse("a/.b/c..d").unwrap();
        assert_eq!(path.segments().collect::<Vec<_>>(), ["a", ".b", "c..d"]);
        assert_eq!(path.parent().unwrap().as_str(), "a/.b");
        assert_eq!(path.name(), "c..d");
    }

    #[test]
    fn one_segment_has_no_parent() {
        assert_eq!(RelativePath::parse("a").unwrap().parent(), None);
    }

    #[test]
    fn an_absolute_path_is_refused() {
        assert_eq!(refused("/a"), PathRefused::Absolute);
    }

    #[test]
    fn dot_segments_are_refused() {
        for text in [".", "..", "a/..", "../a", "a/./b", "a/../b"] {
            assert_eq!(refused(text), PathRefused::DotSegment, "{text}");
        }
    }

    #[test]
    fn empty_segments_are_refused() {
        assert_eq!(refused(""), PathRefused::Empty);
        assert_eq!(refused("a//b"), PathRefused::EmptySegment);
        assert_eq!(refused("a/"), PathRefused::EmptySegment);
    }

    #[test]
    fn control_characters_and_backslashes_are_refused() {
        for text in ["a\0b", "a\nb", "a\u{7f}", "a\u{85}"] {
            assert_eq!(refused(text), PathRefused::ControlCharacter, "{text:?}");
        }
        assert_eq!(refused("a\\b"), PathRefused::Backslash);
    }

    #[test]
    fn the_length_bound_is_exact() {
        RelativePath::parse(&"a".repeat(512)).unwrap();
        assert_eq!(refused(&"a".repeat(513)), PathRefused::TooLong);
    }

    #[test]
    fn a_name_with_a_slash_is_refused() {
        assert_eq!(RelativePath::parse_name("a/b"), Err(PathRefused::NotOneName));
    }
}
