//! Protocol versions.

use serde::{Deserialize, Serialize};

/// The versions that this build speaks.
pub const SPOKEN: VersionRange = VersionRange { min: 1, max: 1 };

/// The versions that a program speaks, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionRange {
    /// The oldest.
    pub min: u16,
    /// The newest.
    pub max: u16,
}

impl VersionRange {
    /// Returns the newest version that both speak.
    pub fn common(self, other: Self) -> Option<u16> {
        let newest = self.max.min(other.max);
        (newest >= self.min.max(other.min)).then_some(newest)
    }

    /// Says whether the range names at least one version.
    pub const fn is_valid(self) -> bool {
        self.min >= 1 && self.min <= self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn range(min: u16, max: u16) -> VersionRange {
        VersionRange { min, max }
    }

    #[test]
    fn the_newest_common_version_is_chosen() {
        assert_eq!(range(1, 3).common(range(2, 5)), Some(3));
        assert_eq!(range(2, 5).common(range(1, 3)), Some(3));
        assert_eq!(range(1, 1).common(range(1, 1)), Some(1));
        assert_eq!(range(1, 1).common(range(2, 3)), None);
        assert_eq!(range(4, 5).common(range(1, 3)), None);
    }

    #[test]
    fn an_empty_range_is_not_valid() {
        assert!(SPOKEN.is_valid());
        assert!(!range(2, 1).is_valid());
        assert!(!range(0, 1).is_valid());
    }
}
