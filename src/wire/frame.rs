//! Frames: a big-endian length of four bytes, then that many bytes of JSON.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio_util::codec::LengthDelimitedCodec;

/// Most bytes in one frame, without its length.
pub const MAX_FRAME: usize = 8 * 1024 * 1024;

/// Most values in one frame. The smallest take two bytes there and some thirty times as many in
/// memory; the longest list that either end sends has a small fraction of this.
pub const MAX_VALUES: usize = 500_000;

/// Why a frame cannot be written or read.
#[derive(Debug, Error)]
pub enum Error {
    #[error("a frame of {bytes} bytes is over the limit of {MAX_FRAME} bytes")]
    TooLong { bytes: usize },
    #[error("a frame is not what the protocol says")]
    Malformed(#[source] serde_json::Error),
    #[error("a frame has more than {MAX_VALUES} values")]
    TooMany,
}

/// Returns the codec of both ends; it refuses a longer frame before it allocates memory for it.
pub fn codec() -> LengthDelimitedCodec {
    LengthDelimitedCodec::builder()
        .big_endian()
        .length_field_length(4)
        .max_frame_length(MAX_FRAME)
        .new_codec()
}

pub fn encode<T: Serialize>(message: &T) -> Result<Bytes, Error> {
    let json = serde_json::to_vec(message).map_err(Error::Malformed)?;
    if json.len() > MAX_FRAME {
        return Err(Error::TooLong { bytes: json.len() });
    }
    Ok(Bytes::from(json))
}

pub fn decode<T: DeserializeOwned>(frame: &[u8]) -> Result<T, Error> {
    if has_too_many_values(frame) {
        return Err(Error::TooMany);
    }
    serde_json::from_slice(frame).map_err(Error::Malformed)
}

/// Counts the characters that begin or separate values, outside of strings. For invalid JSON the
/// result is arbitrary: that is refused later.
fn has_too_many_values(frame: &[u8]) -> bool {
    // Each value but the first has such a character before it.
    if frame.len() < 2 * MAX_VALUES {
        return false;
    }
    let (mut at, mut n_values) = (0, 1);
    while let Some(&byte) = frame.get(at) {
        at += 1;
        match byte {
            b',' | b'[' | b'{' => n_values += 1,
            b'"' => {
                while let Some(found) = memchr::memchr2(b'"', b'\\', &frame[at..]) {
                    at += found + 1;
                    if frame[at - 1] == b'"' {
                        break;
                    }
                    at = frame.len().min(at + 1);
                }
            }
            _ => {}
        }
    }
    n_values > MAX_VALUES
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use proptest::prelude::*;
    use tokio_util::codec::Decoder;

    use super::*;
    use crate::CallId;
    use crate::message::Data;
    use crate::message::Stream;
    use crate::message::ToHost;

    #[test]
    fn a_length_over_the_limit_is_refused_before_its_bytes_arrive() {
        let mut codec = codec();
        let mut bytes = BytesMut::from(&(MAX_FRAME as u32 + 1).to_be_bytes()[..]);
        assert!(codec.decode(&mut bytes).is_err());
        assert!(bytes.capacity() < 4096);
    }

    #[test]
    fn a_frame_of_too_many_values_is_refused_and_a_long_text_is_not() {
        let done =
            |output: &str| format!(r#"{{"type":"done","id":1,"output":{output}}}"#).into_bytes();
        for list in [
            "0,".repeat(MAX_VALUES),
            "[],".repeat(MAX_VALUES),
            "\"x\",".repeat(MAX_VALUES),
            r#""\",\\","#.repeat(MAX_VALUES),
        ] {
            let refused = decode::<ToHost>(&done(&format!("[{}]", list.trim_end_matches(','))));
            assert!(matches!(refused, Err(Error::TooMany)), "{refused:?}");
        }
        for text in [",".repeat(7 << 20), r#"\"\\,[{"#.repeat(1 << 20)] {
            let long = format!(r#"{{"type":"closing","reason":"{text}"}}"#).into_bytes();
            assert!(matches!(
                decode::<ToHost>(&long),
                Ok(ToHost::Closing { .. })
            ));
        }
        // An unterminated string is an invalid message, not a panic.
        for end in ["\"", "\"\\", "\"x"] {
            let cut = [vec![b' '; 2 * MAX_VALUES], end.as_bytes().to_vec()].concat();
            assert!(matches!(decode::<ToHost>(&cut), Err(Error::Malformed(_))));
        }
    }

    #[test]
    fn a_call_without_its_fields_names_them() {
        let error = decode::<ToHost>(br#"{"type":"done","id":1}"#).expect_err("output is missing");
        let Error::Malformed(source) = error else {
            panic!("{error:?}")
        };
        assert!(source.to_string().contains("output"), "{source}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_error_and_never_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
            let _ = decode::<ToHost>(&bytes);
        }

        #[test]
        fn chunks_carry_any_bytes(data in proptest::collection::vec(any::<u8>(), 0..512)) {
            let chunk = ToHost::Chunk { id: CallId(7), stream: Stream::Stderr, data: Data(data) };
            let frame = encode(&chunk).expect("fits");
            prop_assert_eq!(decode::<ToHost>(&frame).expect("reads back"), chunk);
        }
    }
}
