//! Measuring one executable file: digest, kind, interpreter and size, and handing its open descriptor on.
