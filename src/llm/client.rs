use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use async_recursion::async_recursion as boxed;
use reqwest::header::AUTHORIZATION;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::dialect::Dialect;
use super::error::Error;
use super::exchange::Limits;
use super::http;
use super::http::Endpoint;
use super::message::Message;
use super::options::Options;
use super::probe::ProbeResult;
use super::probe::Server;
use super::prompt::Prompt;
use super::provider::ChatApi;
use super::provider::Provider;
use super::provider::assemble::Assembler;
use super::provider::openai;
use super::provider::openai::Manner;
use super::refusal::KeySource;
use super::reply_restorer::ReplyRestorer;
use super::retry;
use super::retry::RetryPolicy;
use super::stream::Reply;
use super::stream::Request;
use super::stream::Update;
use super::unsupported_parameters::UnsupportedParameters;
use podbay_event::Secret;

/// Requests shorter than this, in bytes, are too short to measure the prefill rate.
const WORTH_MEASURING: usize = 4096;

/// A client for one model server. Clones share connections and what was learnt about the server.
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    http: reqwest::Client,
    pub(super) endpoint: Endpoint,
    pub(super) shown_endpoint: String,
    key: Option<Secret>,
    pub(super) options: Options,
    pub(super) policy: RetryPolicy,
    learnt: Mutex<ServerFacts>,
}

#[derive(Clone, Debug, Default)]
struct ServerFacts {
    probed: Option<ProbeResult>,
    prefill: Option<PrefillRate>,
    parameters: UnsupportedParameters,
}

/// The server's prefill rate, in tokens per second.
#[derive(Clone, Copy, Debug, PartialEq)]
enum PrefillRate {
    /// As the server measured it last.
    Measured(f64),
    /// Derived from the time to the first token; the slowest such rate, since a cached prompt makes
    /// the server look fast.
    Observed(f64),
}

impl Client {
    /// Returns a client without connecting; refuses a key that would be sent over plain HTTP to
    /// another machine.
    pub fn new(endpoint: Endpoint, key: Option<Secret>, options: Options) -> Result<Self, Error> {
        let policy = RetryPolicy {
            retries: options.retries,
            ..RetryPolicy::default()
        };
        Self::with_policy(endpoint, key, options, policy)
    }

    /// Like [`Client::new`], with a custom retry policy.
    pub fn with_policy(
        endpoint: Endpoint,
        key: Option<Secret>,
        options: Options,
        policy: RetryPolicy,
    ) -> Result<Self, Error> {
        let shown_endpoint = endpoint.to_string();
        let key = key.filter(|key| !key.expose().is_empty());
        if key.is_some() && !endpoint.may_carry_key() {
            return Err(Error::KeyOverPlainHttp {
                endpoint: shown_endpoint,
            });
        }
        let http =
            http::client(&endpoint.settings(options.connect_timeout(), options.proxy.as_deref()))?;
        Ok(Self {
            inner: Arc::new(Inner {
                http,
                endpoint,
                shown_endpoint,
                key,
                options,
                policy,
                learnt: Mutex::default(),
            }),
        })
    }

    pub fn endpoint(&self) -> &Endpoint {
        &self.inner.endpoint
    }

    pub fn options(&self) -> &Options {
        &self.inner.options
    }

    /// Returns the result of the last successful [`Client::probe`].
    pub fn probed(&self) -> Option<ProbeResult> {
        self.learnt(|learnt| learnt.probed.clone())
    }

    /// Requests the next message of a conversation and streams it.
    /// Transient failures are retried as long as nothing was shown and no call begun. An interrupt
    /// is not a failure: it returns the partial reply, as [`super::Finish::Interrupted`].
    /// `deadline` bounds everything, including retries and model loading.
    #[boxed]
    pub async fn stream(
        &self,
        prompt: &Prompt,
        request: &Request,
        on: &mut (dyn FnMut(Update) + Send),
        cancel: &CancellationToken,
        deadline: Duration,
    ) -> Result<Reply, Error> {
        let mut restored = ReplyRestorer::new(prompt.tokens());
        let outcome = self
            .stream_raw(
                prompt,
                request,
                &mut |update| restored.take(update, on),
                cancel,
                deadline,
            )
            .await;
        restored.end(on);
        let outcome =
            outcome.map_err(|error| error.with_key_source(|| KeySource::of(self.options())));
        match outcome {
            Ok(reply) => Ok(restored.reply(reply)),
            Err(Error::BrokenOff { partial, source }) => Err(Error::BrokenOff {
                partial: Box::new(restored.reply(*partial)),
                source,
            }),
            Err(error) => Err(error),
        }
    }

    /// Streams the model's own bytes, with control tokens still neutralized.
    async fn stream_raw(
        &self,
        prompt: &Prompt,
        request: &Request,
        on: &mut (dyn FnMut(Update) + Send),
        cancel: &CancellationToken,
        deadline: Duration,
    ) -> Result<Reply, Error> {
        let begun = Instant::now();
        let limits = Limits {
            cancel,
            until: begun.checked_add(deadline),
            deadline,
        };
        let mut manner = self.manner();
        debug_assert_eq!(prompt.dialect().name, self.dialect().name);
        let options = &self.inner.options;
        let mut body = bytes::Bytes::from(self.api().body(prompt, request, options, &manner, true));
        prompt.sent();
        let mut n_tried = 0;
        let mut away: Option<Instant> = None;
        loop {
            let mut assembler = Assembler::new(openai::reading(prompt, request), prompt.known());
            if request.goes_on {
                assembler.keep_first_blanks();
            }
            let outcome = match self
                .attempt(body.clone(), &mut assembler, on, &limits)
                .await
            {
                Ok(()) if Self::is_suspicious(&assembler, &manner) => {
                    self.retry_unstreamed(prompt, request, &manner, &mut assembler, on, &limits)
                        .await
                }
                other => other,
            };
            let error = match outcome {
                Ok(()) => {
                    let reply = assembler.finish(|id| prompt.has_call(id), on)?;
                    self.learn(&reply);
                    return Ok(self.priced(reply));
                }
                Err(Error::Cancelled) => return Ok(assembler.interrupted()),
                Err(Error::Unreadable { message, raw }) => {
                    if let Some(reply) =
                        assembler.recover(raw.expose(), |id| prompt.has_call(id), on)
                    {
                        return Ok(self.priced(reply));
                    }
                    let error = Error::Unreadable { message, raw };
                    if !assembler.shown() {
                        return Err(error);
                    }
                    return Err(Error::BrokenOff {
                        partial: Box::new(assembler.interrupted()),
                        source: Box::new(error),
                    });
                }
                Err(error) if assembler.shown() => {
                    return Err(Error::BrokenOff {
                        partial: Box::new(assembler.interrupted()),
                        source: Box::new(error),
                    });
                }
                Err(error) => error,
            };
            let sent = openai::max_tokens(request, options, &manner);
            if let Some(change) = self.learnt(|learnt| learnt.parameters.learn(&error, sent)) {
                on(Update::Changed {
                    reason: error.to_string(),
                    change,
                });
                manner = self.manner();
                body = self
                    .api()
                    .body(prompt, request, options, &manner, true)
                    .into();
                continue;
            }
            let policy = &self.inner.policy;
            if !matches!(error, Error::Unreachable { .. }) {
                away = None;
            }
            let pause = if matches!(error, Error::ModelLoading { .. }) {
                on(Update::Loading {
                    waited: begun.elapsed(),
                });
                policy.loading
            } else if matches!(error, Error::Unreachable { .. }) {
                let waited = away.map_or(Duration::ZERO, |since| since.elapsed());
                away.get_or_insert_with(Instant::now);
                if !policy.waits_for_server(waited) {
                    return Err(error);
                }
                let most = limits
                    .left()
                    .map_or(policy.away, |left| policy.away.min(waited + left));
                on(Update::Away {
                    waited,
                    most,
                    reason: error.to_string(),
                });
                policy.loading
            } else {
                let Some(pause) = policy.next(&error, n_tried, retry::chance()) else {
                    return Err(error);
                };
                n_tried += 1;
                on(Update::Retrying {
                    attempt: n_tried,
                    wait: pause,
                    left: limits.left(),
                    reason: error.to_string(),
                });
                pause
            };
            match limits.pause(pause).await {
                Ok(()) => {}
                Err(Error::Cancelled) => {
                    return Ok(
                        Assembler::new(openai::reading(prompt, request), prompt.known())
                            .interrupted(),
                    );
                }
                // The error that kept us waiting says more than a timeout.
                Err(_) if matches!(error, Error::ModelLoading { .. }) => {
                    return Err(Error::ModelLoading {
                        endpoint: self.inner.shown_endpoint.clone(),
                        waited: begun.elapsed(),
                    });
                }
                Err(_) => return Err(error),
            }
        }
    }

    /// Has the server read the conversation into its cache, so that the first answer comes sooner;
    /// does nothing for servers without such a cache.
    /// Meant for a time when something else is awaited anyway; an interrupt ends it without an
    /// error.
    #[boxed]
    pub async fn warm(
        &self,
        prompt: &Prompt,
        cancel: &CancellationToken,
        deadline: Duration,
    ) -> Result<(), Error> {
        if !self.provider().quirks().reads_ahead {
            return Ok(());
        }
        let mut prompt = prompt.clone();
        // Templates require a user's message; up to its text the bytes are those of the real one.
        prompt.push(&Message::user(""));
        let request = Request {
            max_tokens: Some(0),
            ..Request::default()
        };
        self.stream(&prompt, &request, &mut |_| {}, cancel, deadline)
            .await
            .map(drop)
    }

    /// Returns a request with the API key attached: the only place that does so, and only for the
    /// endpoint itself.
    pub(super) fn request(&self, method: reqwest::Method, url: String) -> reqwest::RequestBuilder {
        let request = self.inner.http.request(method, url);
        match self.key() {
            Some(key) => match reqwest::header::HeaderValue::from_str(&format!("Bearer {key}")) {
                Ok(mut value) => {
                    value.set_sensitive(true);
                    request.header(AUTHORIZATION, value)
                }
                // Without the header the server says that the key is missing; reqwest's own error
                // would contain the value.
                Err(_) => request,
            },
            None => request,
        }
    }

    /// Returns how long to wait before retrying an answer that was interrupted by this error;
    /// `None` where a retry is pointless.
    pub fn pause_before(&self, error: &Error, n_tried: u32) -> Option<Duration> {
        self.inner
            .policy
            .next(error.root(), n_tried, retry::chance())
    }

    pub(super) fn inner(&self) -> &Inner {
        &self.inner
    }

    pub(super) fn key(&self) -> Option<&str> {
        self.inner.key.as_ref().map(Secret::expose)
    }

    /// Reading a long prompt may exceed the idle limit: up to three times the expected time is not
    /// a stall.
    pub(super) fn first_byte_timeout(&self, n_bytes: usize) -> Duration {
        let idle = self.inner.options.idle_timeout();
        let Some(PrefillRate::Measured(speed) | PrefillRate::Observed(speed)) =
            self.learnt(|learnt| learnt.prefill)
        else {
            return idle;
        };
        idle.max(Duration::from_secs_f64(
            (3.0 * tokens(n_bytes) / speed.max(0.1)).min(3600.0),
        ))
    }

    /// Returns the server's kind, which decides about requests beyond the common API; before the
    /// probe, the most generic one.
    pub(super) fn provider(&self) -> &'static dyn Provider {
        self.learnt(|learnt| {
            learnt
                .probed
                .as_ref()
                .map_or(Server::default_of(self.inner.options.api), |probed| {
                    probed.server
                })
        })
        .provider()
    }

    pub(super) fn api(&self) -> &'static dyn ChatApi {
        self.inner.options.api.chat()
    }

    /// Returns how conversations with this server are written.
    pub fn dialect(&self) -> Dialect {
        self.api().dialect()
    }

    fn manner(&self) -> Manner {
        let probed = self.probed();
        let model = self
            .inner
            .options
            .model
            .clone()
            .or_else(|| probed.as_ref().map(|probed| probed.model.clone()));
        Manner {
            provider: self.provider(),
            model,
            context: probed.and_then(|probed| probed.context),
            asks_cost: self.inner.endpoint.is_at("openrouter.ai"),
            parameters: self.learnt(|learnt| learnt.parameters.clone()),
        }
    }

    /// Adds the cost of an answer; if the server counted no tokens, the caller estimates them.
    fn priced(&self, reply: Reply) -> Reply {
        if reply.usage.total() == 0 {
            reply
        } else {
            Reply {
                usage: self.inner.options.price.priced(reply.usage),
                ..reply
            }
        }
    }

    fn learn(&self, reply: &Reply) {
        if let Some(speed) = reply
            .timings
            .and_then(|timings| timings.prefill_per_second())
        {
            self.learnt(|learnt| learnt.prefill = Some(PrefillRate::Measured(speed)));
        }
    }

    /// Records the time to the first token for servers that do not measure it. Short times mostly
    /// measure the network.
    pub(super) fn learn_from_first_word(&self, n_bytes: usize, after: Duration) {
        if n_bytes < WORTH_MEASURING {
            return;
        }
        let speed = tokens(n_bytes) / after.as_secs_f64().max(0.001);
        self.learnt(|learnt| {
            learnt.prefill = match learnt.prefill {
                Some(PrefillRate::Observed(slowest)) => {
                    Some(PrefillRate::Observed(slowest.min(speed)))
                }
                None => Some(PrefillRate::Observed(speed)),
                told => told,
            };
        });
    }

    pub(super) fn remember(&self, probed: &ProbeResult) {
        self.learnt(|learnt| learnt.probed = Some(probed.clone()));
    }

    fn learnt<T>(&self, with: impl FnOnce(&mut ServerFacts) -> T) -> T {
        with(
            &mut self
                .inner
                .learnt
                .lock()
                .expect("nothing panics while it holds this lock"),
        )
    }
}

/// Estimates one token per four bytes.
fn tokens(n_bytes: usize) -> f64 {
    n_bytes as f64 / 4.0
}
