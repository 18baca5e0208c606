//! Bytes from a guest, or from a host: frames are bounded, messages are what the protocol says or
//! an error.
#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use podbay::wire::frame;
use podbay::wire::message::ToGuest;
use podbay::wire::message::ToHost;
use tokio_util::codec::Decoder;

fuzz_target!(|data: &[u8]| {
    let mut codec = frame::codec();
    let mut bytes = BytesMut::from(data);
    while let Ok(Some(body)) = codec.decode(&mut bytes) {
        assert!(body.len() <= frame::MAX_FRAME);
        check(&body);
    }
    check(data);
});

fn check(body: &[u8]) {
    if let Ok(message) = frame::decode::<ToHost>(body) {
        let again = frame::encode(&message).expect("what was read can be written");
        let twice = frame::decode::<ToHost>(&again).expect("and read again");
        assert_eq!(frame::encode(&twice).expect("and written"), again);
    }
    if let Ok(message) = frame::decode::<ToGuest>(body) {
        let again = frame::encode(&message).expect("what was read can be written");
        frame::decode::<ToGuest>(&again).expect("and read again");
    }
}
