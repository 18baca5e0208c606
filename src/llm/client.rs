use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use async_recursion::async_recursion as boxed;
use reqwest::header::AUTHORIZATION;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::error::Error;
use super::exchange::Limits;
use super::http;
use super::http::Endpoint;
use super::message::Message;
use super::options::Options;
use super::parameters::Parameters;
use super::probe::Probed;
use super::probe::Server;
use super::prompt::Prompt;
use super::provider::Provider;
use super::provider::assemble::Assembler;
use super::provider::openai;
use super::provider::openai::Manner;
use super::refusal::KeyFrom;
use super::restored::Restored;
use super::retry;
use super::retry::Policy;
use super::stream::Reply;
use super::stream::Request;
use super::stream::Update;
use podbay_event::Secret;

/// Requests shorter than this, in bytes, say nothing of how fast a prompt is read.
const WORTH_MEASURING: usize = 4096;

/// One model server. Clones share connections and what was learnt of the server.
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
    pub(super) policy: Policy,
    learnt: Mutex<Learnt>,
}

#[derive(Clone, Debug, Default)]
struct Learnt {
    probed: Option<Probed>,
    prefill: Option<Prefill>,
    parameters: Parameters,
}

/// How fast the server reads a prompt, in tokens a second.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Prefill {
    /// As the server measured it last.
    Told(f64),
    /// By the time until the first word; the slowest, since what the server had in its cache makes
    /// it look fast.
    Seen(f64),
}

impl Client {
    /// Returns a client; refuses a key that would travel over plain HTTP beyond this machine.
    /// Connects to nothing yet.
    pub fn new(endpoint: Endpoint, key: Option<Secret>, options: Options) -> Result<Self, Error> {
        let policy = Policy {
            retries: options.retries,
            ..Policy::default()
        };
        Self::with_policy(endpoint, key, options, policy)
    }

    /// Like [`Client::new`], with other pauses between retries.
    pub fn with_policy(
        endpoint: Endpoint,
        key: Option<Secret>,
        options: Options,
        policy: Policy,
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

    /// Returns what the last successful [`Client::probe`] found.
    pub fn probed(&self) -> Option<Probed> {
        self.learnt(|learnt| learnt.probed.clone())
    }

    /// Asks for the next message of a conversation and tells of it as it comes.
    ///
    /// Failures that may pass are tried again as long as nothing was shown and no call begun. An
    /// interrupt is no failure: it returns what there is, as
    /// [`super::Finish::Interrupted`]. `deadline` bounds everything, retries and loading included.
    #[boxed]
    pub async fn stream(
        &self,
        prompt: &Prompt,
        request: &Request,
        on: &mut (dyn FnMut(Update) + Send),
        cancel: &CancellationToken,
        deadline: Duration,
    ) -> Result<Reply, Error> {
        let mut restored = Restored::new(prompt.tokens());
        let outcome = self
            .stream_as_written(
                prompt,
                request,
                &mut |update| restored.take(update, on),
                cancel,
                deadline,
            )
            .await;
        restored.end(on);
        let outcome = outcome.map_err(|error| error.with_key_from(|| KeyFrom::of(self.options())));
        match outcome {
            Ok(reply) => Ok(restored.reply(reply)),
            Err(Error::BrokenOff { partial, source }) => Err(Error::BrokenOff {
                partial: Box::new(restored.reply(*partial)),
                source,
            }),
            Err(error) => Err(error),
        }
    }

    /// Does so in the words that the model wrote, broken tokens among them.
    async fn stream_as_written(
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
        let mut body = bytes::Bytes::from(openai::body(
            prompt,
            request,
            &self.inner.options,
            &manner,
            true,
        ));
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
                    self.ask_again(prompt, request, &manner, &mut assembler, on, &limits)
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
            let sent = openai::max_tokens(request, &self.inner.options, &manner);
            if let Some(change) = self.learnt(|learnt| learnt.parameters.learn(&error, sent)) {
                on(Update::Changed {
                    reason: error.to_string(),
                    change,
                });
                manner = self.manner();
                body = openai::body(prompt, request, &self.inner.options, &manner, true).into();
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
                // What kept us waiting says more than that time is up.
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

    /// Has a server that does so read the conversation into its cache, so that the first answer
    /// comes sooner. Others are left alone.
    ///
    /// To be called while something else keeps everybody waiting; an interrupt ends it without an
    /// error.
    #[boxed]
    pub async fn warm(
        &self,
        prompt: &Prompt,
        cancel: &CancellationToken,
        deadline: Duration,
    ) -> Result<(), Error> {
        if !self.provider().reads_ahead() {
            return Ok(());
        }
        let mut prompt = prompt.clone();
        // Templates want a user's message; up to its text the bytes are those of the real one.
        prompt.push(&Message::user(""));
        let request = Request {
            max_tokens: Some(0),
            ..Request::default()
        };
        self.stream(&prompt, &request, &mut |_| {}, cancel, deadline)
            .await
            .map(drop)
    }

    /// Returns a request with the key on it: made here alone, always to the endpoint itself.
    pub(super) fn request(&self, method: reqwest::Method, url: String) -> reqwest::RequestBuilder {
        let request = self.inner.http.request(method, url);
        match self.key() {
            Some(key) => match reqwest::header::HeaderValue::from_str(&format!("Bearer {key}")) {
                Ok(mut value) => {
                    value.set_sensitive(true);
                    request.header(AUTHORIZATION, value)
                }
                // Left out, the server says that it is missing; reqwest's own error would name the
                // value.
                Err(_) => request,
            },
            None => request,
        }
    }

    /// Returns how long to wait before the model is asked anew for an answer that this error broke
    /// off; `None` where it is not worth it.
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

    /// Reading a long prompt may take longer than the idle limit: three times what it took last
    /// time is still no stall.
    pub(super) fn first_byte_timeout(&self, n_bytes: usize) -> Duration {
        let idle = self.inner.options.idle_timeout();
        let Some(Prefill::Told(speed) | Prefill::Seen(speed)) =
            self.learnt(|learnt| learnt.prefill)
        else {
            return idle;
        };
        idle.max(Duration::from_secs_f64(
            (3.0 * tokens(n_bytes) / speed.max(0.1)).min(3600.0),
        ))
    }

    /// Returns what the server is asked for beside the API that all have: as long as nobody knows
    /// what it is, nothing.
    pub(super) fn provider(&self) -> &'static dyn Provider {
        self.learnt(|learnt| {
            learnt
                .probed
                .as_ref()
                .map_or(Server::Other, |probed| probed.server)
        })
        .provider()
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

    /// Adds what an answer cost; one whose tokens nobody counted costs what the caller takes them
    /// for.
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
            self.learnt(|learnt| learnt.prefill = Some(Prefill::Told(speed)));
        }
    }

    /// Takes how long the first word of an answer took, from servers that do not measure it. What
    /// is short says more of the network.
    pub(super) fn learn_of_first_word(&self, n_bytes: usize, after: Duration) {
        if n_bytes < WORTH_MEASURING {
            return;
        }
        let speed = tokens(n_bytes) / after.as_secs_f64().max(0.001);
        self.learnt(|learnt| {
            learnt.prefill = match learnt.prefill {
                Some(Prefill::Seen(slowest)) => Some(Prefill::Seen(slowest.min(speed))),
                None => Some(Prefill::Seen(speed)),
                told => told,
            };
        });
    }

    pub(super) fn remember(&self, probed: &Probed) {
        self.learnt(|learnt| learnt.probed = Some(probed.clone()));
    }

    fn learnt<T>(&self, with: impl FnOnce(&mut Learnt) -> T) -> T {
        with(
            &mut self
                .inner
                .learnt
                .lock()
                .expect("nothing panics while it holds this lock"),
        )
    }
}

/// Takes four bytes for a token.
fn tokens(n_bytes: usize) -> f64 {
    n_bytes as f64 / 4.0
}
