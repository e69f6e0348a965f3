//! What a host supplies behind a trait: nothing here touches the system by itself.

mod broker;

pub use broker::{CredentialBroker, Handed, ProjectionAsk, WriteBack, WrittenBack};
