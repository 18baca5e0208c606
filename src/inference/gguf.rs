//! The header of a GGUF file: enough to check that the model is complete, and what running it
//! takes.
//!
//! The format: <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>. Every length is checked
//! against the end of the file before it is used.

use std::fs::File;
use std::io;
use std::io::BufReader;
use std::io::Read;

/// Most levels of nested arrays.
const DEEPEST: u32 = 4;

/// Longest string that is kept; longer ones are skipped.
const LONGEST_TEXT: u64 = 64 * 1024;

/// Facts from the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct GgufHeader {
    /// Context length in tokens that the model was trained for.
    pub(super) context: Option<u64>,
    /// Bytes of memory per token of context, at 16 bits a value.
    pub(super) bytes_per_token: Option<u64>,
}

/// Why a file is not a usable model.
#[derive(Debug)]
pub(super) enum GgufError {
    NotGguf,
    Version(u32),
    /// The file is shorter than its header says; `needed` is set if the header itself is complete.
    Truncated {
        length: u64,
        needed: Option<u64>,
    },
    Malformed(&'static str),
    Unreadable(io::Error),
}

impl std::fmt::Display for GgufError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotGguf => f.write_str("it is not a GGUF file"),
            Self::Version(version) => write!(
                f,
                "it is a GGUF file of version {version}, and only 2 and 3 are known"
            ),
            Self::Truncated {
                length,
                needed: Some(needed),
            } => {
                write!(
                    f,
                    "it is truncated: it has {length} bytes, and its head tells of {needed}"
                )
            }
            Self::Truncated {
                length,
                needed: None,
            } => write!(
                f,
                "it is truncated: it has {length} bytes, which end within its head"
            ),
            Self::Malformed(what) => write!(f, "it is damaged: {what}"),
            Self::Unreadable(error) => write!(f, "it cannot be read: {error}"),
        }
    }
}

/// The first bytes of a GGUF file.
pub(super) const MAGIC: &[u8; 4] = b"GGUF";

/// Reads the header of a file and checks that the file is complete.
pub(super) fn read(file: File) -> Result<GgufHeader, GgufError> {
    let length = file.metadata().map_err(GgufError::Unreadable)?.len();
    read_part(file, length)
}

/// Like [`read`], for `length` bytes from the file's current position: the model may be inside
/// another file.
pub(super) fn read_part(file: File, length: u64) -> Result<GgufHeader, GgufError> {
    let mut reader = Reader {
        inner: BufReader::with_capacity(64 * 1024, file),
        at: 0,
        length,
    };
    match reader.bytes() {
        Ok(magic) if magic == *MAGIC => {}
        Err(error @ GgufError::Unreadable(_)) => return Err(error),
        _ => return Err(GgufError::NotGguf),
    }
    let version = reader.u32()?;
    if !matches!(version, 2 | 3) {
        return Err(GgufError::Version(version));
    }
    let (n_tensors, n_keys) = (reader.u64()?, reader.u64()?);
    if n_keys == 0 {
        return Err(GgufError::Malformed("its header does not say what it is"));
    }
    let mut facts = Facts::default();
    for _ in 0..n_keys {
        let key = reader.text()?;
        let kind = reader.u32()?;
        facts.take(&key, reader.value(kind, 0)?);
    }
    // The first part of a split model may have no tensors.
    if n_tensors == 0 && facts.parts.unwrap_or(0) < 2 {
        return Err(GgufError::Malformed(
            "it has no tensors, so it holds no model",
        ));
    }
    let mut end = 0;
    for _ in 0..n_tensors {
        end = end.max(reader.tensor()?);
    }
    let alignment = facts.alignment.unwrap_or(32).clamp(1, 1 << 20);
    let needed = reader.at.next_multiple_of(alignment).saturating_add(end);
    if n_tensors > 0 && needed > length {
        return Err(GgufError::Truncated {
            length,
            needed: Some(needed),
        });
    }
    Ok(facts.head())
}

#[derive(Default)]
struct Facts {
    alignment: Option<u64>,
    /// Number of files that the model was split into.
    parts: Option<u64>,
    context: Option<u64>,
    layers: Option<u64>,
    embedding: Option<u64>,
    heads: Option<u64>,
    /// Of each layer, or the sum of all where they differ.
    key_value_heads: Option<Value>,
    key: Option<u64>,
    value: Option<u64>,
}

/// The kept part of a value.
#[derive(Clone, Copy)]
enum Value {
    Number(u64),
    Sum(u64),
    Other,
}

impl Facts {
    fn take(&mut self, key: &str, value: Value) {
        let number = match value {
            Value::Number(number) => Some(number),
            _ => None,
        };
        if key == "general.alignment" {
            self.alignment = number;
        }
        if key == "split.count" {
            self.parts = number;
        }
        // The first component names the architecture.
        match key.split_once('.').map_or("", |(_, rest)| rest) {
            "context_length" => self.context = number,
            "block_count" => self.layers = number,
            "embedding_length" => self.embedding = number,
            "attention.head_count" => self.heads = number,
            "attention.head_count_kv" => self.key_value_heads = Some(value),
            "attention.key_length" => self.key = number,
            "attention.value_length" => self.value = number,
            _ => {}
        }
    }

    fn head(&self) -> GgufHeader {
        let bytes_per_token = || {
            let heads = match (self.key_value_heads, self.layers?) {
                (Some(Value::Sum(sum)), _) => sum,
                (Some(Value::Number(heads)), layers) => heads.checked_mul(layers)?,
                (_, layers) => self.heads?.checked_mul(layers)?,
            };
            let usual = self
                .embedding
                .zip(self.heads)
                .and_then(|(width, heads)| width.checked_div(heads));
            let width = self.key.or(usual)?.checked_add(self.value.or(usual)?)?;
            heads.checked_mul(width)?.checked_mul(2)
        };
        GgufHeader {
            context: self.context,
            bytes_per_token: bytes_per_token(),
        }
    }
}

struct Reader {
    inner: BufReader<File>,
    at: u64,
    length: u64,
}

impl Reader {
    fn truncated(&self) -> GgufError {
        GgufError::Truncated {
            length: self.length,
            needed: None,
        }
    }

    /// Advances by `n` bytes, which must be before the end.
    fn advance(&mut self, n: u64) -> Result<(), GgufError> {
        if n > self.length.saturating_sub(self.at) {
            return Err(self.truncated());
        }
        self.at += n;
        Ok(())
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), GgufError> {
        self.advance(bytes.len() as u64)?;
        self.inner
            .read_exact(bytes)
            .map_err(|error| match error.kind() {
                // The file became shorter meanwhile.
                io::ErrorKind::UnexpectedEof => self.truncated(),
                _ => GgufError::Unreadable(error),
            })
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], GgufError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn u32(&mut self) -> Result<u32, GgufError> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, GgufError> {
        self.bytes().map(u64::from_le_bytes)
    }

    fn skip(&mut self, n: u64) -> Result<(), GgufError> {
        self.advance(n)?;
        let offset = i64::try_from(n).map_err(|_| self.truncated())?;
        self.inner
            .seek_relative(offset)
            .map_err(GgufError::Unreadable)
    }

    fn text(&mut self) -> Result<String, GgufError> {
        let length = self.u64()?;
        if length > self.length.saturating_sub(self.at) {
            return Err(self.truncated());
        }
        if length > LONGEST_TEXT {
            return Err(GgufError::Malformed("a name in it is longer than any name"));
        }
        let mut bytes = vec![0; length as usize];
        self.fill(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn value(&mut self, kind: u32, depth: u32) -> Result<Value, GgufError> {
        let number = match kind {
            0 => self.bytes().map(u8::from_le_bytes)?.into(),
            2 => self.bytes().map(u16::from_le_bytes)?.into(),
            4 => self.u32()?.into(),
            10 => self.u64()?,
            1 | 7 => return self.skip(1).map(|()| Value::Other),
            3 => return self.skip(2).map(|()| Value::Other),
            6 => return self.skip(4).map(|()| Value::Other),
            12 => return self.skip(8).map(|()| Value::Other),
            5 => match u64::try_from(self.bytes().map(i32::from_le_bytes)?) {
                Ok(number) => number,
                Err(_) => return Ok(Value::Other),
            },
            11 => match u64::try_from(self.bytes().map(i64::from_le_bytes)?) {
                Ok(number) => number,
                Err(_) => return Ok(Value::Other),
            },
            8 => {
                let length = self.u64()?;
                return self.skip(length).map(|()| Value::Other);
            }
            9 if depth < DEEPEST => return self.list(depth),
            _ => return Err(GgufError::Malformed("it has a value of an unknown kind")),
        };
        Ok(Value::Number(number))
    }

    fn list(&mut self, depth: u32) -> Result<Value, GgufError> {
        let kind = self.u32()?;
        let n = self.u64()?;
        let width = match kind {
            0 | 1 | 7 => 1,
            2 | 3 => 2,
            6 => 4,
            12 => 8,
            // Integers are summed: some models give one for each layer. Strings and arrays have
            // their own length.
            _ => {
                let mut sum = 0_u64;
                for _ in 0..n {
                    if let Value::Number(number) = self.value(kind, depth + 1)? {
                        sum = sum.saturating_add(number);
                    }
                }
                return Ok(Value::Sum(sum));
            }
        };
        let bytes = n.checked_mul(width).ok_or_else(|| self.truncated())?;
        self.skip(bytes)?;
        Ok(Value::Other)
    }

    /// Returns where a tensor ends, relative to the start of the tensor data.
    fn tensor(&mut self) -> Result<u64, GgufError> {
        self.text()?;
        let n_dimensions = self.u32()?;
        if n_dimensions > 8 {
            return Err(GgufError::Malformed(
                "a tensor in it has more than 8 dimensions",
            ));
        }
        let mut n_values = 1_u64;
        for _ in 0..n_dimensions {
            n_values = n_values.saturating_mul(self.u64()?);
        }
        let kind = self.u32()?;
        let offset = self.u64()?;
        let (values, bytes) = block(kind);
        Ok(offset.saturating_add((n_values / values).saturating_mul(bytes)))
    }
}

/// Returns values and bytes per block of a tensor's type. An unknown type counts as empty.
fn block(kind: u32) -> (u64, u64) {
    match kind {
        0 | 26 => (1, 4),
        1 | 25 | 30 => (1, 2),
        2 | 20 => (32, 18),
        3 => (32, 20),
        6 => (32, 22),
        7 => (32, 24),
        8 => (32, 34),
        9 => (32, 36),
        10 => (256, 84),
        11 => (256, 110),
        12 => (256, 144),
        13 => (256, 176),
        14 => (256, 210),
        15 => (256, 292),
        24 => (1, 1),
        27 | 28 => (1, 8),
        39 => (32, 17),
        _ => (1, 0),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Seek;
    use std::io::Write;

    use super::*;

    fn text(out: &mut Vec<u8>, text: &str) {
        out.extend((text.len() as u64).to_le_bytes());
        out.extend(text.as_bytes());
    }

    fn number(out: &mut Vec<u8>, key: &str, value: u32) {
        text(out, key);
        out.extend(4_u32.to_le_bytes());
        out.extend(value.to_le_bytes());
    }

    fn model() -> Vec<u8> {
        let mut out = b"GGUF".to_vec();
        out.extend(3_u32.to_le_bytes());
        out.extend(1_u64.to_le_bytes());
        out.extend(7_u64.to_le_bytes());
        number(&mut out, "llama.context_length", 2048);
        number(&mut out, "llama.block_count", 2);
        number(&mut out, "llama.embedding_length", 64);
        number(&mut out, "llama.attention.head_count", 4);
        number(&mut out, "llama.attention.head_count_kv", 2);
        text(&mut out, "tokenizer.ggml.tokens");
        out.extend(9_u32.to_le_bytes());
        out.extend(8_u32.to_le_bytes());
        out.extend(2_u64.to_le_bytes());
        text(&mut out, "a");
        text(&mut out, "bc");
        text(&mut out, "tokenizer.ggml.scores");
        out.extend(9_u32.to_le_bytes());
        out.extend(6_u32.to_le_bytes());
        out.extend(2_u64.to_le_bytes());
        out.extend([0; 8]);
        // One tensor of 32 x 2 values, Q8_0: two blocks of 34 bytes.
        text(&mut out, "output.weight");
        out.extend(2_u32.to_le_bytes());
        out.extend(32_u64.to_le_bytes());
        out.extend(2_u64.to_le_bytes());
        out.extend(8_u32.to_le_bytes());
        out.extend(0_u64.to_le_bytes());
        out.resize(out.len().next_multiple_of(32), 0);
        out.extend([7; 68]);
        out
    }

    fn parse(bytes: &[u8]) -> Result<GgufHeader, GgufError> {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(bytes).expect("written");
        file.rewind().expect("rewound");
        read(file)
    }

    #[test]
    fn a_complete_model_gives_context_and_memory() {
        let head = parse(&model()).expect("a model");
        // Two layers, two heads, sixteen values each for key and value, two bytes a value.
        assert_eq!(
            head,
            GgufHeader {
                context: Some(2048),
                bytes_per_token: Some(2 * 2 * 32 * 2)
            }
        );
    }

    #[test]
    fn a_model_cut_at_any_offset_is_truncated() {
        let whole = model();
        for length in 4..whole.len() {
            let problem = parse(&whole[..length]).expect_err("cut");
            assert!(
                matches!(problem, GgufError::Truncated { .. }),
                "{length}: {problem}"
            );
        }
        let problem = parse(&whole[..whole.len() - 1]).expect_err("cut");
        assert_eq!(
            problem.to_string(),
            format!(
                "it is truncated: it has {} bytes, and its head tells of {}",
                whole.len() - 1,
                whole.len()
            )
        );
        for length in 0..4 {
            assert!(
                matches!(parse(&whole[..length]), Err(GgufError::NotGguf)),
                "{length}"
            );
        }
    }

    #[test]
    fn a_header_without_contents_is_no_model() {
        let head = |n_tensors: u64, n_keys: u64| {
            [
                &b"GGUF\x03\0\0\0"[..],
                &n_tensors.to_le_bytes(),
                &n_keys.to_le_bytes(),
            ]
            .concat()
        };
        assert!(
            matches!(parse(&head(0, 0)), Err(GgufError::Malformed(problem)) if problem.contains("does not say"))
        );
        assert!(matches!(
            parse(&head(u64::MAX, u64::MAX)),
            Err(GgufError::Truncated { .. })
        ));
        let mut vocabulary = head(0, 1);
        number(&mut vocabulary, "llama.context_length", 2048);
        assert!(
            matches!(parse(&vocabulary), Err(GgufError::Malformed(problem)) if problem.contains("no tensors"))
        );
        // The first of several parts may have only the header.
        let mut first = head(0, 1);
        number(&mut first, "split.count", 3);
        assert!(parse(&first).is_ok());
    }

    #[test]
    fn a_model_within_another_file_is_read_up_to_its_end() {
        let whole = model();
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&[b"before".to_vec(), whole.clone(), vec![0; 5000]].concat())
            .expect("written");
        let mut at = |length: u64| {
            file.seek(io::SeekFrom::Start(6)).expect("found");
            read_part(file.try_clone().expect("another"), length)
        };
        at(whole.len() as u64).expect("a model");
        assert!(matches!(
            at(whole.len() as u64 - 1),
            Err(GgufError::Truncated {
                needed: Some(_),
                ..
            })
        ));
        assert!(matches!(
            at(100),
            Err(GgufError::Truncated { needed: None, .. })
        ));
    }

    #[test]
    fn a_damaged_gguf_file_never_causes_a_panic() {
        let whole = model();
        for at in 0..whole.len() - 68 {
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = value;
                let _ = parse(&damaged);
            }
        }
        let mut other = whole;
        other[4] = 9;
        assert!(matches!(parse(&other), Err(GgufError::Version(9))));
        assert!(matches!(
            parse(b"PK\x03\x04 not a model"),
            Err(GgufError::NotGguf)
        ));
    }
}
