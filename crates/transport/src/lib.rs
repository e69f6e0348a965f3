//! Unix sockets by descriptor, peer credentials, descriptor passing and the framed link.
