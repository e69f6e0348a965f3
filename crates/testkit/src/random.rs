//! A generator whose seed repeats a run.

/// Generates the same sequence for the same seed (`SplitMix64`); not for secrets.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// Makes a generator from a seed.
    pub const fn seeded(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Returns the next number.
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`; the slight bias of a remainder does not matter to a test.
    ///
    /// # Panics
    ///
    /// When `end` is 0, below which there is nothing.
    pub const fn below(&mut self, end: u64) -> u64 {
        assert!(end > 0, "nothing is below 0");
        self.next_u64() % end
    }

    /// Returns that many bytes.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(length);
        while bytes.len() < length {
            let word = self.next_u64().to_le_bytes();
            let wanted = word.len().min(length - bytes.len());
            bytes.extend_from_slice(&word[..wanted]);
        }
        bytes
    }

    /// Picks one of the choices.
    ///
    /// # Panics
    ///
    /// When there is nothing to choose from.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        let count = u64::try_from(choices.len()).expect("a length fits 64 bits");
        let index = usize::try_from(self.below(count)).expect("below a length");
        &choices[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_that_of_splitmix64() {
        let mut random = Random::seeded(1_234_567);
        assert_eq!(random.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(random.next_u64(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn every_number_below_a_small_end_comes_up() {
        let mut random = Random::seeded(3);
        let seen: std::collections::BTreeSet<u64> = (0..200).map(|_| random.below(5)).collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn bytes_have_the_asked_length() {
        for length in [0, 1, 8, 13] {
            assert_eq!(Random::seeded(9).bytes(length).len(), length);
        }
    }

    #[test]
    #[should_panic(expected = "nothing is below 0")]
    fn picking_from_nothing_panics() {
        Random::seeded(1).pick::<u8>(&[]);
    }
}
