//! The facade an embedder uses: open a root, launch a program, read its output, finish with proof.
