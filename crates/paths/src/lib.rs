//! Directories held by descriptor: physical resolution, write-root containment, no-follow opens, atomic publication and removal that never follows a link.
