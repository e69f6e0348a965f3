//! The operations of placement, one file each; given the command that starts a runner.
