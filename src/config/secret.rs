const NAMES: [&str; 9] = [
    "api_key",
    "apikey",
    "token",
    "secret",
    "password",
    "passwd",
    "authorization",
    "credential",
    "private_key",
];
const ENDS: [&str; 6] = [
    "_api_key",
    "_apikey",
    "_token",
    "_secret",
    "_password",
    "_private_key",
];

/// Returns whether a key's name says that its value is a secret. Names of files and variables that
/// hold one are not.
pub(super) fn is_secret(key: &str) -> bool {
    let (parent, name) = key.rsplit_once('.').unwrap_or(("", key));
    // Below it are names of headers, each with the name of a variable.
    if parent.ends_with("_env") {
        return false;
    }
    let name = name.to_ascii_lowercase().replace('-', "_");
    NAMES.contains(&name.as_str()) || ENDS.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::is_secret;

    #[test]
    fn names_of_secrets_differ_from_names_of_their_files_and_variables() {
        for key in [
            "llm.api_key",
            "api-key",
            "web.github_token",
            "x.password",
            "headers.Authorization",
        ] {
            assert!(is_secret(key), "{key}");
        }
        for key in [
            "llm.api_key_env",
            "llm.api_key_file",
            "agent.max_tokens",
            "llm.tokens",
            "mcp.servers.x.headers_env.Authorization",
            "mcp.servers.x.bearer_token_env",
            "ui.keys",
        ] {
            assert!(!is_secret(key), "{key}");
        }
    }
}
