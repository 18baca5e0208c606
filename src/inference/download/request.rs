//! One request, with its redirects.

use std::time::Duration;

use reqwest::Client;
use reqwest::Response;
use reqwest::StatusCode;
use reqwest::Url;
use reqwest::header;

use super::AttemptError;
use super::address::may_lead;
use super::address::same_origin;
use super::address::shown;
use super::remedies::ELSEWHERE;
use super::remedies::NOT_IT;
use super::remedies::REFUSED;
use super::remedies::UNENCRYPTED;
use crate::Error;
use crate::options::HUB;
use podbay_event::Secret;

/// Most redirects of one request.
const MOST_REDIRECTS: u32 = 5;

/// The hub of a file: its size and hash are authoritative, and it alone gets the token.
#[derive(Clone, Debug)]
pub struct Hub {
    pub base: Url,
    pub token: Option<Secret>,
}

/// What the hub's redirect says about a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HubMetadata {
    pub(super) sha256: Option<String>,
    pub(super) size: Option<u64>,
}

/// Makes the requests for one file.
pub(super) struct Requester<'a> {
    pub(super) client: &'a Client,
    pub(super) url: &'a Url,
    pub(super) hub: Option<&'a Hub>,
    pub(super) idle: Duration,
}

impl Requester<'_> {
    /// Sends the request and follows redirects; returns a successful response.
    pub(super) async fn get(
        &self,
        range: Option<&str>,
        if_range: Option<&str>,
    ) -> Result<(Response, HubMetadata), AttemptError> {
        let mut url = self.url.clone();
        let mut linked = HubMetadata::default();
        for _ in 0..=MOST_REDIRECTS {
            // A proxy might otherwise compress the data, which makes lengths meaningless.
            let mut request = self
                .client
                .get(url.clone())
                .header(header::ACCEPT_ENCODING, "identity");
            if let Some(range) = range {
                request = request.header(header::RANGE, range);
            }
            if let Some(validator) = if_range {
                request = request.header(header::IF_RANGE, validator);
            }
            let hub = self.hub.filter(|hub| same_origin(&hub.base, &url));
            if let Some(token) = hub.and_then(|hub| hub.token.as_ref()) {
                request = request.bearer_auth(token.expose());
            }
            let response = match tokio::time::timeout(self.idle, request.send()).await {
                Err(_) => {
                    return Err(AttemptError::Early(format!(
                        "the server did not answer for {} s",
                        self.idle.as_secs_f32()
                    )));
                }
                Ok(Err(error)) => return Err(AttemptError::Early(chain(&error))),
                Ok(Ok(response)) => response,
            };
            if hub.is_some() {
                linked.take(&response);
            }
            let status = response.status();
            if !status.is_redirection() {
                return if status.is_success() || status == StatusCode::RANGE_NOT_SATISFIABLE {
                    Ok((response, linked))
                } else {
                    Err(self.refused(&response, hub.is_some()))
                };
            }
            let next = text(&response, "location").and_then(|target| url.join(target).ok());
            let Some(next) = next else {
                return Err(self.fatal(
                    format!("the server answered {status} without saying where to"),
                    ELSEWHERE,
                ));
            };
            if !may_lead(&url, &next) {
                return Err(self.fatal(
                    format!(
                        "the server points to `{}`, which is not encrypted",
                        shown(&next)
                    ),
                    UNENCRYPTED,
                ));
            }
            url = next;
        }
        Err(self.fatal(format!("more than {MOST_REDIRECTS} redirects"), NOT_IT))
    }

    /// Returns an error that no retry can fix.
    pub(super) fn error(&self, problem: impl Into<String>, remedy: &'static str) -> Error {
        Error::Download {
            url: shown(self.url),
            problem: problem.into(),
            remedy: Some(remedy),
        }
    }

    pub(super) fn fatal(&self, problem: impl Into<String>, remedy: &'static str) -> AttemptError {
        AttemptError::Fatal(self.error(problem, remedy))
    }

    /// Returns the error after the last retry. The data stays for a later attempt.
    pub(super) fn given_up(&self, problem: String) -> AttemptError {
        AttemptError::Fatal(Error::Download {
            url: shown(self.url),
            problem,
            remedy: None,
        })
    }

    fn refused(&self, response: &Response, by_hub: bool) -> AttemptError {
        let status = response.status();
        if status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429) {
            return AttemptError::Early(format!("the server answered {status}"));
        }
        let has_token = self.hub.is_some_and(|hub| hub.token.is_some());
        let remedy = match status.as_u16() {
            // The hub also sends this for repositories that do not exist.
            401 | 403 if by_hub && has_token => Some(
                "check the spelling of repository and file, and that the token may read it; some models want their terms accepted first",
            ),
            401 | 403 if by_hub => Some(self.hub.map_or(REFUSED, |hub| wants_token(&hub.base))),
            404 | 410 => Some("check the spelling of repository, revision and file"),
            _ => Some(REFUSED),
        };
        // The hub's error code, such as `GatedRepo`.
        let word = text(response, "x-error-code").filter(|word| {
            by_hub && word.len() <= 40 && word.bytes().all(|b| b.is_ascii_alphanumeric())
        });
        let problem = format!(
            "the server answered {status}{}",
            word.map_or_else(String::new, |word| format!(" ({word})"))
        );
        AttemptError::Fatal(Error::Download {
            url: shown(self.url),
            problem,
            remedy,
        })
    }
}

/// Returns the remedy where a hub requires a token. `HF_TOKEN` is meant for the public hub alone.
fn wants_token(hub: &Url) -> &'static str {
    if hub.as_str().trim_end_matches('/') == HUB {
        "check the spelling of repository and file; a model behind a login wants a token in HF_TOKEN, or in the variable that \
         `inference.hub_token_env` names"
    } else {
        "check the spelling of repository and file; a model behind a login wants a token, in the variable that `inference.hub_token_env` names"
    }
}

impl HubMetadata {
    fn take(&mut self, response: &Response) {
        let hash = text(response, "x-linked-etag").map(|tag| {
            tag.trim_start_matches("W/")
                .trim_matches('"')
                .to_ascii_lowercase()
        });
        let is_hash =
            |hash: &String| hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        self.sha256 = hash.filter(is_hash).or(self.sha256.take());
        self.size = text(response, "x-linked-size")
            .and_then(|size| size.parse().ok())
            .or(self.size);
    }
}

/// Returns a header that is plain text.
pub(super) fn text<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response
        .headers()
        .get(name)
        .and_then(|value| value.to_str().ok())
}

/// Returns an error with its causes, without the URL, which the caller shows.
pub(crate) fn chain(error: &reqwest::Error) -> String {
    let mut text = "the connection failed".to_owned();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hf_token_is_suggested_for_the_public_hub_only() {
        for (hub, is_usual) in [
            (HUB, true),
            ("https://hub.example/", false),
            ("https://huggingface.co.example", false),
        ] {
            let remedy = wants_token(&Url::parse(hub).expect("an address"));
            assert_eq!(remedy.contains("HF_TOKEN"), is_usual, "{hub}");
            assert!(remedy.contains("`inference.hub_token_env`"), "{hub}");
        }
    }
}
