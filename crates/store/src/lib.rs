//! Receipts in SQLite: attempts, append-only evidence with its hash chain, and the guards as transactions.
