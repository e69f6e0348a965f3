//! Reading and writing bytes, with at most one descriptor beside them.

use crate::stream::Stream;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

/// Bytes of ancillary data for one descriptor. The padding has room for a second one, which is
/// closed at once; the kernel itself closes what does not fit.
const ANCILLARY_BYTES: usize = rustix::cmsg_space!(ScmRights(1));

/// Writes what fits now by `sendmsg(2)`, and a descriptor with its first byte (`SCM_RIGHTS`).
///
/// A closed peer is EPIPE and no signal.
pub(crate) fn send(
    stream: &Stream,
    parts: &[IoSlice<'_>],
    descriptor: Option<BorrowedFd<'_>>,
) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); ANCILLARY_BYTES];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let descriptors = descriptor.as_slice();
    if !descriptors.is_empty() {
        let pushed = ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
        assert!(pushed, "the space was made for one descriptor");
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    rustix::io::retry_on_intr(|| rustix::net::sendmsg(stream, parts, &mut ancillary, flags))
}

/// Reads what is there by `recvmsg(2)`; 0 bytes are the end.
///
/// A read ends behind the bytes that a descriptor came with (`unix(7)`), so the descriptor belongs
/// to the last of them. It is closed on exec; any further one is closed.
pub(crate) fn receive(
    stream: &Stream,
    buffer: &mut [u8],
) -> Result<(usize, Option<OwnedFd>), Errno> {
    let mut space = [MaybeUninit::uninit(); ANCILLARY_BYTES];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let mut parts = [IoSliceMut::new(buffer)];
    let received = rustix::io::retry_on_intr(|| {
        rustix::net::recvmsg(stream, &mut parts, &mut ancillary, flags)
    })?;
    let mut first = None;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            for descriptor in descriptors {
                // What is not the first is dropped here, which closes it.
                first.get_or_insert(descriptor);
            }
        }
    }
    Ok((received.bytes, first))
}

/// Reads what is there by `recv(2)`; the kernel closes descriptors that come with it.
pub(crate) fn receive_bytes(stream: &Stream, buffer: &mut [u8]) -> Result<usize, Errno> {
    rustix::io::retry_on_intr(|| rustix::net::recv(stream, &mut *buffer, RecvFlags::DONTWAIT))
        .map(|(bytes, _)| bytes)
}
