//! The servers that a project's `.mcp.json` names. The file is untrusted: nothing in it is started
//! before the user has enabled these very bytes.

use std::collections::BTreeMap;

use serde_json::Value;

use super::ServerOptions;
use super::options::invalid_name;
use super::plain_line;

/// The file, in the project's folder.
pub const PROJECT_FILE: &str = ".mcp.json";

/// Most servers of the file; the sandbox has room for a few.
const MOST: usize = 8;

/// What the file names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectServers {
    pub servers: BTreeMap<String, ServerOptions>,
    /// Servers that cannot be used, by name, each with the reason.
    pub skipped: Vec<(String, String)>,
}

/// Reads the file's text; the error says what is wrong with all of it.
pub fn project_servers(text: &str) -> Result<ProjectServers, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let named = value["mcpServers"]
        .as_object()
        .ok_or("it has no object `mcpServers`")?;
    let mut found = ProjectServers::default();
    for (name, server) in named {
        if found.skipped.len() > MOST {
            break;
        }
        let shown = plain_line(name, 40);
        if found.servers.len() == MOST {
            found
                .skipped
                .push((shown, format!("it is beyond the first {MOST}")));
            continue;
        }
        match options(name, server) {
            Ok(options) => drop(found.servers.insert(name.clone(), options)),
            Err(why) => found.skipped.push((shown, why)),
        }
    }
    Ok(found)
}

fn options(name: &str, server: &Value) -> Result<ServerOptions, String> {
    if let Some(what) = invalid_name(name) {
        return Err(what);
    }
    match &server["where"] {
        Value::Null => {}
        Value::String(place) if place == "sandbox" => {}
        _ => {
            return Err(
                "`where`: a server of a project runs in the sandbox; only your own settings name one on your machine"
                    .to_owned(),
            );
        }
    }
    let text = |value: &Value, key: &str| {
        let text = value
            .as_str()
            .ok_or_else(|| format!("`{key}` is no text"))?;
        if text.contains("${") {
            // It would be a way to the variables of the user's machine.
            return Err(format!("`{key}` names a variable, which is not replaced"));
        }
        Ok(text.to_owned())
    };
    if let Some(url) = server.get("url") {
        if server["type"] == "sse" {
            return Err("`type`: only streamable HTTP is spoken, not its predecessor".to_owned());
        }
        if server.get("headers").is_some() {
            return Err(
                "`headers` are not taken from a project: a server with a key stands in your own settings"
                    .to_owned(),
            );
        }
        let options = ServerOptions {
            url: Some(text(url, "url")?),
            ..ServerOptions::default()
        };
        return match options.mistake() {
            Some((key, what)) => Err(format!("`{key}`: {what}")),
            None => Ok(options),
        };
    }
    let mut options = ServerOptions {
        command: text(&server["command"], "command")?,
        ..ServerOptions::default()
    };
    match &server["args"] {
        Value::Null => {}
        Value::Array(args) => {
            let args = args.iter().map(|word| text(word, "args"));
            options.args = args.collect::<Result<_, _>>()?;
        }
        _ => return Err("`args` is no list".to_owned()),
    }
    if let Some(env) = server["env"].as_object() {
        for (name, value) in env {
            options.env.insert(name.clone(), text(value, "env")?);
        }
    }
    match options.mistake() {
        Some((key, what)) => Err(format!("`{key}`: {what}")),
        None => Ok(options),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_of_a_project_are_named_and_what_cannot_be_used_is_said() {
        let text = r#"{"mcpServers": {
            "time": {"type": "stdio", "command": "uvx", "args": ["mcp-server-time"], "env": {"TZ": "UTC"}},
            "web": {"type": "http", "url": "https://example.com/mcp"},
            "old": {"type": "sse", "url": "https://example.com/sse"},
            "head": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer x"}},
            "var": {"url": "https://example.com/${TOKEN}"},
            "ip": {"url": "http://169.254.169.254/"},
            "key": {"command": "x", "env": {"K": "${GITHUB_TOKEN}"}},
            "a__b": {"command": "x"},
            "host": {"command": "x", "where": "host"},
            "list": {"command": "x", "where": ["sandbox"]},
            "bad": {"args": ["x"]}
        }}"#;
        let found = project_servers(text).expect("reads");
        assert_eq!(found.servers.keys().collect::<Vec<_>>(), ["time", "web"]);
        assert_eq!(found.servers["time"].command_line(), "uvx mcp-server-time");
        assert_eq!(
            found.servers["web"].command_line(),
            "https://example.com/mcp"
        );
        let skipped: Vec<&str> = found
            .skipped
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        let why = &found.skipped[6].1;
        assert!(why.contains("only your own settings"), "{why}");
        assert_eq!(
            skipped,
            [
                "old", "head", "var", "ip", "key", "a__b", "host", "list", "bad"
            ]
        );
    }

    #[test]
    fn what_is_no_list_of_servers_is_an_error() {
        for text in ["", "[]", "{}", "{\"mcpServers\": []}", &"[".repeat(100_000)] {
            assert!(project_servers(text).is_err(), "{text:.20}");
        }
        let many: Vec<String> = (0..5000)
            .map(|n| format!("\"s{n}\": {{\"command\": \"x\"}}"))
            .collect();
        let found =
            project_servers(&format!("{{\"mcpServers\": {{{}}}}}", many.join(","))).expect("reads");
        assert!(found.servers.len() == MOST && found.skipped.len() <= MOST + 1);
    }
}
