//! The runner of one attempt: claim, materialize, spawn, identify, publish, pump, exit, drain, finish.
