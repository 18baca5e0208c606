//! Server-sent events, or lines of JSON, decoded incrementally within bounds.
//! The format is that of the HTML standard, section 9.2.6. Existing decoders have no bounds; a
//! server that sends one endless line must cause an error, not exhaust memory. Three deviations
//! from the standard:
//! - At the end of the stream an event whose lines are complete is delivered even if the blank line
//!   after it is missing, because some servers hang up right after `data: [DONE]`. An incomplete
//!   line is dropped: it would be half a JSON text.
//! - A line `error: {...}` counts as an event named `error`; older llama-servers write it so.
//! - A data line that begins an object after one that ended an object is a new event: some gateways
//!   drop the blank lines. No JSON text has a line that ends in `}` followed by one that begins
//!   with `{`, so no event is split by this.

use thiserror::Error;

/// Maximum line length in bytes. A server that does not stream tool calls sends up to 1 MiB of
/// arguments, escaped, in one line.
pub const MAX_LINE: usize = 2 * 1024 * 1024;
/// Maximum size of one event's data, in bytes.
pub const MAX_EVENT: usize = 4 * 1024 * 1024;
/// Maximum size of one stream, in bytes, comments included.
pub const MAX_STREAM: u64 = 128 * 1024 * 1024;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// The field `event`; empty if absent.
    pub name: String,
    /// The fields `data`, joined by line feeds; invalid UTF-8 becomes U+FFFD.
    pub data: String,
}

/// A bound was exceeded; decoding cannot continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{what} is over {limit} bytes")]
pub struct TooLarge {
    pub what: &'static str,
    pub limit: u64,
}

/// Decodes bytes into events, however the bytes are split.
#[derive(Debug)]
pub struct Decoder {
    line: Vec<u8>,
    name: String,
    /// The name before that one, if data preceded it: it belongs to that data if other data follows
    /// without a blank line.
    name_before: Option<String>,
    data: String,
    has_data: bool,
    n_bytes: u64,
    n_comments: u64,
    at_start: bool,
    /// The last byte was CR: an LF now belongs to it.
    after_cr: bool,
    max_line: usize,
    max_event: usize,
    max_stream: u64,
    /// Each line is an event.
    is_lines: bool,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::bounded(MAX_LINE, MAX_EVENT, MAX_STREAM)
    }
}

impl Decoder {
    /// Returns a decoder; with `is_lines` each line that is not blank is the data of an event.
    pub fn new(is_lines: bool) -> Self {
        Self {
            is_lines,
            ..Self::default()
        }
    }

    /// Returns a decoder with custom bounds, in bytes.
    pub fn bounded(max_line: usize, max_event: usize, max_stream: u64) -> Self {
        Self {
            line: Vec::new(),
            name: String::new(),
            name_before: None,
            data: String::new(),
            has_data: false,
            n_bytes: 0,
            n_comments: 0,
            at_start: true,
            after_cr: false,
            max_line,
            max_event,
            max_stream,
            is_lines: false,
        }
    }

    /// Decodes the next bytes and appends the events that they complete.
    pub fn feed(&mut self, mut bytes: &[u8], events: &mut Vec<Event>) -> Result<(), TooLarge> {
        self.n_bytes = self.n_bytes.saturating_add(bytes.len() as u64);
        if self.n_bytes > self.max_stream {
            return Err(TooLarge {
                what: "its stream",
                limit: self.max_stream,
            });
        }
        while let Some(&first) = bytes.first() {
            if std::mem::take(&mut self.after_cr) && first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes
                .iter()
                .position(|&byte| byte == b'\n' || byte == b'\r');
            let part = &bytes[..end.unwrap_or(bytes.len())];
            if self.line.len() + part.len() > self.max_line {
                return Err(TooLarge {
                    what: "a line of its stream",
                    limit: self.max_line as u64,
                });
            }
            self.line.extend_from_slice(part);
            let Some(end) = end else { break };
            self.after_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            self.end_line(events)?;
        }
        Ok(())
    }

    /// Returns the number of comments so far.
    pub fn n_comments(&self) -> u64 {
        self.n_comments
    }

    /// Returns how many bytes of an incomplete line are buffered.
    pub fn pending(&self) -> usize {
        self.line.len()
    }

    /// Ends the stream; returns the event that lacks only its blank line.
    /// A last line of JSON may lack its end.
    pub fn finish(mut self) -> Option<Event> {
        if self.is_lines && !self.line.is_empty() {
            let line = std::mem::take(&mut self.line);
            self.add_data(&line).ok()?;
        }
        self.take_event()
    }

    fn end_line(&mut self, events: &mut Vec<Event>) -> Result<(), TooLarge> {
        let mut line = std::mem::take(&mut self.line);
        let mut text = line.as_slice();
        if std::mem::take(&mut self.at_start) {
            text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
        }
        if self.is_lines {
            self.add_data(text)?;
            events.extend(
                self.take_event()
                    .filter(|event| !event.data.trim().is_empty()),
            );
        } else if text.is_empty() {
            events.extend(self.take_event());
        } else {
            let colon = text.iter().position(|&byte| byte == b':');
            let (field, value) = colon.map_or((text, &b""[..]), |colon| {
                (&text[..colon], &text[colon + 1..])
            });
            self.field(field, value.strip_prefix(b" ").unwrap_or(value), events)?;
        }
        // Keep the buffer for the next line, unless this one was unusually long.
        line.clear();
        line.shrink_to(16 * 1024);
        self.line = line;
        Ok(())
    }

    fn field(
        &mut self,
        field: &[u8],
        value: &[u8],
        events: &mut Vec<Event>,
    ) -> Result<(), TooLarge> {
        match field {
            b"data" => {
                self.part(value, events);
                self.add_data(value)?;
            }
            b"event" => self.rename(String::from_utf8_lossy(value).into_owned()),
            b"error" => {
                self.rename("error".to_owned());
                self.part(value, events);
                self.add_data(value)?;
            }
            b"" => self.n_comments += 1,
            // `id` and `retry` are for reconnecting, which we never do.
            _ => {}
        }
        Ok(())
    }

    fn rename(&mut self, name: String) {
        let before = std::mem::replace(&mut self.name, name);
        if self.has_data {
            self.name_before.get_or_insert(before);
        }
    }

    /// Ends the current event if the next data line cannot be part of it.
    fn part(&mut self, next: &[u8], events: &mut Vec<Event>) {
        let next = next.trim_ascii_start();
        // In this order, as there may be many blanks at the end of the data.
        if !(next.starts_with(b"{") || next.starts_with(b"[DONE]"))
            || !self.data.trim_ascii_end().ends_with('}')
        {
            return;
        }
        let renamed = self
            .name_before
            .take()
            .map(|before| std::mem::replace(&mut self.name, before));
        events.extend(self.take_event());
        self.name = renamed.unwrap_or_default();
    }

    fn add_data(&mut self, value: &[u8]) -> Result<(), TooLarge> {
        if self.data.len() + value.len() + 1 > self.max_event {
            return Err(TooLarge {
                what: "an event of its stream",
                limit: self.max_event as u64,
            });
        }
        if std::mem::replace(&mut self.has_data, true) {
            self.data.push('\n');
        }
        self.data.push_str(&String::from_utf8_lossy(value));
        Ok(())
    }

    fn take_event(&mut self) -> Option<Event> {
        self.name_before = None;
        let event = Event {
            name: std::mem::take(&mut self.name),
            data: std::mem::take(&mut self.data),
        };
        std::mem::take(&mut self.has_data).then_some(event)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Event> {
        let mut decoder = Decoder::default();
        let mut events = Vec::new();
        for chunk in chunks {
            decoder.feed(chunk, &mut events).expect("within bounds");
        }
        events.extend(decoder.finish());
        events
    }

    #[track_caller]
    fn check(stream: &[u8], expected: &[(&str, &str)]) {
        let expected: Vec<Event> = expected
            .iter()
            .map(|(name, data)| Event {
                name: (*name).to_owned(),
                data: (*data).to_owned(),
            })
            .collect();
        assert_eq!(decode([stream]), expected);
        assert_eq!(decode(stream.chunks(1)), expected, "byte by byte");
        for at in 0..stream.len() {
            assert_eq!(
                decode([&stream[..at], &stream[at..]]),
                expected,
                "cut at {at}"
            );
        }
    }

    #[test]
    fn objects_without_a_blank_line_between_them_are_separate_events() {
        check(
            b"data: {\"a\":1}\ndata: {\"b\":2} \r\ndata:  [DONE]\n",
            &[("", "{\"a\":1}"), ("", "{\"b\":2} "), ("", " [DONE]")],
        );
        check(
            b"event: x\ndata: {}\nevent: error\ndata: {\"error\":1}\ndata: {}\n\n",
            &[("x", "{}"), ("error", "{\"error\":1}"), ("", "{}")],
        );
        check(
            b"data: {}\nerror: {\"code\":500}\n\n",
            &[("", "{}"), ("error", "{\"code\":500}")],
        );
        check(
            b"data: {}\nevent: x\n\ndata: {}\n\n",
            &[("x", "{}"), ("", "{}")],
        );
        // Lines of one text.
        check(
            b"data: {\"a\": [{},\ndata: {}\ndata: ]}\n\n",
            &[("", "{\"a\": [{},\n{}\n]}")],
        );
    }

    #[test]
    fn lines_end_with_lf_cr_or_crlf() {
        check(b"data: a\n\ndata: b\n\n", &[("", "a"), ("", "b")]);
        check(b"data: a\r\n\r\ndata: b\r\n\r\n", &[("", "a"), ("", "b")]);
        check(b"data: a\r\rdata: b\r\r", &[("", "a"), ("", "b")]);
        check(b"data: a\r\n\ndata: b\n\r\n", &[("", "a"), ("", "b")]);
    }

    #[test]
    fn fields_are_parsed_as_in_the_standard() {
        check(b"data: a\ndata:b\ndata\n\n", &[("", "a\nb\n")]);
        check(
            b": hello\n:\nevent: error\nid: 7\nretry: 10\ndata:  x\n\n",
            &[("error", " x")],
        );
        check(b"event: lonely\n\ndata: a\n\n", &[("", "a")]);
        check(
            b"\xEF\xBB\xBFdata: a\n\n\xEF\xBB\xBFdata: b\n\n",
            &[("", "a")],
        );
        check(
            "data: h\u{e9}\u{1f980}\n\n".as_bytes(),
            &[("", "h\u{e9}\u{1f980}")],
        );
        check(b"data: \xFF\n\n", &[("", "\u{fffd}")]);
        check(b"\n\n\n", &[]);
        check(b"error: {\"code\":500}\n\n", &[("error", "{\"code\":500}")]);
    }

    #[test]
    fn at_the_end_complete_lines_count_and_partial_ones_do_not() {
        check(b"data: a\n\ndata: [DONE]\n", &[("", "a"), ("", "[DONE]")]);
        check(b"data: a\r", &[("", "a")]);
        check(b"data: a\n\ndata: {\"half", &[("", "a")]);
    }

    #[test]
    fn an_endless_line_is_refused_with_little_memory() {
        let mut decoder = Decoder::default();
        let mut events = Vec::new();
        let chunk = vec![b'x'; 64 * 1024];
        let mut fed = 0_usize;
        let error = loop {
            match decoder.feed(&chunk, &mut events) {
                Ok(()) => fed += chunk.len(),
                Err(error) => break error,
            }
        };
        assert_eq!(
            (error, fed),
            (
                TooLarge {
                    what: "a line of its stream",
                    limit: MAX_LINE as u64
                },
                MAX_LINE
            )
        );
        assert!(decoder.line.capacity() <= 2 * MAX_LINE);
    }

    #[test]
    fn events_and_the_whole_stream_are_bounded() {
        let mut events = Vec::new();
        let mut decoder = Decoder::bounded(10, 20, 1000);
        let error = decoder
            .feed(
                b"data:12345\ndata:12345\ndata:12345\ndata:12345\n",
                &mut events,
            )
            .expect_err("too much data");
        assert_eq!(
            error,
            TooLarge {
                what: "an event of its stream",
                limit: 20
            }
        );

        let mut decoder = Decoder::bounded(10, 20, 1000);
        let error = (0..)
            .find_map(|_| decoder.feed(b":\n", &mut events).err())
            .expect("comments count too");
        assert_eq!(
            error,
            TooLarge {
                what: "its stream",
                limit: 1000
            }
        );
        assert_eq!(events, vec![]);
    }

    proptest! {
        #[test]
        fn any_chunking_gives_what_one_chunk_gives(
            pieces in prop::collection::vec(
                prop_oneof![
                    Just("data: ".to_owned()), Just("event: error".to_owned()), Just(":".to_owned()), Just("\n".to_owned()), Just("\r".to_owned()),
                    Just("\r\n".to_owned()), Just("\n\n".to_owned()), Just("\u{feff}".to_owned()), Just("[DONE]".to_owned()), ".{0,8}",
                ],
                0..40,
            ),
            cuts in prop::collection::vec(0_usize..400, 0..12),
        ) {
            let stream = pieces.concat().into_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            prop_assert_eq!(decode(cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]])), decode([stream.as_slice()]));
        }
    }
}
