//! Bodies that go through, frame by frame, counted.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use bytes::Bytes;
use http_body::Body;
use http_body::Frame;
use http_body::SizeHint;
use hyper::body::Incoming;

use super::attempt::Direction;
use super::attempt::Traffic;
use super::exchange::Exchange;

/// One frame of it is held at a time, whatever its length is.
pub(crate) struct CountedBody {
    body: Incoming,
    direction: Direction,
    traffic: Arc<Traffic>,
    /// Ends with the answer's body.
    _exchange: Option<Exchange>,
}

impl CountedBody {
    pub(crate) fn of_request(body: Incoming, traffic: Arc<Traffic>) -> Self {
        Self {
            body,
            direction: Direction::ToServer,
            traffic,
            _exchange: None,
        }
    }

    pub(crate) fn of_answer(body: Incoming, exchange: Exchange) -> Self {
        Self {
            body,
            direction: Direction::ToClient,
            traffic: Arc::clone(exchange.traffic()),
            _exchange: Some(exchange),
        }
    }
}

impl Body for CountedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if let Some(Ok(frame)) = &frame {
            self.traffic
                .count(self.direction, frame.data_ref().map_or(0, Bytes::len));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
