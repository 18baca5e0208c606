use serde::Deserialize;
use serde::Serialize;

use super::CallEffect;
use super::CallFacts;
use super::CallFields;
use super::CallKind;
use super::CallVerb;
use super::FileMemory;
use super::FileScope;
use super::FileUse;
use super::RuleSubject;
use super::TimeLimit;
use super::ToolCall;
use super::ToolFacts;

/// Goes to a host through the session's gateway, which decides whether that may be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Web {
    pub request: WebRequest,
    pub timeout_ms: u64,
    /// Time between TERM and KILL, in milliseconds.
    pub grace_ms: u64,
    /// Like that of [`crate::Bash`].
    pub stream_bytes: u64,
    pub tail_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum WebRequest {
    /// Fetches a page as text.
    Fetch {
        url: String,
        /// The host in it: requests to one are apart in time.
        host: String,
        /// Characters that are shown.
        max_length: u32,
        /// HTML is not converted.
        raw: bool,
    },
    /// Says what is wrong with the way to a host.
    Diagnose { action: WebAction, target: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WebAction {
    DnsLookup,
    CheckConnection,
    Ping,
}

impl WebAction {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DnsLookup => "dns_lookup",
            Self::CheckConnection => "check_connection",
            Self::Ping => "ping",
        }
    }
}

impl ToolCall for Web {
    const TOOLS: &'static [ToolFacts] = &[
        ToolFacts {
            name: "web_fetch",
            aliases: &["WebFetch", "fetch"],
            subject: RuleSubject::Nothing,
            file_use: FileUse::Neither,
        },
        ToolFacts {
            name: "network_diagnostics",
            aliases: &["NetworkDiagnostics"],
            subject: RuleSubject::Nothing,
            file_use: FileUse::Neither,
        },
    ];

    fn facts(&self) -> CallFacts<'_> {
        let (tool, verb, detail) = match &self.request {
            WebRequest::Fetch { url, .. } => ("web_fetch", "fetch the page", url),
            WebRequest::Diagnose { target, .. } => {
                ("network_diagnostics", "look at the network", target)
            }
        };
        CallFacts {
            tool,
            kind: CallKind::Command,
            effect: CallEffect::Requests,
            // Which host is reached is decided by the rules about hosts.
            needs: &[],
            paths: Vec::new(),
            scope: FileScope::Named,
            details: Some(vec![detail.into()]),
            weight: detail.len(),
            time: TimeLimit::Command {
                timeout_ms: self.timeout_ms,
                grace_ms: self.grace_ms,
            },
            memory: FileMemory::Nothing,
            verb: CallVerb::Plain(verb),
        }
    }

    fn fields_mut(&mut self) -> CallFields<'_> {
        CallFields::of(Vec::new())
    }
}
