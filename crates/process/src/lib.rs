//! One child: containment, exec gate, spawn, pipes, signals and exit observation; the only crate with unsafe code.
