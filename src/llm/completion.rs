//! One streamed request for an answer, and a retry without streaming where the stream was empty.

use std::time::Duration;

use reqwest::header::ACCEPT;
use reqwest::header::CONTENT_TYPE;
use tokio::time::Instant;

use super::client::Client;
use super::error::Error;
use super::exchange;
use super::exchange::Limits;
use super::idle_timer::IdleTimer;
use super::prompt::Prompt;
use super::provider::api::Framing;
use super::provider::assemble::Assembler;
use super::provider::failure::Failure;
use super::provider::instead;
use super::provider::openai::Manner;
use super::sse::Decoder;
use super::stream::Request;
use super::stream::Update;

/// Longest answer that is not streamed, in bytes.
const MAX_WHOLE: usize = 16 * 1024 * 1024;
/// Most whitespace before an answer, in bytes, while its kind is still unknown.
const MOST_BLANKS: usize = 64 * 1024;
/// How long to wait for the end of the response after the answer, so that the connection can be
/// reused.
const LAST_BYTES: Duration = Duration::from_millis(20);
/// How long to wait for the usage that follows the end of an answer.
const LAST_SUMS: Duration = Duration::from_secs(5);

impl Client {
    /// Sends the request once and reads the answer into the assembler.
    pub(super) async fn attempt(
        &self,
        body: bytes::Bytes,
        assembler: &mut Assembler,
        on: &mut (dyn FnMut(Update) + Send),
        limits: &Limits<'_>,
    ) -> Result<(), Error> {
        let inner = self.inner();
        let idle = inner.options.idle_timeout();
        let (n_bytes_asked, asked) = (body.len(), Instant::now());
        let first = self.first_byte_timeout(n_bytes_asked);
        let request = self
            .request(reqwest::Method::POST, self.api().route(&inner.endpoint))
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream")
            .body(body);
        let mut response = exchange::send(request, &inner.shown_endpoint, first, limits).await?;
        if !response.status().is_success() {
            return Err(exchange::failed(
                response,
                &inner.shown_endpoint,
                self.key(),
                idle,
                limits,
            )
            .await);
        }
        let failure = self.failure(&response);
        if failure.packed.is_some() {
            return Err(failure.not_json(&[]));
        }
        let content_type = exchange::content_type(&response);
        let lines = self.api().framing() == Framing::Lines;
        let is_document = !content_type.contains("event-stream")
            && !content_type.contains("ndjson")
            && (content_type.contains("json") || content_type.contains("html"));
        let (mut decoder, mut parser, mut events) =
            (Decoder::new(lines), self.api().parser(), Vec::new());
        let mut timer = IdleTimer::new(first);
        // The first bytes, until they show whether it is a stream.
        let mut head = Some(Vec::new());
        // When only the usage could still follow.
        let mut over: Option<Instant> = None;
        loop {
            over = over.or_else(|| assembler.finish.is_some().then(Instant::now));
            let left = over.map_or_else(
                || timer.left(),
                |over| timer.left().min(LAST_SUMS.saturating_sub(over.elapsed())),
            );
            let mut bytes =
                match exchange::next(&mut response, &inner.shown_endpoint, left, limits).await {
                    Ok(Some(bytes)) => bytes,
                    Ok(None) => break,
                    // A server that keeps the connection open, or cuts it, after the finish reason
                    // has sent everything.
                    Err(Error::Connection { .. } | Error::IdleTimeout { .. }) if over.is_some() => {
                        return Ok(());
                    }
                    Err(error) => return Err(timer.with_elapsed(error)),
                };
            if let Some(mut begun) = head.take() {
                begun.extend_from_slice(&bytes);
                match instead::is_stream(&begun, is_document, lines) {
                    None if begun.len() <= MOST_BLANKS => {
                        head = Some(begun);
                        continue;
                    }
                    // Not a stream although we requested one: an error with status 200, a server
                    // without streaming, a web page.
                    Some(false) => {
                        let body = exchange::rest(
                            response,
                            begun,
                            MAX_WHOLE,
                            &inner.shown_endpoint,
                            idle,
                            limits,
                        )
                        .await?;
                        return self.api().whole(&body, &failure, assembler, on);
                    }
                    None | Some(true) => bytes = begun.into(),
                }
            }
            decoder.feed(&bytes, &mut events)?;
            for event in events.drain(..) {
                parser.event(&event, &failure, assembler, on)?;
            }
            if timer.is_first(parser.n_progress()) {
                self.learn_from_first_word(n_bytes_asked, asked.elapsed());
            }
            timer.record(
                idle,
                parser.n_progress(),
                decoder.n_comments(),
                decoder.pending(),
            );
            if parser.is_done() {
                // Reusing the connection is worth neither an error nor a longer wait.
                drop(tokio::time::timeout(LAST_BYTES, response.chunk()).await);
                return Ok(());
            }
        }
        decoder.feed(&head.unwrap_or_default(), &mut events)?;
        for event in events.into_iter().chain(decoder.finish()) {
            parser.event(&event, &failure, assembler, on)?;
        }
        // An empty answer cannot be truncated; the retry decides whether it really is an answer.
        if parser.is_done() || assembler.is_over() || assembler.is_empty() {
            Ok(())
        } else {
            Err(exchange::ended_early(&inner.shown_endpoint))
        }
    }

    /// Returns whether an empty answer may hide an error.
    /// A model may have nothing to say, but some servers also end a failed stream silently.
    pub(super) fn is_suspicious(assembler: &Assembler, manner: &Manner) -> bool {
        assembler.is_silent()
            && !(manner.provider.quirks().may_be_silent && assembler.finish.is_some())
    }

    /// Retries without streaming, which makes servers report what was wrong.
    pub(super) async fn retry_unstreamed(
        &self,
        prompt: &Prompt,
        request: &Request,
        manner: &Manner,
        assembler: &mut Assembler,
        on: &mut (dyn FnMut(Update) + Send),
        limits: &Limits<'_>,
    ) -> Result<(), Error> {
        let inner = self.inner();
        let (had_reason, within) = (assembler.finish.is_some(), inner.policy.second);
        // The total time bounds it; a timeout of a single wait within it would be a different
        // error.
        let idle = within.saturating_mul(2);
        if let (Some(context), Some(usage)) = (manner.context, assembler.usage)
            && usage.prompt > context
        {
            return Err(Error::ContextExceeded {
                prompt: Some(usage.prompt),
                context: Some(context),
            });
        }
        let body = self
            .api()
            .body(prompt, request, &inner.options, manner, false);
        let message = self
            .request(reqwest::Method::POST, self.api().route(&inner.endpoint))
            .header(CONTENT_TYPE, "application/json")
            .body(body);
        let answer = async {
            let response = exchange::send(message, &inner.shown_endpoint, idle, limits).await?;
            if !response.status().is_success() {
                return Err(exchange::failed(
                    response,
                    &inner.shown_endpoint,
                    self.key(),
                    idle,
                    limits,
                )
                .await);
            }
            let failure = self.failure(&response);
            if failure.packed.is_some() {
                return Err(failure.not_json(&[]));
            }
            let body = exchange::rest(
                response,
                Vec::new(),
                MAX_WHOLE,
                &inner.shown_endpoint,
                idle,
                limits,
            )
            .await?;
            self.api().whole(&body, &failure, assembler, on)
        };
        match tokio::time::timeout(within, answer).await {
            Ok(Ok(())) => {}
            Ok(Err(error @ (Error::Cancelled | Error::Timeout { .. }))) => return Err(error),
            // The stream was in order, so the answer may really be empty; only an explanation
            // changes that.
            Ok(Err(error)) => {
                let explains = matches!(
                    error,
                    Error::ContextExceeded { .. }
                        | Error::Status { .. }
                        | Error::Reported { .. }
                        | Error::Refused { .. }
                        | Error::Unauthorized { .. }
                );
                if explains || !had_reason {
                    return Err(error);
                }
            }
            Err(_) if had_reason => {}
            Err(_) => {
                return Err(Error::Protocol {
                    problem: "the stream ended without an answer".to_owned(),
                });
            }
        }
        if assembler.is_empty() && assembler.finish.is_none() {
            return Err(Error::Protocol {
                problem: "the stream ended without an answer".to_owned(),
            });
        }
        Ok(())
    }

    fn failure(&self, response: &reqwest::Response) -> Failure<'_> {
        Failure {
            endpoint: &self.inner().shown_endpoint,
            key: self.key(),
            code: response.status().as_u16(),
            is_html: exchange::is_html(response),
            packed: exchange::content_encoding(response),
            ..Failure::default()
        }
    }
}
