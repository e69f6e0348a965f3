//! Real processes, control groups and signals.

mod exit;
mod filtered;
mod gate;
mod leaf;
mod namespace;
mod own;
mod set_up;
mod support;
mod terminal;
mod tree;
