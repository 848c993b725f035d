//! Hashes, and bytes as hexadecimal digits.

/// A SHA-256 digest: of an event and all before it, of a content, or of one text.
pub type Hash = [u8; 32];

/// A hash in lower-case hex.
pub fn hex(hash: &Hash) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    // Every event of a list has one: digits are written as bytes, which are all of ASCII.
    let mut out = vec![0; 64];
    for (pair, byte) in out.as_chunks_mut::<2>().0.iter_mut().zip(hash) {
        *pair = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
    }
    String::from_utf8(out).unwrap_or_default()
}

/// A hash from 64 hex digits; `None` if it is anything else.
pub fn parse_hex(text: &str) -> Option<Hash> {
    bytes_of_hex(text)?.try_into().ok()
}

/// The bytes that hexadecimal digits stand for; `None` if it is not that.
pub fn bytes_of_hex(digits: &str) -> Option<Vec<u8>> {
    // Checked digit by digit: `from_str_radix` accepts a `+` as well.
    let value = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(value(*high)? << 4 | value(*low)?)).collect()
}
