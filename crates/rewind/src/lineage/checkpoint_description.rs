//! A checkpointer's description of a checkpoint, for a person who cannot read a UUID.

use serde::Serialize;
use serde_json::Value;

/// A checkpoint as its checkpointer describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CheckpointDescription {
    /// When it was made, in the checkpointer's own words.
    pub time: Option<String>,
    /// The number of its step; `None`: the metadata has none.
    pub step: Option<i64>,
    /// What made it: `input`, `loop`, `update`, `fork`.
    pub source: Option<String>,
    /// Its namespace; empty for that of the graph itself.
    pub namespace: String,
}

impl CheckpointDescription {
    /// `kind` names the format of `checkpoint`, which may be only its beginning: `msgpack` or `json`. The metadata is JSON.
    pub(crate) fn of(kind: &str, checkpoint: &[u8], metadata: &[u8], namespace: String) -> Self {
        let metadata: Value = serde_json::from_slice(metadata).unwrap_or_default();
        let time = match kind {
            "msgpack" => text_in_map(checkpoint, "ts"),
            // JSON that was cut off is not read at all: such a checkpoint has no time.
            _ => serde_json::from_slice::<Value>(checkpoint).ok().and_then(|value| text(&value, "ts")),
        };
        Self { time, step: metadata.get("step").and_then(Value::as_i64), source: text(&metadata, "source"), namespace }
    }
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}

/// The text under a key of the map with which these bytes of `MessagePack` begin.
fn text_in_map(bytes: &[u8], wanted: &str) -> Option<String> {
    let mut reader = Reader(bytes);
    for _ in 0..reader.map()? {
        if reader.text()? == wanted.as_bytes() {
            return String::from_utf8(reader.text()?.to_vec()).ok();
        }
        reader.skip()?;
    }
    None
}

/// Reads `MessagePack` (<https://github.com/msgpack/msgpack/blob/master/spec.md>) as far as values must be skipped. `None`: it ends early.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    /// Reads a length of this many bytes, the most significant first.
    fn length(&mut self, bytes: usize) -> Option<usize> {
        self.take(bytes).map(|bytes| bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
    }

    fn map(&mut self) -> Option<usize> {
        match self.byte()? {
            byte @ 0x80..=0x8f => Some(usize::from(byte & 0x0f)),
            0xde => self.length(2),
            0xdf => self.length(4),
            _ => None,
        }
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let length = match self.byte()? {
            byte @ 0xa0..=0xbf => usize::from(byte & 0x1f),
            0xd9 => self.length(1)?,
            0xda => self.length(2)?,
            0xdb => self.length(4)?,
            _ => return None,
        };
        self.take(length)
    }

    /// Skips one value, with everything in it.
    fn skip(&mut self) -> Option<()> {
        // Counts instead of recursing: how deep a value is nested is up to the application.
        let mut left = 1_usize;
        while left > 0 {
            left -= 1;
            let (bytes, values) = match self.byte()? {
                0x00..=0x7f | 0xc0..=0xc3 | 0xe0..=0xff => (0, 0),
                byte @ 0x80..=0x8f => (0, 2 * usize::from(byte & 0x0f)),
                byte @ 0x90..=0x9f => (0, usize::from(byte & 0x0f)),
                byte @ 0xa0..=0xbf => (usize::from(byte & 0x1f), 0),
                0xc4 | 0xd9 => (self.length(1)?, 0),
                0xc5 | 0xda => (self.length(2)?, 0),
                0xc6 | 0xdb => (self.length(4)?, 0),
                // An extension has one byte more, for its type.
                0xc7 => (self.length(1)?.checked_add(1)?, 0),
                0xc8 => (self.length(2)?.checked_add(1)?, 0),
                0xc9 => (self.length(4)?.checked_add(1)?, 0),
                0xcc | 0xd0 => (1, 0),
                // From 0xd4 on, extensions of a fixed length.
                0xcd | 0xd1 | 0xd4 => (2, 0),
                0xca | 0xce | 0xd2 => (4, 0),
                0xcb | 0xcf | 0xd3 => (8, 0),
                0xd5 => (3, 0),
                0xd6 => (5, 0),
                0xd7 => (9, 0),
                0xd8 => (17, 0),
                0xdc => (0, self.length(2)?),
                0xdd => (0, self.length(4)?),
                0xde => (0, self.length(2)?.checked_mul(2)?),
                0xdf => (0, self.length(4)?.checked_mul(2)?),
            };
            self.take(bytes)?;
            left = left.checked_add(values)?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::CheckpointDescription;

    fn described(kind: &str, checkpoint: &[u8]) -> CheckpointDescription {
        CheckpointDescription::of(kind, checkpoint, br#"{"source": "loop", "step": 3, "parents": {}}"#, String::new())
    }

    #[test]
    fn time_step_and_source_are_read_in_both_forms() {
        // {"v": 4, "channel_values": {"x": [1, -1, 1.5, ext], "b": bin}, "ts": "2026-01-01"}
        let packed = b"\x83\xa1v\x04\xaechannel_values\x82\xa1x\x94\x01\xff\xcb\x3f\xf8\0\0\0\0\0\0\xc7\x02\x05ab\xa1b\xc4\x03abc\
                       \xa2ts\xaa2026-01-01and what follows";
        let json = br#"{"v": 4, "ts": "2026-01-01", "id": "x"}"#;
        for (kind, checkpoint) in [("msgpack", &packed[..]), ("json", &json[..])] {
            let described = described(kind, checkpoint);
            assert_eq!(described.time.as_deref(), Some("2026-01-01"), "{kind}");
            assert_eq!((described.step, described.source.as_deref()), (Some(3), Some("loop")));
        }
    }

    #[test]
    fn what_is_cut_off_or_of_another_kind_has_no_time() {
        let packed = b"\x82\xa1v\x04\xa2ts\xaa2026-01-01";
        for length in 0..packed.len() {
            assert_eq!(described("msgpack", &packed[..length]).time, None, "{length}");
        }
        for bytes in
            [&b"\x93\x01\x02\x03"[..], b"\xdf\xff\xff\xff\xff\xc0", b"\x81\xa1v\xdd\xff\xff\xff\xff", b"\x81\xa2ts\x05"]
        {
            assert_eq!(described("msgpack", bytes).time, None);
        }
        assert_eq!(CheckpointDescription::of("json", b"{", b"[", String::new()), CheckpointDescription::default());
    }
}
