//! Attempt homes under one private root, temporary directories, the spool and transcript log, and removal with a proof.
