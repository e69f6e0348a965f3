//! Resource grants in host-configured form: admission against the host's roots and their physical resolution.
