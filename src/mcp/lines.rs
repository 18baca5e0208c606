//! The lines of a server, before the protocol reads them: bounded in length and number, without
//! what is no message.

use rmcp::model::RequestId;
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::io::AsyncRead;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::io::DuplexStream;

use super::ServerEnd;

/// Longest line: one message.
pub(super) const LONGEST_LINE: usize = 4 << 20;

/// Most bytes of lines that are no message, in the life of a server.
const MOST_NOISE: usize = 1 << 20;

/// Most requests and notifications that a server may send by itself, in its life.
pub(super) const MOST_UNASKED: usize = 10_000;

/// Bytes that wait for the protocol.
const WAITING: usize = 64 << 10;

/// What a line is, by the fields that tell it.
#[derive(Deserialize)]
struct Envelope {
    method: Option<IgnoredAny>,
}

/// What a message answers, if it is an answer.
#[derive(Deserialize)]
struct Answer {
    id: Option<RequestId>,
    method: Option<IgnoredAny>,
}

/// Returns the request that a message answers; `None` for what is no answer.
pub(super) fn answers(message: &[u8]) -> Option<RequestId> {
    let answer = serde_json::from_slice::<Answer>(message).ok()?;
    answer.id.filter(|_| answer.method.is_none())
}

/// Returns whether a message is a request or a notification, which a server sends by itself.
pub(super) fn is_unasked(message: &[u8]) -> bool {
    serde_json::from_slice::<Envelope>(message).is_ok_and(|envelope| envelope.method.is_some())
}

/// Passes the lines that are messages on; ends the stream, and notes why, once a bound is passed.
pub(super) fn bounded<R>(mut reader: R, end: ServerEnd) -> DuplexStream
where
    R: AsyncRead + Send + Unpin + 'static,
{
    let (ours, mut theirs) = tokio::io::duplex(WAITING);
    tokio::spawn(async move {
        let mut lines = Lines::default();
        let mut buffer = vec![0; 32 << 10];
        loop {
            let n_read = match reader.read(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(n_read) => n_read,
            };
            let messages = match lines.take(&buffer[..n_read]) {
                Ok(messages) => messages,
                Err(problem) => {
                    end.note(problem);
                    break;
                }
            };
            if theirs.write_all(&messages).await.is_err() {
                break;
            }
        }
    });
    ours
}

#[derive(Default)]
struct Lines {
    /// The line that is not complete yet.
    begun: Vec<u8>,
    n_noise: usize,
    n_unasked: usize,
}

impl Lines {
    /// Returns the complete messages, a line each.
    fn take(&mut self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        let mut messages = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.begun.len() + piece.len() > LONGEST_LINE {
                return Err(format!("it sent a message over {} MiB", LONGEST_LINE >> 20));
            }
            self.begun.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.begun);
                if self.is_message(&line)? {
                    messages.extend_from_slice(&line);
                }
            }
        }
        Ok(messages)
    }

    fn is_message(&mut self, line: &[u8]) -> Result<bool, String> {
        if line.trim_ascii().is_empty() {
            return Ok(false);
        }
        // A list would be read as the fields in their order.
        let envelope = Some(line)
            .filter(|line| line.trim_ascii_start().starts_with(b"{"))
            .and_then(|line| serde_json::from_slice::<Envelope>(line).ok());
        match envelope {
            Some(Envelope { method: Some(_) }) => {
                self.n_unasked += 1;
                if self.n_unasked > MOST_UNASKED {
                    return Err(format!(
                        "it sent over {MOST_UNASKED} requests and notifications"
                    ));
                }
                Ok(true)
            }
            Some(Envelope { method: None }) => Ok(true),
            None => {
                self.n_noise += line.len();
                if self.n_noise > MOST_NOISE {
                    return Err(format!(
                        "it wrote over {} MiB to its standard output that are no messages",
                        MOST_NOISE >> 20
                    ));
                }
                Ok(false)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_messages_pass_however_they_are_cut() {
        let text = b"hello\n{\"id\":1,\"result\":{}}\r\n\n[1]\n{\"method\":\"x\"}\n{\"id\"";
        for cut in 0..text.len() {
            let mut lines = Lines::default();
            let mut all = lines.take(&text[..cut]).expect("within bounds");
            all.extend(lines.take(&text[cut..]).expect("within bounds"));
            assert_eq!(all, b"{\"id\":1,\"result\":{}}\r\n{\"method\":\"x\"}\n");
            assert_eq!((lines.n_noise, lines.n_unasked), (10, 1));
        }
    }

    #[test]
    fn each_bound_ends_the_stream_with_a_reason() {
        let refused = |text: &[u8]| {
            let mut lines = Lines::default();
            // In pieces, as it comes.
            text.chunks(64 << 10)
                .find_map(|piece| lines.take(piece).err())
        };
        let long = vec![b'a'; LONGEST_LINE + 1];
        assert!(refused(&long).is_some_and(|why| why.contains("over 4 MiB")));
        let noise = b"noise of a server\n".repeat(MOST_NOISE / 18 + 1);
        assert!(refused(&noise).is_some_and(|why| why.contains("no messages")));
        let unasked = b"{\"method\":\"ping\",\"id\":1}\n".repeat(MOST_UNASKED + 1);
        assert!(refused(&unasked).is_some_and(|why| why.contains("notifications")));
        assert_eq!(refused(&noise[..MOST_NOISE / 2]), None);
        assert_eq!(refused(&unasked[..unasked.len() / 2]), None);
    }

    #[test]
    fn a_line_of_brackets_is_noise_and_not_deep_recursion() {
        let mut lines = Lines::default();
        let deep = [b"{\"a\":".repeat(100_000), b"\n".to_vec()].concat();
        assert_eq!(lines.take(&deep), Ok(Vec::new()));
        assert_eq!(lines.n_noise, deep.len());
    }
}
