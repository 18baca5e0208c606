//! Classifies permanent refusals by the error name in the body, for servers whose status does not
//! show them.

use std::fmt;

use serde_json::Value;

use super::options::Options;

/// Why a request will fail until the user changes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The key is missing, wrong, or lacks permission.
    Key,
    /// The account's quota or credit is exhausted.
    Account,
    /// The server has no such model.
    Model,
    /// The request itself is wrong.
    Request,
}

/// The error names of servers, without punctuation: `OpenAI`, `OpenRouter`, Groq, Together,
/// Moonshot, Anthropic, Google, Azure, `LiteLLM`.
const NAMES: [(Refusal, &[&str]); 4] = [
    (
        Refusal::Account,
        &[
            "insufficientquota",
            "billinghardlimitreached",
            "billingnotactive",
            "billingerror",
            "exceededcurrentquotaerror",
            "insufficientbalance",
            "insufficientcredits",
            "insufficientfunds",
            "paymentrequired",
            "budgetexceeded",
        ],
    ),
    (
        Refusal::Key,
        &[
            "invalidapikey",
            "incorrectapikey",
            "missingapikey",
            "authenticationerror",
            "invalidauthentication",
            "invalidauthenticationerror",
            "autherror",
            "unauthorized",
            "unauthenticated",
            "permissionerror",
            "permissiondenied",
            "permissiondeniederror",
            "accountdeactivated",
            "accessterminated",
        ],
    ),
    (
        Refusal::Model,
        &[
            "modelnotfound",
            "modelnotavailable",
            "modeldecommissioned",
            "invalidmodel",
            "unknownmodel",
            "deploymentnotfound",
        ],
    ),
    (
        Refusal::Request,
        &[
            "invalidrequesterror",
            "invalidrequest",
            "invalidargument",
            "badrequest",
            "badrequesterror",
            "notfounderror",
        ],
    ),
];

impl Refusal {
    /// Returns the class of an error that a retry would repeat; more specific names are checked
    /// first.
    pub(super) fn of(error: &Value) -> Option<Self> {
        let named: Vec<String> = ["code", "type", "status"]
            .iter()
            .filter_map(|key| error.get(*key)?.as_str())
            .map(|name| {
                name.chars()
                    .filter(char::is_ascii_alphanumeric)
                    .collect::<String>()
                    .to_ascii_lowercase()
            })
            .collect();
        let by_name = NAMES
            .iter()
            .find(|(_, names)| named.iter().any(|name| names.contains(&name.as_str())))
            .map(|(refusal, _)| *refusal);
        // Google uses the same words for a per-minute limit, distinguished by its status.
        by_name.or_else(|| {
            (error.get("status").is_none() && is_used_up(error)).then_some(Self::Account)
        })
    }
}

/// Returns whether the message of an error without a known name says that quota or credit is
/// exhausted.
fn is_used_up(error: &Value) -> bool {
    const WORDS: [&str; 4] = [
        "exceeded your current quota",
        "check your plan and billing",
        "insufficient_quota",
        "insufficient credits",
    ];
    let message = error
        .get("message")
        .unwrap_or(error)
        .as_str()
        .unwrap_or_default()
        .to_ascii_lowercase();
    WORDS.iter().any(|words| message.contains(words))
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key => "the key",
            Self::Account => "to work for this account any more",
            Self::Model => "the model",
            Self::Request => "the request",
        })
    }
}

/// Where the key of a refused request came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KeySource {
    /// There was none, or its source is unknown.
    #[default]
    Nowhere,
    Variable(String),
    File(String),
}

impl KeySource {
    pub(super) fn of(options: &Options) -> Self {
        match (&options.api_key_env, &options.api_key_file) {
            (Some(name), _) => Self::Variable(name.clone()),
            (None, Some(path)) => Self::File(path.clone()),
            (None, None) => Self::Nowhere,
        }
    }

    /// Returns the remedy for a refused key.
    pub(super) fn remedy(&self) -> String {
        let from = match self {
            Self::Nowhere => {
                return "put the key into a variable and name that with `--api-key-env VAR`"
                    .to_owned();
            }
            Self::Variable(name) => format!("in the variable {name}"),
            Self::File(path) => format!("in the file {path}"),
        };
        format!("is the key {from} valid for this server? `--api-key-env VAR` names another one")
    }

    /// Returns the remedy for an account without quota or credit.
    pub(super) fn account_remedy(&self) -> String {
        let whose = match self {
            Self::Nowhere => "the account".to_owned(),
            Self::Variable(name) => format!("the account of the key in {name}"),
            Self::File(path) => format!("the account of the key in the file {path}"),
        };
        format!(
            "check quota and billing of {whose} with the server's operator; `--provider NAME` or `--endpoint URL` selects another server"
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn permanent_refusals_are_recognized_by_name_or_message() {
        for (error, expected) in [
            (
                json!({"code": "insufficient_quota", "type": "insufficient_quota"}),
                Some(Refusal::Account),
            ),
            (
                json!({"code": "billing_hard_limit_reached", "type": "invalid_request_error"}),
                Some(Refusal::Account),
            ),
            (
                json!({"type": "exceeded_current_quota_error"}),
                Some(Refusal::Account),
            ),
            (
                json!({"code": "invalid_api_key", "type": "invalid_request_error"}),
                Some(Refusal::Key),
            ),
            (json!({"type": "authentication_error"}), Some(Refusal::Key)),
            (
                json!({"code": null, "status": "UNAUTHENTICATED"}),
                Some(Refusal::Key),
            ),
            (
                json!({"code": "model_not_found", "type": "invalid_request_error"}),
                Some(Refusal::Model),
            ),
            (json!({"code": "DeploymentNotFound"}), Some(Refusal::Model)),
            (json!({"type": "BadRequestError"}), Some(Refusal::Request)),
            (
                json!({"code": "rate_limit_exceeded", "type": "tokens"}),
                None,
            ),
            (
                json!({"code": "token_quota_exceeded", "type": "too_many_tokens_error"}),
                None,
            ),
            (json!({"type": "overloaded_error"}), None),
            (json!({"code": 503, "type": "server_error"}), None),
            (json!("insufficient_quota"), Some(Refusal::Account)),
            (
                json!({"message": "You exceeded your current quota, please check your plan and billing details."}),
                Some(Refusal::Account),
            ),
            (
                json!({"message": "You exceeded your current quota.", "status": "RESOURCE_EXHAUSTED"}),
                None,
            ),
            (json!({"message": "Rate limit reached for requests"}), None),
        ] {
            assert_eq!(Refusal::of(&error), expected, "{error}");
        }
    }
}
