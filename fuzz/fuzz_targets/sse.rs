//! A server's event stream: nothing panics, bounds hold, and it is the same however it is cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use podbay::llm::sse::Decoder;
use podbay::llm::sse::Event;
use podbay::llm::sse::TooLarge;

fn decode(data: &[u8], step: usize) -> (Vec<Event>, Option<TooLarge>) {
    let mut decoder = Decoder::bounded(64, 256, 4096);
    let mut events = Vec::new();
    for chunk in data.chunks(step.max(1)) {
        if let Err(error) = decoder.feed(chunk, &mut events) {
            return (events, Some(error));
        }
    }
    events.extend(decoder.finish());
    (events, None)
}

fuzz_target!(|data: &[u8]| {
    let Some((&first, rest)) = data.split_first() else {
        return;
    };
    let (events, error) = decode(rest, usize::from(first & 15) + 1);
    assert!(events.iter().all(|event| event.data.len() <= 3 * 256));
    // Where a bound was passed, how far it got depends on the pieces.
    if error.is_none() && rest.len() <= 4096 {
        assert_eq!(decode(rest, rest.len()), (events, None));
    }
});
