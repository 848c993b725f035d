//! The bytes before a place: whether a name or a word begins there depends on them.

/// How many bytes are kept from one piece of a stream to the next.
pub(super) const KNOWN: usize = 32;

/// The end of what was passed, and what was passed of the input since.
#[derive(Debug, Clone, Copy)]
pub(super) struct PrecedingBytes<'a> {
    pub(super) kept: &'a [u8; KNOWN],
    pub(super) input: &'a [u8],
}

impl PrecedingBytes<'_> {
    /// The byte at this distance; 0 is the one directly before. A space where nothing is known any more: it separates words.
    pub(super) fn back(&self, places: usize) -> u8 {
        if let Some(at) = self.input.len().checked_sub(places + 1) {
            return self.input[at];
        }
        // The byte comes before the input, so it is in what was kept, counted from its end.
        let at = KNOWN.checked_sub(places + 1 - self.input.len());
        at.map_or(b' ', |at| self.kept[at])
    }

    /// The two bytes directly before, in the order of the text.
    pub(super) fn two(&self) -> [u8; 2] {
        [self.back(1), self.back(0)]
    }

    /// How many bytes that names are made of stand directly before.
    pub(super) fn name(&self) -> usize {
        let is_in_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
        (0..KNOWN).take_while(|places| is_in_name(self.back(*places))).count()
    }

    /// Appends bytes to what is kept, and drops as many of the oldest.
    pub(super) fn keep(kept: &mut [u8; KNOWN], bytes: &[u8]) {
        if let Some(from) = bytes.len().checked_sub(KNOWN) {
            kept.copy_from_slice(&bytes[from..]);
        } else {
            kept.copy_within(bytes.len().., 0);
            kept[KNOWN - bytes.len()..].copy_from_slice(bytes);
        }
    }
}
