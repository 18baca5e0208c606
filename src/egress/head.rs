//! Heads of requests, looked at before hyper sees them: their bounds, and how their bodies are
//! framed.
//!
//! hyper understands a request whose length is written in two ways, after it has dropped one of
//! them, so that nothing behind it can tell. Such a request, and what is no HTTP/1 at all, is
//! refused here. hyper then gets another request instead ([`STAND_IN`]), which the gateway answers
//! with the refusal.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::task::Context;
use std::task::Poll;
use std::task::ready;
use std::time::Duration;

use bytes::Buf;
use bytes::Bytes;
use bytes::BytesMut;
use hyper::StatusCode;
use hyper::Uri;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::ReadBuf;
use tokio::net::UnixStream;
use tokio::time::Instant;
use tokio::time::Sleep;

use super::limits::HEADERS;
use super::limits::Limits;

/// What hyper reads in place of a head that is refused, and the host by which it is known.
const STAND_IN: &[u8] =
    b"GET http://refused.invalid/ HTTP/1.1\r\nHost: refused.invalid\r\nConnection: close\r\n\r\n";
const STAND_IN_HOST: &str = "refused.invalid";

/// What a client of HTTP/2 begins with when it was not asked for it.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2";

/// Why a head is not passed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub status: StatusCode,
    pub problem: String,
}

/// The refusal of the head in whose place [`STAND_IN`] was read.
pub(crate) type Refused = Arc<Mutex<Option<Refusal>>>;

/// Returns whether a request may stand for a refused one. The head of the next request may be
/// refused while an earlier one is still served.
pub(crate) fn is_stand_in(uri: &Uri) -> bool {
    uri.host() == Some(STAND_IN_HOST)
}

/// How the bytes behind a head are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// So many, then the next head.
    Length(u64),
    /// All that come: chunks, or what a protocol was changed to. There is no next head, and the
    /// answer says so ([`is_last`]).
    Rest,
}

/// Returns whether a request is the last of its connection unless its answer changes the protocol.
pub(crate) fn is_last(headers: &hyper::HeaderMap) -> bool {
    headers.contains_key(hyper::header::TRANSFER_ENCODING)
        || headers.contains_key(hyper::header::UPGRADE)
}

/// A client's connection, of which hyper gets whole heads.
pub(crate) struct Heads {
    stream: UnixStream,
    state: State,
    /// Read of the stream, and not yet given to hyper.
    unread: BytesMut,
    late: Pin<Box<Sleep>>,
    /// Whether the time for this head runs.
    is_timed: bool,
    head_time: Duration,
    most: usize,
    refused: Refused,
}

enum State {
    /// Up to the end of a head.
    Head,
    /// A head, to be given to hyper, and what follows it.
    Whole(Bytes, Framing),
    Body(u64),
    Rest,
    /// A head was refused.
    Ended,
}

impl Heads {
    /// `unread`: what was read of the stream already.
    pub(crate) fn new(stream: UnixStream, unread: BytesMut, limits: &Limits) -> Self {
        Self {
            stream,
            state: State::Head,
            unread,
            late: Box::pin(tokio::time::sleep(limits.head_time)),
            is_timed: true,
            head_time: limits.head_time,
            most: limits.head,
            refused: Refused::default(),
        }
    }

    pub(crate) fn refused(&self) -> Refused {
        Arc::clone(&self.refused)
    }

    /// Returns the stream, and what was read of it behind the last head.
    pub(crate) fn into_parts(self) -> (UnixStream, Bytes) {
        (self.stream, self.unread.freeze())
    }

    fn refuse(&mut self, status: StatusCode, problem: impl Into<String>) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(Refusal {
            status,
            problem: problem.into(),
        });
        self.unread.clear();
        self.state = State::Whole(Bytes::from_static(STAND_IN), Framing::Rest);
    }

    /// Reads until there is a head, and says whether the stream continues.
    fn poll_head(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            match framing_of(&self.unread, self.most) {
                Ok(Some((length, framing))) => {
                    self.is_timed = false;
                    self.state = State::Whole(self.unread.split_to(length).freeze(), framing);
                    return Poll::Ready(Ok(()));
                }
                Ok(None) => {}
                Err(refusal) => {
                    self.refuse(refusal.status, refusal.problem);
                    return Poll::Ready(Ok(()));
                }
            }
            if !self.is_timed && !self.unread.is_empty() {
                self.is_timed = true;
                self.late.as_mut().reset(Instant::now() + self.head_time);
            }
            if self.is_timed && self.late.as_mut().poll(context).is_ready() {
                if self.unread.is_empty() {
                    self.state = State::Ended;
                } else {
                    self.refuse(
                        StatusCode::REQUEST_TIMEOUT,
                        format!(
                            "the request's head did not come within {:?}",
                            self.head_time
                        ),
                    );
                }
                return Poll::Ready(Ok(()));
            }
            let n_read = ready!(self.poll_more(context))?;
            if n_read == 0 {
                // hyper says that a head is not complete, where it is not.
                self.state = State::Whole(self.unread.split().freeze(), Framing::Rest);
                return Poll::Ready(Ok(()));
            }
        }
    }

    fn poll_more(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut chunk = [0; 4096];
        let mut read = ReadBuf::new(&mut chunk);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut read))?;
        self.unread.extend_from_slice(read.filled());
        Poll::Ready(Ok(read.filled().len()))
    }

    /// Gives hyper what comes, and at most so much; returns how much it was.
    fn poll_through(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        let most = most.min(buffer.remaining());
        if !self.unread.is_empty() {
            let length = most.min(self.unread.len());
            buffer.put_slice(&self.unread[..length]);
            self.unread.advance(length);
            return Poll::Ready(Ok(length));
        }
        let room = buffer.initialize_unfilled_to(most);
        let mut read = ReadBuf::new(room);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut read))?;
        let length = read.filled().len();
        buffer.advance(length);
        Poll::Ready(Ok(length))
    }
}

impl AsyncRead for Heads {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            match &mut this.state {
                State::Head => ready!(this.poll_head(context))?,
                State::Whole(head, framing) => {
                    let length = head.len().min(buffer.remaining());
                    buffer.put_slice(&head[..length]);
                    head.advance(length);
                    if head.is_empty() {
                        this.state = match *framing {
                            Framing::Length(0) => State::Head,
                            Framing::Length(length) => State::Body(length),
                            Framing::Rest => State::Rest,
                        };
                    }
                    return Poll::Ready(Ok(()));
                }
                State::Body(left) => {
                    let most = usize::try_from(*left).unwrap_or(usize::MAX);
                    let length = ready!(this.poll_through(context, buffer, most))?;
                    if let State::Body(left) = &mut this.state {
                        *left -= length as u64;
                        if *left == 0 {
                            this.state = State::Head;
                        }
                    }
                    return Poll::Ready(Ok(()));
                }
                State::Rest => {
                    ready!(this.poll_through(context, buffer, usize::MAX))?;
                    return Poll::Ready(Ok(()));
                }
                State::Ended => return Poll::Ready(Ok(())),
            }
        }
    }
}

impl AsyncWrite for Heads {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// Returns the length of the head at the beginning and what follows it, or nothing where it is not
/// complete.
fn framing_of(bytes: &[u8], most: usize) -> Result<Option<(usize, Framing)>, Refusal> {
    let refuse = |status, problem: &str| {
        Err(Refusal {
            status,
            problem: problem.to_owned(),
        })
    };
    let bad = |problem: &str| refuse(StatusCode::BAD_REQUEST, problem);
    if bytes.starts_with(HTTP2_PREFACE) {
        return refuse(
            StatusCode::BAD_REQUEST,
            "this is a proxy for HTTP/1.1; speak HTTP/2 inside a CONNECT",
        );
    }
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let parsed = request.parse(bytes);
    let length = match parsed {
        Ok(httparse::Status::Complete(length)) if length <= most => length,
        Ok(httparse::Status::Partial) if bytes.len() < most => return Ok(None),
        Ok(_) => {
            return refuse(
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                &format!("the request's head has more than {most} bytes"),
            );
        }
        Err(httparse::Error::TooManyHeaders) => {
            return refuse(
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                &format!("the request has more than {HEADERS} headers"),
            );
        }
        // The preface of HTTP/2 in pieces is no error yet.
        Err(_) if HTTP2_PREFACE.starts_with(bytes) => return Ok(None),
        Err(error) => return bad(&format!("this is no request of HTTP/1.1: {error}")),
    };
    let named = |name: &'static str| {
        request
            .headers
            .iter()
            .filter(move |header| header.name.eq_ignore_ascii_case(name))
    };
    let (n_lengths, n_encodings) = (
        named("content-length").count(),
        named("transfer-encoding").count(),
    );
    if n_lengths > 1 || n_encodings > 1 || n_lengths + n_encodings > 1 {
        return bad("the length of the request's body is written more than once");
    }
    let is_connect = request.method == Some("CONNECT");
    if let Some(encoding) = named("transfer-encoding").next() {
        if is_connect
            || request.version != Some(1)
            || !encoding.value.eq_ignore_ascii_case(b"chunked")
        {
            return bad("the request's body may be encoded as `chunked` and in no other way");
        }
        return Ok(Some((length, Framing::Rest)));
    }
    let body = match named("content-length").next() {
        None => 0,
        Some(header) => match std::str::from_utf8(header.value)
            .ok()
            .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
        {
            Some(text) if let Ok(body) = text.parse::<u64>() => body,
            _ => return bad("the length of the request's body is no number"),
        },
    };
    if is_connect && body > 0 {
        return bad("a CONNECT has no body");
    }
    let changes = is_connect || named("upgrade").next().is_some();
    Ok(Some((
        length,
        if changes {
            Framing::Rest
        } else {
            Framing::Length(body)
        },
    )))
}

#[cfg(test)]
mod tests;
