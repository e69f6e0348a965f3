//! A whole host for integration tests: root, store, service and runner command.
