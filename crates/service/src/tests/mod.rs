//! The operations against a root of their own, with the runner played by the test.

mod attach;
mod cleanup;
mod looks;
mod prepare;
mod reconcile;
mod start;
mod stop;
mod streams;
