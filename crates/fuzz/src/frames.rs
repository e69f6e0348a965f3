//! The frames of a link, in whatever pieces they come.

use crate::input::Input;
use crate::messages::{read, sound};
use placement_protocol::{Decoder, Frame, FrameError, Header, LinkKind, encode};

const LINKS: &[LinkKind] = &[LinkKind::HostPort, LinkKind::Control, LinkKind::Data];

/// Everything that a decoder gives out, how it ends, and whether that is within a frame.
type Decoded = (Vec<(Header, Vec<u8>)>, Result<bool, FrameError>);

/// The first byte chooses the link, the second one the pieces.
pub(crate) fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let link = input.choose(LINKS);
    let piece = usize::from(input.byte()) + 1;
    let wire = input.rest();
    let whole = decode(link, wire, wire.len().max(1));
    assert_eq!(decode(link, wire, piece), whole, "the pieces change nothing");
    let mut written = Vec::new();
    for (header, payload) in &whole.0 {
        let frame = Frame::new(*header, payload.clone()).expect("it was decoded");
        encode(&frame, &mut written);
        read(*header, payload);
    }
    assert!(wire.starts_with(&written), "frames are written as they came");
}

fn decode(link: LinkKind, wire: &[u8], piece: usize) -> Decoded {
    let mut decoder = Decoder::new(link);
    let (mut frames, mut rest) = (Vec::new(), wire);
    while !rest.is_empty() {
        match decoder.push(&rest[..rest.len().min(piece)]) {
            Ok(taken) => rest = &rest[taken..],
            Err(error) => return (frames, Err(error)),
        }
        if let Some(frame) = decoder.take_frame() {
            frames.push((*frame.header(), frame.payload().to_vec()));
        }
    }
    (frames, Ok(decoder.is_inside_frame()))
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let numbers = 0_u8..;
    let links = numbers.zip(LINKS).map(|(number, link)| {
        let mut wire = vec![number, 6];
        for frame in sound().iter().filter(|frame| frame.header().kind.belongs_to(*link)) {
            encode(frame, &mut wire);
        }
        wire
    });
    links.collect()
}
