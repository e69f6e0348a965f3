//! What this machine can clean, measured with a probe child.
