use flate2::Compress;
use flate2::Compression;
use flate2::Decompress;
use flate2::FlushCompress;
use flate2::FlushDecompress;
use flate2::Status;

/// Smaller contents are not compressed.
const LEAST: usize = 64;

/// How much of a large content is compressed as a trial: pictures and archives do not get smaller.
const SAMPLE: usize = 64 * 1024;

/// A compressor that is reused for many contents: setting one up takes longer than compressing most
/// files.
pub(super) struct Deflate {
    compress: Compress,
    out: Vec<u8>,
}

impl Default for Deflate {
    fn default() -> Self {
        Self {
            compress: Compress::new(Compression::fast(), false),
            out: Vec::new(),
        }
    }
}

impl Deflate {
    /// Returns the compressed content; `None` if that saves too little.
    pub(super) fn shrink(&mut self, content: &[u8]) -> Option<&[u8]> {
        if content.len() < LEAST || content.len() > 4 * SAMPLE && !self.run(&content[..SAMPLE]) {
            return None;
        }
        self.run(content).then_some(&self.out)
    }

    fn run(&mut self, content: &[u8]) -> bool {
        self.compress.reset();
        self.out.clear();
        // Enough for any output: the fastest level of zlib-rs 0.6.8 panics where its output does
        // not fit.
        self.out.reserve(content.len() + content.len() / 8 + 1024);
        let status = self
            .compress
            .compress_vec(content, &mut self.out, FlushCompress::Finish);
        matches!(status, Ok(Status::StreamEnd))
            && self.out.len() < content.len() - content.len() / 16
    }
}

/// Decompresses; `None` if the bytes are not a content of that length.
pub(super) fn grow(stored: &[u8], n_bytes: usize) -> Option<Vec<u8>> {
    let mut content = Vec::with_capacity(n_bytes);
    let status =
        Decompress::new(false).decompress_vec(stored, &mut content, FlushDecompress::Finish);
    (matches!(status, Ok(Status::StreamEnd)) && content.len() == n_bytes).then_some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(content: &[u8], shrinks: bool) {
        let mut deflate = Deflate::default();
        for _ in 0..2 {
            let stored = deflate.shrink(content).map(<[u8]>::to_vec);
            assert_eq!(stored.is_some(), shrinks, "{} bytes", content.len());
            if let Some(stored) = stored {
                assert!(stored.len() < content.len());
                assert_eq!(grow(&stored, content.len()).as_deref(), Some(content));
                assert_eq!(grow(&stored, content.len() - 1), None);
                assert_eq!(grow(&stored[..stored.len() - 1], content.len()), None);
            }
        }
    }

    #[test]
    fn incompressible_content_is_stored_uncompressed() {
        let noise: Vec<u8> = (0..20_000_u32)
            .flat_map(|n| {
                super::super::ObjectId::of(&n.to_le_bytes())
                    .as_bytes()
                    .to_owned()
            })
            .collect();
        check(b"", false);
        check(&[7; LEAST - 1], false);
        check(&[7; LEAST], true);
        check(&vec![7; 1_000_000], true);
        check(&noise, false);
        check(&noise[..100_000], false);
        check(&[noise.as_slice(), &vec![7; 100_000]].concat(), false);
        check(&[&vec![7; SAMPLE], noise.as_slice()].concat(), false);
        check(&[&vec![7; 900_000], noise.as_slice()].concat(), true);
    }
}
