//! The settings of a repository that a session gets: none that names a program, a path elsewhere,
//! or credentials.

use std::collections::BTreeMap;

use super::config::ConfigEntry;
use podbay_wire::BytesPath;
use podbay_wire::keep::GitRefusal;
use podbay_wire::keep::UserGitSettings;

/// Settings of `core` on how files are read and written.
const CORE: [&str; 15] = [
    "autocrlf",
    "bigfilethreshold",
    "checkstat",
    "eol",
    "filemode",
    "ignorecase",
    "logallrefupdates",
    "precomposeunicode",
    "safecrlf",
    "sparsecheckout",
    "sparsecheckoutcone",
    "symlinks",
    "trustctime",
    "whitespace",
    "abbrev",
];

/// Line-ending settings, and their valid values.
const LINE_ENDS: [(&str, &[&str]); 3] = [
    ("autocrlf", &["true", "false", "input"]),
    ("eol", &["lf", "crlf", "native"]),
    ("safecrlf", &["true", "false", "warn"]),
];

/// Extensions that need none of the settings that are left out.
const EXTENSIONS: [&str; 6] = [
    "noop",
    "noop-v1",
    "objectformat",
    "preciousobjects",
    "refstorage",
    "worktreeconfig",
];

/// A session's config, and what was read on the way.
#[derive(Debug, Default)]
pub(crate) struct SessionConfig {
    /// For the session's folder.
    pub(crate) kept: Vec<ConfigEntry>,
    /// The working tree, as the repository's config says.
    pub(crate) work_tree: Option<Vec<u8>>,
    /// The filters with a configured program.
    pub(crate) filters: Vec<Vec<u8>>,
    /// Whether it includes files, which are not read: they may hold anything.
    pub(crate) has_include: bool,
    /// Paths of `core.excludesFile` and `core.attributesFile`.
    pub(crate) excludes: Option<Vec<u8>>,
    pub(crate) attributes: Option<Vec<u8>>,
    /// Left-out settings that change what git does.
    pub(crate) notes: Vec<String>,
}

/// Returns the user's name and address from a config file of theirs. An unreadable file counts as
/// empty.
pub fn identity_in(text: &[u8]) -> (Option<String>, Option<String>) {
    let entries = super::config::parse(text).unwrap_or_default();
    let last = |key: &str| {
        let value = entries
            .iter()
            .rfind(|entry| entry.is("user", key))?
            .value
            .clone()?;
        String::from_utf8(value)
            .ok()
            .filter(|value| !value.trim().is_empty() && !value.chars().any(char::is_control))
    };
    (last("name"), last("email"))
}

/// Returns the line-ending settings of a user's config file. Invalid values are left out.
pub fn line_ends_in(text: &[u8]) -> BTreeMap<String, String> {
    let entries = super::config::parse(text).unwrap_or_default();
    let said = |(key, known): (&str, &[&str])| {
        let entry = entries.iter().rfind(|entry| entry.is("core", key))?;
        let word = match &entry.value {
            None => "true".to_owned(),
            Some(value) => match String::from_utf8_lossy(value).to_ascii_lowercase().as_str() {
                "yes" | "on" | "1" => "true".to_owned(),
                "no" | "off" | "0" | "" => "false".to_owned(),
                word => word.to_owned(),
            },
        };
        known
            .contains(&word.as_str())
            .then(|| (key.to_owned(), word))
    };
    LINE_ENDS.into_iter().filter_map(said).collect()
}

/// Filter settings of a user's config file.
#[derive(Debug, Default)]
pub struct FilterSettings {
    /// Filters with a configured program.
    pub filters: Vec<BytesPath>,
    /// Path of the attributes file.
    pub attributes: Option<Vec<u8>>,
    /// Included files, conditional ones too.
    pub includes: Vec<Vec<u8>>,
}

impl FilterSettings {
    pub fn of(text: &[u8]) -> Self {
        // A file with a syntax error is no config to git either, which then refuses to run.
        let entries = super::config::parse(text).unwrap_or_default();
        let mut filtering = Self::default();
        for entry in entries {
            match entry.section.as_str() {
                "filter" if is_program(&entry) => filtering
                    .filters
                    .extend(entry.subsection.map(BytesPath::from_bytes)),
                "include" | "includeif" if entry.key == "path" => {
                    filtering.includes.extend(entry.value);
                }
                "core" if entry.is("core", "attributesfile") => filtering.attributes = entry.value,
                _ => {}
            }
        }
        filtering
    }
}

/// Returns the filters that attributes name; a later line may unset one, which is not examined.
pub fn filters_named(attributes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = attributes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.trim_ascii_start().starts_with(b"#"));
    lines
        .flat_map(|line| line.split(u8::is_ascii_whitespace))
        .filter_map(|word| word.strip_prefix(b"filter="))
        .filter(|name| !name.is_empty())
}

/// Returns the path of `core.excludesFile`.
pub fn excludes_in(text: &[u8]) -> Option<Vec<u8>> {
    let entries = super::config::parse(text).unwrap_or_default();
    entries
        .into_iter()
        .rfind(|entry| entry.is("core", "excludesfile"))?
        .value
}

/// Whether this setting of a filter runs a program.
fn is_program(entry: &ConfigEntry) -> bool {
    matches!(entry.key.as_str(), "clean" | "smudge" | "process")
        && entry.value.as_ref().is_some_and(|value| !value.is_empty())
}

/// Selects the settings for a session, or returns why it gets none. Where the repository has no
/// value, the user's own settings apply.
pub(crate) fn pick(
    entries: &[ConfigEntry],
    person: &UserGitSettings,
) -> Result<SessionConfig, GitRefusal> {
    let mut settings = SessionConfig::default();
    let mut kept = Vec::new();
    let mut version = b"0".to_vec();
    let mut unknown: Option<String> = None;
    for entry in entries {
        match (entry.section.as_str(), entry.subsection.as_deref()) {
            ("core", None) if entry.key == "repositoryformatversion" => {
                version = entry.value.clone().unwrap_or_default();
            }
            ("core", None) if entry.key == "worktree" => {
                settings.work_tree.clone_from(&entry.value);
            }
            ("core", None) if entry.key == "excludesfile" => {
                settings.excludes.clone_from(&entry.value);
            }
            ("core", None) if entry.key == "attributesfile" => {
                settings.attributes.clone_from(&entry.value);
            }
            ("core", None) if CORE.contains(&entry.key.as_str()) => kept.push(entry.clone()),
            ("extensions", None) => match check_extension(entry) {
                Err(GitRefusal::Extension { name })
                    if !EXTENSIONS.contains(&entry.key.as_str()) =>
                {
                    unknown = unknown.or(Some(name));
                }
                checked => checked?,
            },
            ("user", None) if matches!(entry.key.as_str(), "name" | "email") => {
                kept.push(entry.clone());
            }
            ("branch", Some(_)) if keeps_branch(entry) => kept.push(entry.clone()),
            ("remote", Some(name)) => {
                if matches!(entry.key.as_str(), "promisor" | "partialclonefilter")
                    && (entry.key != "promisor" || entry.is_true())
                {
                    return Err(GitRefusal::Partial);
                }
                // Refspecs, which `git status` needs to compare with remote branches. No address.
                if entry.key == "fetch"
                    && is_plain_name(name)
                    && entry.value.as_deref().is_some_and(is_refspec)
                {
                    kept.push(entry.clone());
                }
            }
            ("submodule", Some(name)) => match entry.key.as_str() {
                "url" => kept.push(ConfigEntry::new("submodule", Some(name), "active", b"true")),
                "active" => kept.push(ConfigEntry::new(
                    "submodule",
                    Some(name),
                    "active",
                    if entry.is_true() { b"true" } else { b"false" },
                )),
                _ => {}
            },
            ("filter", Some(b"lfs")) | ("lfs", _) => return Err(GitRefusal::LargeFiles),
            ("filter", Some(name)) if is_program(entry) => settings.filters.push(name.to_vec()),
            ("include" | "includeif", _) => settings.has_include = true,
            _ => {}
        }
    }
    if !matches!(version.as_slice(), b"0" | b"1") {
        return Err(GitRefusal::Extension {
            name: format!(
                "core.repositoryFormatVersion = {}",
                BytesPath::from_bytes(version)
            ),
        });
    }
    // Without version 1 git ignores unknown extensions.
    if let Some(name) = unknown.filter(|_| version == b"1") {
        return Err(GitRefusal::Extension { name });
    }
    if settings.has_include {
        settings
            .notes
            .push("files that its config includes are not used in the session".to_owned());
    }
    let identity = person
        .identity
        .iter()
        .flat_map(|one| [("user", "name", &one.name), ("user", "email", &one.email)]);
    let line_ends = person
        .line_ends
        .iter()
        .map(|(key, value)| ("core", key.as_str(), value));
    for (section, key, value) in identity.chain(line_ends) {
        if !kept.iter().any(|entry| entry.is(section, key)) {
            kept.push(ConfigEntry::new(section, None, key, value.as_bytes()));
        }
    }
    // None of these needs a value with which it could break out of its line.
    kept.retain(|entry| {
        !entry
            .value
            .iter()
            .flatten()
            .chain(entry.subsection.iter().flatten())
            .any(|&byte| byte < b' ' || byte == 0x7f)
    });
    // Version 1 with no extension means the same as 0 and is read by every git.
    settings.kept.push(ConfigEntry::new(
        "core",
        None,
        "repositoryformatversion",
        b"0",
    ));
    settings
        .kept
        .push(ConfigEntry::new("core", None, "bare", b"false"));
    settings.kept.extend(kept);
    for (section, key, value) in [
        ("core", "logallrefupdates", "true"),
        // Names are shown to a model as its tools take them.
        ("core", "quotepath", "false"),
        ("core", "hookspath", "/dev/null"),
        ("core", "fsmonitor", "false"),
        ("core", "untrackedcache", "false"),
        ("core", "splitindex", "false"),
        ("index", "sparse", "false"),
        // Borrowed objects cannot be repacked, and a session should not wait for it.
        ("gc", "auto", "0"),
        ("maintenance", "auto", "false"),
        ("commit", "gpgsign", "false"),
        ("tag", "gpgsign", "false"),
    ] {
        settings
            .kept
            .push(ConfigEntry::new(section, None, key, value.as_bytes()));
    }
    Ok(settings)
}

fn check_extension(entry: &ConfigEntry) -> Result<(), GitRefusal> {
    let value = entry.value.as_deref().unwrap_or_default();
    match entry.key.as_str() {
        "partialclone" => Err(GitRefusal::Partial),
        "objectformat" if value.eq_ignore_ascii_case(b"sha256") => Err(GitRefusal::Sha256),
        "objectformat" if !value.eq_ignore_ascii_case(b"sha1") => Err(GitRefusal::Extension {
            name: "objectFormat".to_owned(),
        }),
        "refstorage" if !value.eq_ignore_ascii_case(b"files") => Err(GitRefusal::RefStorage {
            storage: BytesPath::from_bytes(value).to_string(),
        }),
        key if EXTENSIONS.contains(&key) => Ok(()),
        key => Err(GitRefusal::Extension {
            name: key.to_owned(),
        }),
    }
}

/// A branch's remote may be an address, with a password in it.
fn keeps_branch(entry: &ConfigEntry) -> bool {
    let value = entry.value.as_deref().unwrap_or_default();
    match entry.key.as_str() {
        "remote" | "pushremote" => is_plain_name(value),
        "merge" => value.starts_with(b"refs/"),
        "rebase" => matches!(value, b"true" | b"false" | b"merges"),
        _ => false,
    }
}

fn is_plain_name(name: &[u8]) -> bool {
    !name.is_empty()
        && !name.contains(&b':')
        && !name.contains(&b'/')
        && !name.contains(&b'\\')
        && !name.contains(&b'@')
}

fn is_refspec(value: &[u8]) -> bool {
    let value = value.strip_prefix(b"+").unwrap_or(value);
    match value.iter().position(|byte| *byte == b':') {
        Some(at) => {
            value.starts_with(b"refs/")
                && value[at + 1..].starts_with(b"refs/")
                && !value[at + 1..].contains(&b':')
        }
        None => false,
    }
}

#[cfg(test)]
mod tests;
