//! What a server over HTTP may send: bounded before it is parsed, as the lines of one in the sandbox
//! are.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures::StreamExt;
use futures::TryStreamExt;
use futures::stream::BoxStream;
use http_body_util::BodyDataStream;
use http_body_util::BodyExt;
use http_body_util::Collected;
use http_body_util::Limited;
use hyper::body::Body;
use rmcp::model::RequestId;
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::Sse;
use sse_stream::SseStream;

use crate::lines::LONGEST_LINE;
use crate::lines::MOST_UNASKED;
use crate::lines::answers;
use crate::lines::is_unasked;

/// Reads a body whole; the error says why not.
pub(super) async fn whole<B>(body: B, most: usize) -> Result<Bytes, String>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let read = Limited::new(body, most).collect().await;
    read.map(Collected::to_bytes).map_err(|error| {
        if error.is::<http_body_util::LengthLimitError>() {
            format!("its answer is over {} KiB", most >> 10)
        } else {
            format!("its answer broke off: {error}")
        }
    })
}

/// Reads the start of a body, as far as it comes.
pub(super) async fn start<B>(body: B, most: usize) -> Vec<u8>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut body = body;
    let mut read = Vec::new();
    while read.len() < most
        && let Some(Ok(frame)) = body.frame().await
    {
        if let Ok(data) = frame.into_data() {
            read.extend_from_slice(&data[..data.len().min(most - read.len())]);
        }
    }
    read
}

/// Reads a body as events, without answers to another request than `id`. It ends with an error where
/// one of them is too long, or where the server sends more that is no answer than `unasked`, the
/// count of its whole life, lets it.
pub(super) fn events<B>(
    body: B,
    id: RequestId,
    unasked: Arc<AtomicUsize>,
) -> BoxStream<'static, Result<Sse, SseError>>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut size = EventSize::default();
    let bytes = TryStreamExt::map_err(BodyDataStream::new(body), io::Error::other)
        .and_then(move |data: Bytes| std::future::ready(size.add(&data).map(|()| data)));
    SseStream::from_bytes_stream(bytes)
        .try_filter_map(move |event| {
            let data = event.data.as_deref().unwrap_or_default().as_bytes();
            // The stream of a request ends with the first answer, whatever it answers.
            let is_foreign = answers(data).is_some_and(|answered| !is_same(&answered, &id));
            let is_over = (is_foreign || is_unasked(data))
                && unasked.fetch_add(1, Ordering::Relaxed) >= MOST_UNASKED;
            std::future::ready(if is_over {
                let problem = format!("it sent over {MOST_UNASKED} requests and notifications");
                Err(SseError::Body(problem.into()))
            } else {
                Ok((!is_foreign).then_some(event))
            })
        })
        .boxed()
}

/// Returns whether two ids are the same; some servers answer a number as text.
pub(super) fn is_same(answered: &RequestId, asked: &RequestId) -> bool {
    answered == asked || answered.to_string() == asked.to_string()
}

/// Bytes of the event that is not complete yet.
#[derive(Default)]
struct EventSize {
    n_bytes: usize,
    is_at_line_start: bool,
}

impl EventSize {
    fn add(&mut self, data: &[u8]) -> io::Result<()> {
        for &byte in data {
            match byte {
                b'\n' if self.is_at_line_start => self.n_bytes = 0,
                b'\n' => self.is_at_line_start = true,
                b'\r' => {}
                _ => self.is_at_line_start = false,
            }
            self.n_bytes += 1;
            if self.n_bytes > LONGEST_LINE {
                let problem = format!("it sent a message over {} MiB", LONGEST_LINE >> 20);
                return Err(io::Error::other(problem));
            }
        }
        Ok(())
    }
}
