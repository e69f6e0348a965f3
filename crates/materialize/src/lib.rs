//! Making a validated intent real, in one visible order.
