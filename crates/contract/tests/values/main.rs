//! Values besides the request: what authorities answer, what hosts define, what drivers deliver.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod activation;
mod binding;
mod credential;
mod delivery;
mod gateway;
mod grant;
mod policy;
mod profile;
mod sample;
