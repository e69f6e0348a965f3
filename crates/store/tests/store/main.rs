//! The store as its callers see it: one file per operation.

#![expect(clippy::unwrap_used, reason = "a test and its helpers fail by it")]

mod authority;
mod evidence;
mod exit_record;
mod exit_record_properties;
mod intend;
mod ledger;
mod list;
mod open;
mod race;
mod record;
mod session;
mod support;
mod upgrade;
mod verify;
