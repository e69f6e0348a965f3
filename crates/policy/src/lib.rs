//! The host's configuration snapshot: the embedded default binding, launch policy and profile with their digests, and admitted roots.
