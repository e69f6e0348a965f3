//! Descriptors, processes and memory run out at every step in turn: the answer is clear, nothing is
//! left, no exit is lost, and the same key works once the cause is gone.

mod bed;
mod descriptors;
mod memory;
mod processes;
