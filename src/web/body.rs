//! The body of an answer, within its bounds.

use std::io::Read;

use bytes::Bytes;
use flate2::read::GzDecoder;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::CONTENT_ENCODING;
use hyper::header::HeaderMap;

use super::limits::BODY;

/// What was read of a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) bytes: Vec<u8>,
    /// There is more than is read.
    pub(crate) is_cut: bool,
}

/// Reads a body to its end, or to the bound.
pub(crate) async fn read(headers: &HeaderMap, mut body: Incoming) -> Result<Content, String> {
    let encoding = headers.get(CONTENT_ENCODING).map(|value| {
        String::from_utf8_lossy(value.as_bytes())
            .trim()
            .to_ascii_lowercase()
    });
    let mut bytes = Vec::new();
    let mut is_cut = false;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| format!("the answer broke off: {error}"))?;
        let data = frame.into_data().unwrap_or_else(|_| Bytes::new());
        let room = BODY - bytes.len();
        bytes.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            is_cut = true;
            break;
        }
    }
    match encoding.as_deref() {
        None | Some("" | "identity") => Ok(Content { bytes, is_cut }),
        Some("gzip" | "x-gzip") => unpacked(&bytes, is_cut),
        Some(other) => Err(format!(
            "its content encoding is `{}`, and only gzip was asked for",
            other.chars().take(40).collect::<String>()
        )),
    }
}

/// Unpacks what may become a thousand times as large.
fn unpacked(packed: &[u8], was_cut: bool) -> Result<Content, String> {
    let mut bytes = Vec::new();
    let mut unpacking = GzDecoder::new(packed).take(BODY as u64 + 1);
    let read = unpacking.read_to_end(&mut bytes);
    let is_cut = was_cut || bytes.len() > BODY;
    bytes.truncate(BODY);
    match read {
        Err(error) if !was_cut => Err(format!("it is no gzip: {error}")),
        _ => Ok(Content { bytes, is_cut }),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).expect("packed");
        encoder.finish().expect("packed")
    }

    #[test]
    fn a_bomb_is_unpacked_up_to_the_bound_and_what_is_no_gzip_is_refused() {
        let small = unpacked(&packed(b"words"), false).expect("gzip");
        assert_eq!(
            (small.bytes.as_slice(), small.is_cut),
            (&b"words"[..], false)
        );
        let bomb = packed(&vec![b'x'; 64 << 20]);
        assert!(bomb.len() < 100_000);
        let cut = unpacked(&bomb, false).expect("gzip");
        assert_eq!((cut.bytes.len(), cut.is_cut), (BODY, true));
        assert!(unpacked(b"words", false).is_err());
    }
}
