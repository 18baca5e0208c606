//! Whom a command would reach.

use std::collections::BTreeSet;

use super::words;
use podbay_code::shell::Command;
use podbay_code::shell::Word;
use podbay_event::Capability;

const UNKNOWN: &str = Capability::UNKNOWN_HOST;

/// Returns the hosts that a command names; loopback is within the box and is none.
pub(super) fn hosts(command: &Command) -> BTreeSet<String> {
    let mut hosts = BTreeSet::new();
    for target in command.redirections.iter().filter_map(|redirection| redirection.target.as_ref()) {
        if let Some(rest) = target.text.strip_prefix("/dev/tcp/").or_else(|| target.text.strip_prefix("/dev/udp/")) {
            hosts.insert(named(rest.split('/').next().unwrap_or(rest)));
        }
    }
    let Some(name) = command.name() else { return without_loopback(hosts) };
    let arguments = command.arguments();
    match name {
        "curl" | "wget" | "http" | "https" | "xh" | "aria2c" | "lynx" | "w3m" => web(name, arguments, &mut hosts),
        // It only says which version it is.
        "ssh" if matches!(arguments, [one] if one.known() == Some("-V")) => {}
        "ssh" | "sftp" | "mosh" | "ssh-copy-id" => {
            hosts.insert(first_operand(arguments, "bcDEeFIiJLlmOopQRSWw").map_or_else(|| UNKNOWN.to_owned(), remote));
        }
        "nc" | "ncat" | "netcat" | "telnet" | "ftp" | "ping" | "ping6" | "traceroute" | "whois" | "nmap"
            if !words::has(arguments, "l", &["--listen"]) || name.starts_with("ping") =>
        {
            hosts.insert(first_operand(arguments, "cIiMmpQsTtWwX").map_or_else(|| UNKNOWN.to_owned(), remote));
        }
        "nslookup" | "host" | "dig" | "drill" | "kdig" => lookup(name, arguments, &mut hosts),
        "socat" => {
            hosts.insert(UNKNOWN.to_owned());
        }
        "scp" | "rsync" => hosts.extend(arguments.iter().filter(|word| is_remote_path(&word.text)).map(remote)),
        "gh" | "hub" => {
            hosts.insert("github.com".to_owned());
        }
        "glab" => {
            hosts.insert("gitlab.com".to_owned());
        }
        "git" => git(arguments, &mut hosts),
        _ => {}
    }
    without_loopback(hosts)
}

/// What is looked up, and the server that is asked for it: both learn of the other.
fn lookup(name: &str, arguments: &[Word], hosts: &mut BTreeSet<String>) {
    const KINDS: [&str; 16] =
        ["A", "AAAA", "ANY", "AXFR", "CAA", "CNAME", "DNSKEY", "DS", "HINFO", "MX", "NS", "PTR", "SOA", "SRV", "TXT", "IN"];
    // Of `dig` these have a value, and of `host` others.
    let valued = if name == "host" { "ctNRWm" } else { "bcfkpqtxy" };
    let has_values = name != "nslookup";
    let mut words = arguments.iter();
    let mut found = BTreeSet::new();
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        let is_kind = name != "nslookup" && name != "host" && KINDS.contains(&text.to_ascii_uppercase().as_str());
        let is_valued = has_values && text.len() == 2 && text.starts_with('-') && text.ends_with(|c| valued.contains(c));
        if is_valued {
            let value = words.next().filter(|_| matches!(text, "-q" | "-x") && name != "host");
            found.extend(value.map(|word| named(&word.text)));
            // The names stand in a file.
            found.extend((text == "-f").then(|| UNKNOWN.to_owned()));
        } else if !(text.starts_with(['-', '+']) && text.len() > 1 || is_kind) {
            found.insert(named(text.strip_prefix('@').unwrap_or(text)));
        }
    }
    // Alone they ask for what they read, or the root.
    if found.is_empty() {
        found.insert(UNKNOWN.to_owned());
    }
    hosts.append(&mut found);
}

/// Verbs of package managers behind which `publish` is a name.
const NO_VERB: [&str; 12] =
    ["run", "run-script", "exec", "test", "install", "add", "info", "view", "help", "search", "uninstall", "remove"];

/// Options of what publishes behind which no value stands.
const FLAGS: [&str; 14] = [
    "--all-features",
    "--allow-dirty",
    "--build",
    "--force",
    "--frozen",
    "--json",
    "--locked",
    "--no-git-checks",
    "--no-verify",
    "--offline",
    "--provenance",
    "--quiet",
    "--recursive",
    "--workspace",
];

/// Returns whether a command certainly only tries to publish: all of its words are known, and none takes `--dry-run` back or has it for a value.
fn only_tries(command: &Command) -> bool {
    if !matches!(command.name(), Some("npm" | "pnpm" | "cargo" | "uv" | "poetry")) {
        return false;
    }
    let Some(words) = command.arguments().iter().map(Word::known).collect::<Option<Vec<&str>>>() else { return false };
    let ends_an_option = |word: &str| !word.starts_with('-') || word.contains('=') || FLAGS.contains(&word);
    let says_so = |at: &usize| words[*at] == "--dry-run" && at.checked_sub(1).is_none_or(|before| ends_an_option(words[before]));
    let is_taken_back = |word: &&str| word.contains("dry-run=") || *word == "--no-dry-run" || matches!(*word, "--" | "false");
    (0..words.len()).any(|at| says_so(&at)) && !words.iter().any(is_taken_back)
}

/// Returns whether a command hands something to others for good.
pub(super) fn publishes(command: &Command) -> bool {
    if only_tries(command) {
        return false;
    }
    let first = command.arguments().iter().map(|word| word.text.as_str()).find(|text| !text.starts_with(['-', '+']));
    let words = || command.arguments().iter().map(|word| word.text.as_str());
    let has = |one: &str, other: &str| words().zip(words().skip(1)).any(|pair| pair == (one, other));
    let is_verb = |verb: &str| words().take_while(|word| !NO_VERB.contains(word)).any(|word| word == verb);
    match command.name() {
        Some("npm" | "pnpm" | "yarn") if is_verb("publish") => return true,
        Some("python" | "python3" | "uv" | "uvx" | "pipx") if has("twine", "upload") => return true,
        _ => {}
    }
    matches!(
        (command.name(), first),
        (Some("cargo" | "uv" | "poetry" | "flit" | "hatch"), Some("publish"))
            | (Some("twine"), Some("upload"))
            | (Some("gem" | "docker" | "podman" | "helm"), Some("push"))
            | (Some("mvn"), Some("deploy"))
    )
}

fn web(name: &str, arguments: &[Word], hosts: &mut BTreeSet<String>) {
    let valued = if name == "curl" { "odHXuAeFTbcmwxKEyYzrCQtP" } else { "oOPUaieTwQABDIRXtl" };
    let long_valued = [
        "--output",
        "--header",
        "--data",
        "--data-raw",
        "--data-binary",
        "--request",
        "--user",
        "--user-agent",
        "--form",
        "--upload-file",
        "--max-time",
        "--connect-timeout",
        "--retry",
        "--write-out",
        "--cacert",
        "--cert",
        "--key",
        "--config",
        "--output-document",
        "--directory-prefix",
        "--timeout",
        "--tries",
    ];
    let mut n_found = 0;
    let mut skip = false;
    for word in arguments {
        if std::mem::take(&mut skip) {
            continue;
        }
        let text = word.text.as_str();
        if text.contains("://") {
            n_found += 1;
            hosts.insert(address(text));
        } else if text.starts_with("--") {
            skip = long_valued.contains(&text);
        } else if text.starts_with('-') && text.len() > 1 {
            skip = text.ends_with(|c| valued.contains(c));
        } else if !text.is_empty() && text != "-" {
            n_found += 1;
            hosts.insert(named(text.split(['/', '?']).next().unwrap_or(text)));
        }
    }
    let only_says = arguments.iter().all(|word| matches!(word.text.as_str(), "--version" | "-V" | "--help" | "-h" | "--manual"));
    if n_found == 0 && (arguments.is_empty() || !only_says) {
        hosts.insert(UNKNOWN.to_owned());
    }
}

fn git(arguments: &[Word], hosts: &mut BTreeSet<String>) {
    let mut words = arguments.iter();
    let verb = loop {
        match words.next().map(|word| word.text.as_str()) {
            Some("-C" | "-c" | "--git-dir" | "--work-tree") => {
                words.next();
            }
            Some(text) if text.starts_with('-') => {}
            Some(verb) => break verb,
            None => return,
        }
    };
    let rest = words.as_slice();
    let first = rest.first().map(|word| word.text.as_str());
    let is_address = |word: &&Word| word.text.contains("://") || is_remote_path(&word.text);
    match verb {
        "clone" => match rest.iter().find(is_address) {
            Some(word) => {
                hosts.insert(if word.text.contains("://") { address(&word.text) } else { remote(word) });
            }
            // A folder.
            None if words::operands(rest).next().is_some_and(|word| word.known().is_some()) => {}
            None => {
                hosts.insert(UNKNOWN.to_owned());
            }
        },
        "fetch" | "pull" | "ls-remote" => {
            let named = rest.iter().find(is_address).map(|word| if word.text.contains("://") { address(&word.text) } else { remote(word) });
            let is_folder = words::operands(rest).next().is_some_and(|word| word.text.starts_with(['.', '/']));
            if named.is_some() || !is_folder {
                hosts.insert(named.unwrap_or_else(|| UNKNOWN.to_owned()));
            }
        }
        "submodule" if matches!(first, Some("update" | "add")) => {
            let named = rest.iter().find(is_address).map(|word| address(&word.text));
            // One that begins with a dot is looked for where the remote is, and the session's repository has none.
            let is_folder = first == Some("add")
                && first_operand(&rest[1..], "b").and_then(Word::known).is_some_and(|path| path.starts_with(['.', '/']));
            if named.is_some() || !is_folder {
                hosts.insert(named.unwrap_or_else(|| UNKNOWN.to_owned()));
            }
        }
        "remote" if matches!(first, Some("update" | "show" | "prune")) => {
            hosts.insert(UNKNOWN.to_owned());
        }
        _ => {}
    }
}

/// Returns the host of `SCHEME://USER@HOST:PORT/…`.
fn address(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return UNKNOWN.to_owned() };
    if scheme.ends_with("file") {
        return "localhost".to_owned();
    }
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or(rest);
    named(authority.rsplit('@').next().unwrap_or(authority))
}

/// Returns the host of `USER@HOST:PATH`.
fn remote(word: &Word) -> String {
    if word.text.contains("://") {
        return address(&word.text);
    }
    let host = word.text.rsplit('@').next().unwrap_or(&word.text);
    named(if host.starts_with('[') { host } else { host.split(':').next().unwrap_or(host) })
}

/// Takes the port off, and refuses what is no plain name.
fn named(host: &str) -> String {
    let bare = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address.to_owned(),
        None => host.split(':').next().unwrap_or(host).to_ascii_lowercase(),
    };
    let is_plain = !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte));
    if is_plain { bare } else { UNKNOWN.to_owned() }
}

/// `HOST:PATH`, as against a path with a colon in it.
fn is_remote_path(text: &str) -> bool {
    let before = text.split('/').next().unwrap_or(text);
    !text.starts_with('-') && before.split_once(':').is_some_and(|(host, _)| !host.is_empty())
}

fn first_operand<'a>(arguments: &'a [Word], valued: &str) -> Option<&'a Word> {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if !word.text.starts_with('-') || word.text.len() == 1 {
            return Some(word);
        }
        if word.text.ends_with(|c| valued.contains(c)) && word.text.len() == 2 {
            words.next();
        }
    }
    None
}

fn without_loopback(mut hosts: BTreeSet<String>) -> BTreeSet<String> {
    hosts.retain(|host| {
        let is_v4 = host
            .strip_prefix("127.")
            .is_some_and(|rest| rest.split('.').count() == 3 && rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'));
        !(is_v4 || host == "localhost" || host == "::1" || host == "0.0.0.0")
    });
    hosts
}
