//! The execution and the cleanup state machine as pure functions, and folding evidence into a state.
