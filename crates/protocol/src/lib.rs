//! Messages and framing between service, runner and recipient, without any I/O.
