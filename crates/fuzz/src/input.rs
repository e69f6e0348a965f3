//! Taking an input apart: numbers and pieces from its front, zeros where it ends.

/// What is left of an input.
pub(crate) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or_default()
    }

    pub(crate) fn number16(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    pub(crate) fn number64(&mut self) -> u64 {
        (0..8).fold(0, |number, place| number | u64::from(self.byte()) << (8 * place))
    }

    /// Takes at most this many bytes.
    pub(crate) fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Takes a piece that is led by its length of 16 bits.
    pub(crate) fn piece(&mut self) -> &'a [u8] {
        let length = usize::from(self.number16());
        self.take(length)
    }

    /// Chooses one of several.
    pub(crate) fn choose<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.byte()) % choices.len()]
    }

    pub(crate) fn rest(self) -> &'a [u8] {
        self.0
    }
}

/// Writes a piece as [`Input::piece`] takes it.
pub(crate) fn piece(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).expect("a seed has short pieces");
    [&length.to_le_bytes(), bytes].concat()
}
