//! The operations against a root of their own, with the runner played by the test.

mod attach;
mod cleanup;
mod close_stdin;
mod looks;
mod measure;
mod prepare;
mod prepare_order;
mod prune;
mod reconcile;
mod reconcile_table;
mod resolve;
mod session;
mod simulation;
mod start;
mod stop;
mod stop_revoked;
mod streams;
mod sweep;
