//! Parses error responses in all the shapes that servers use.

use std::time::Duration;

use serde_json::Value;

use crate::error::Error;
use crate::error::plain;
use crate::objection::unreadable;
use crate::provider::instead::Instead;
use crate::provider::too_long;
use crate::refusal::KeySource;
use crate::refusal::Refusal;
use podbay_event::Secret;

/// Maximum length of a shown server message, in characters.
const MAX_MESSAGE: usize = 600;

/// The context of an error response.
#[derive(Debug, Default)]
pub(crate) struct Failure<'a> {
    pub(crate) endpoint: &'a str,
    /// Replaced by `***` wherever the server repeats it.
    pub(crate) key: Option<&'a str>,
    pub(crate) code: u16,
    pub(crate) location: Option<&'a str>,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) is_html: bool,
    /// The content encoding according to its head.
    pub(crate) packed: Option<&'static str>,
}

impl Failure<'_> {
    /// Returns the error of a response with an error status.
    pub(crate) fn of_body(&self, body: &[u8]) -> Error {
        if (300..400).contains(&self.code) {
            return Error::Redirect {
                code: self.code,
                location: self.clean(self.location.unwrap_or("nowhere")),
            };
        }
        let text = String::from_utf8_lossy(body);
        if let Ok(value) = serde_json::from_str::<Value>(&text)
            && let Some(error) = self.of_value(&value)
        {
            return error;
        }
        match Instead::of(body, self.packed, self.is_html) {
            Instead::Nothing | Instead::Other => {
                match too_long::sizes(&Value::Null, self.code, &text) {
                    Some(sizes) => sizes.into(),
                    None => self.status(&text),
                }
            }
            // The meaning of such a status is known, whatever its body.
            what if (500..600).contains(&self.code)
                || matches!(self.code, 401 | 402 | 403 | 408 | 413 | 429) =>
            {
                self.status(&format!("{what} from {}", self.endpoint))
            }
            _ => self.not_json(body),
        }
    }

    /// Returns the error of a body that should have been JSON.
    pub(crate) fn not_json(&self, body: &[u8]) -> Error {
        let what = match Instead::of(body, self.packed, self.is_html) {
            Instead::Page { title } => Instead::Page {
                title: self.hide(&title),
            },
            other => other,
        };
        Error::NotJson {
            endpoint: self.endpoint.to_owned(),
            what,
        }
    }

    /// Returns the error that a JSON value reports, in the body or within the stream; `None` if it
    /// reports none.
    pub(crate) fn of_value(&self, value: &Value) -> Option<Error> {
        let error = match value {
            // Google's errors come in a list of one.
            Value::Array(errors) if matches!(errors.as_slice(), [Value::Object(_)]) => {
                return self.of_value(&errors[0]);
            }
            Value::Object(fields) => fields
                .get("error")
                .filter(|error| !error.is_null())
                .or_else(|| {
                    // FastAPI's `detail`, and errors without a wrapper.
                    let bare = fields.contains_key("message")
                        && (fields.contains_key("code") || fields.contains_key("type"));
                    fields
                        .get("detail")
                        .or(bare.then_some(value))
                        .filter(|_| !fields.contains_key("choices"))
                })?,
            _ => return None,
        };
        let message = error.get("message").or(Some(error)).map(|message| {
            message
                .as_str()
                .map_or_else(|| message.to_string(), str::to_owned)
        });
        let mut message = message.unwrap_or_default();
        // `OpenRouter` reports that an upstream server failed, with the upstream message beside it.
        if let Some(raw) = error.pointer("/metadata/raw").filter(|raw| !raw.is_null()) {
            let raw = raw.as_str().map_or_else(|| raw.to_string(), str::to_owned);
            message = format!("{message}: {raw}");
        }
        // Some name the refused parameter only there.
        if let Some(parameter) = error
            .get("param")
            .and_then(Value::as_str)
            .filter(|name| !name.is_empty() && !message.contains(name))
        {
            message = format!("{message} (`{parameter}`)");
        }
        if let Some(sizes) = too_long::sizes(error, self.code, &message) {
            return Some(sizes.into());
        }
        // Groq's, which repeats everything the model wrote.
        if let Some(raw) = error.get("failed_generation").and_then(Value::as_str) {
            return Some(Error::Unreadable {
                message: self.clean(&message),
                raw: Secret::new(raw),
            });
        }
        if let Some(raw) = unreadable(&message) {
            return Some(Error::Unreadable {
                message: self.clean(&message),
                raw: Secret::new(raw),
            });
        }
        let code = error
            .get("code")
            .and_then(number)
            .and_then(|code| u16::try_from(code).ok())
            .filter(|code| (400..600).contains(code));
        let code = if self.code >= 400 {
            Some(self.code)
        } else {
            code
        };
        Some(match (Refusal::of(error), code) {
            // An exhausted quota has the same status as a rate limit.
            (Some(what @ (Refusal::Key | Refusal::Account | Refusal::Model)), _)
            | (Some(what), None) => self.refused(what, code, &message),
            (_, Some(code)) => Self { code, ..*self }.status(&message),
            (None, None) => Error::Reported {
                message: self.clean(&message),
            },
        })
    }

    fn status(&self, message: &str) -> Error {
        let message = self.clean(message);
        let message = if message.is_empty() {
            "no explanation".to_owned()
        } else {
            message
        };
        match self.code {
            503 if message.to_ascii_lowercase().contains("loading model") => Error::ModelLoading {
                endpoint: self.endpoint.to_owned(),
                waited: Duration::ZERO,
            },
            // The bytes may be too many rather than the tokens: shortening helps in both cases.
            413 => Error::ContextExceeded {
                prompt: None,
                context: None,
            },
            401 | 403 => self.refused(Refusal::Key, Some(self.code), &message),
            402 => self.refused(Refusal::Account, None, &message),
            code => Error::Status {
                code,
                message,
                retry_after: self.retry_after,
            },
        }
    }

    fn refused(&self, what: Refusal, code: Option<u16>, message: &str) -> Error {
        let (message, key) = (self.clean(message), KeySource::default());
        match what {
            Refusal::Key => Error::Unauthorized { code, message, key },
            Refusal::Account | Refusal::Model | Refusal::Request => {
                Error::Refused { what, message, key }
            }
        }
    }

    fn clean(&self, text: &str) -> String {
        plain(&self.hide(text), MAX_MESSAGE)
    }

    fn hide(&self, text: &str) -> String {
        match self.key.filter(|key| !key.is_empty()) {
            Some(key) => Secret::new(key).hide_encoded_in(text.replace(key, "***")),
            None => text.to_owned(),
        }
    }
}

/// Returns a number, also one in quotation marks.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(code: u16, body: &str) -> Error {
        Failure {
            endpoint: "http://h/v1",
            key: Some("sesame"),
            code,
            ..Failure::default()
        }
        .of_body(body.as_bytes())
    }

    #[track_caller]
    fn check(code: u16, body: &str, expected: &str) {
        assert_eq!(read(code, body).to_string(), expected);
    }

    #[test]
    fn the_servers_own_message_is_found() {
        check(
            500,
            r#"{"error":{"code":500,"message":"boom","type":"server_error"}}"#,
            "the model server answered with status 500: boom",
        );
        check(
            200,
            r#"{"error":{"code":"404","message":"gone"}}"#,
            "the model server answered with status 404: gone",
        );
        check(
            400,
            r#"{"error":"bad"}"#,
            "the model server answered with status 400: bad",
        );
        check(
            422,
            r#"{"detail":[{"msg":"x"}]}"#,
            r#"the model server answered with status 422: [{"msg":"x"}]"#,
        );
        check(
            404,
            r#"{"object":"error","message":"no model","type":"NotFoundError","code":404}"#,
            "the model server answered with status 404: no model",
        );
        check(
            502,
            "bad gateway\u{1b}[2J",
            "the model server answered with status 502: bad gateway [2J",
        );
        check(
            500,
            "",
            "the model server answered with status 500: no explanation",
        );
        check(
            401,
            r#"{"error":{"message":"Invalid key sesame"}}"#,
            "the model server refused the key (status 401): Invalid key ***",
        );
    }

    /// A call in it would change its effect if letters equal to the key were replaced.
    #[test]
    fn model_output_in_errors_is_exact_but_shown_without_the_key() {
        let wrote = r#"<tool_call>{"name": "bash", "arguments": {"command": "echo sesame* > out.txt"}}</tool_call>"#;
        for error in [
            serde_json::json!({"code": 500, "message": format!("Failed to parse input at pos 0: {wrote}")}),
            serde_json::json!({"message": "Failed to call a function for sesame.", "failed_generation": wrote}),
        ] {
            let error = read(500, &serde_json::json!({ "error": error }).to_string());
            assert!(
                !error.to_string().contains("sesame") && !format!("{error:?}").contains("sesame"),
                "{error:?}"
            );
            let Error::Unreadable { raw, .. } = error else {
                panic!("{error:?}")
            };
            assert_eq!(raw.expose(), wrote);
        }
    }

    #[test]
    fn a_key_repeated_in_another_form_is_redacted_too() {
        for repeated in [
            "sesame%2Fopen",
            "sesame%2fopen",
            "sesame\\/open",
            "sesame&#47;open",
            "c2VzYW1lL29wZW4=",
            "OnNlc2FtZS9vcGVu",
            "dTpzZXNhbWUvb3Blbg",
        ] {
            for body in [
                serde_json::json!({"error": {"message": format!("No: {repeated}")}}).to_string(),
                format!("No: {repeated}"),
            ] {
                let failure = Failure {
                    endpoint: "http://h/v1",
                    key: Some("sesame/open"),
                    code: 400,
                    ..Failure::default()
                };
                assert_eq!(
                    failure.of_body(body.as_bytes()).to_string(),
                    "the model server answered with status 400: No: ***",
                    "{body}"
                );
            }
        }
    }

    #[test]
    fn permanent_refusals_are_distinguished_from_transient_ones() {
        let quota = r#"{"error":{"message":"You exceeded your quota, sesame.","type":"insufficient_quota","code":"insufficient_quota"}}"#;
        for code in [200, 429, 503] {
            check(
                code,
                quota,
                "the model server refuses to work for this account any more: You exceeded your quota, ***.",
            );
        }
        check(
            402,
            "Pay.",
            "the model server refuses to work for this account any more: Pay.",
        );
        let key = r#"{"error":{"message":"No.","type":"invalid_request_error","code":"invalid_api_key"}}"#;
        check(200, key, "the model server refused the key: No.");
        check(
            400,
            key,
            "the model server refused the key (status 400): No.",
        );
        // Google's.
        let google =
            r#"[{"error":{"code":401,"message":"No such key.","status":"UNAUTHENTICATED"}}]"#;
        check(
            200,
            google,
            "the model server refused the key (status 401): No such key.",
        );
        let model = r#"{"error":{"message":"No model `x`.","type":"invalid_request_error","code":"model_not_found"}}"#;
        for code in [200, 404, 503] {
            check(
                code,
                model,
                "the model server refuses the model: No model `x`.",
            );
        }
        let request = r#"{"error":{"message":"Bad.","type":"invalid_request_error"}}"#;
        check(200, request, "the model server refuses the request: Bad.");
        check(
            400,
            request,
            "the model server answered with status 400: Bad.",
        );
        let often =
            r#"{"error":{"message":"Slowly.","type":"tokens","code":"rate_limit_exceeded"}}"#;
        assert!(read(429, often).is_retryable() && read(200, often).is_retryable());
        for (code, body) in [
            (200, quota),
            (429, quota),
            (402, ""),
            (200, key),
            (503, model),
            (200, request),
        ] {
            assert!(!read(code, body).is_retryable(), "{code} {body}");
        }
    }

    #[test]
    fn a_web_page_is_named_as_such() {
        check(
            404,
            "<!DOCTYPE html><h1>x",
            "http://h/v1 answered with a web page, not with JSON",
        );
        check(
            502,
            " <html><title>502 Bad Gateway sesame</title>",
            "the model server answered with status 502: a web page (\"502 Bad Gateway ***\") from http://h/v1",
        );
        check(
            404,
            "<title>sesame</title>",
            "http://h/v1 answered with a web page (\"***\"), not with JSON",
        );
    }

    #[test]
    fn loading_is_not_a_failure() {
        assert!(matches!(
            read(
                503,
                r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#
            ),
            Error::ModelLoading { .. }
        ));
    }

    #[test]
    fn a_payload_too_large_is_too_long_whatever_its_message() {
        for body in [
            "",
            "Payload Too Large",
            "<html><h1>413 Request Entity Too Large</h1>",
            r#"{"error":{"message":"too large","code":413}}"#,
        ] {
            assert!(
                matches!(
                    read(413, body),
                    Error::ContextExceeded {
                        prompt: None,
                        context: None
                    }
                ),
                "{body}"
            );
        }
    }

    #[test]
    fn a_completion_is_not_an_error() {
        let failure = Failure::default();
        assert!(
            failure
                .of_value(&serde_json::json!({"choices": [], "error": null}))
                .is_none()
        );
        assert!(failure.of_value(&serde_json::json!([1])).is_none());
    }
}
