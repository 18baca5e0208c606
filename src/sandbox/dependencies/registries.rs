//! Which registries a project's files name. They come from anybody, so that a name here opens
//! nothing by itself.

use std::collections::BTreeSet;

use podbay_egress::host_name::HostName;

use super::NamedFile;

/// Most registries that are looked at; a lock file names few, many times.
const MOST: usize = 64;

/// Longest line that is looked at: some lock files are one line.
const LONGEST_LINE: usize = 1 << 20;

/// A registry that a file of the project names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedRegistry {
    pub host: HostName,
    pub port: u16,
    /// The file, by its path in the project.
    pub file: String,
}

impl NamedRegistry {
    /// Returns it as a rule is written.
    pub fn place(&self) -> String {
        match self.port {
            80 | 443 => self.host.to_string(),
            port => format!("{}:{port}", self.host),
        }
    }
}

/// Returns the registries that a file names, each once.
pub fn named_registries(file: &NamedFile, content: &[u8]) -> Vec<NamedRegistry> {
    let text = String::from_utf8_lossy(content);
    let mut found = BTreeSet::new();
    let mut is_within = file.section.is_none();
    for line in text.lines() {
        if let Some([begin, _]) = &file.section {
            is_within |= line.contains(begin.as_str());
        }
        let is_marked =
            file.marks.is_empty() || file.marks.iter().any(|mark| line.contains(mark.as_str()));
        let is_comment = line.trim_start().starts_with('#');
        if is_within && is_marked && !is_comment && line.len() <= LONGEST_LINE {
            for url in urls(line) {
                if file
                    .ignored
                    .iter()
                    .any(|ignored| url.contains(ignored.as_str()))
                {
                    continue;
                }
                if let Some((host, port)) = host(url)
                    && found.len() < MOST
                {
                    found.insert(NamedRegistry {
                        host,
                        port,
                        file: file.name.clone(),
                    });
                }
            }
        }
        if let Some([_, end]) = &file.section
            && line.contains(end.as_str())
        {
            is_within = false;
        }
    }
    found.into_iter().collect()
}

/// Returns what stands in a line from each scheme of HTTP on.
fn urls(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("://").filter_map(move |(at, _)| {
        let scheme = ["https", "http"]
            .into_iter()
            .find(|scheme| line[..at].ends_with(scheme))?;
        Some(&line[at - scheme.len()..])
    })
}

/// Returns the host of a URL and its port. Addresses are none that a rule could allow.
fn host(url: &str) -> Option<(HostName, u16)> {
    let (scheme, rest) = url.split_once("://")?;
    let ends = |c: char| c.is_whitespace() || "/?#\"'<>(),;\\".contains(c);
    let authority = rest.split(ends).next().unwrap_or_default();
    let authority = authority.rsplit('@').next().unwrap_or_default();
    let usual = if scheme == "http" { 80 } else { 443 };
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, port.parse().ok().filter(|&port| port != 0)?),
        None => (authority, usual),
    };
    Some((HostName::parse(host).ok()?, port))
}

#[cfg(test)]
mod tests {
    use super::super::ecosystem::ecosystem;
    use super::*;

    #[track_caller]
    fn check(row: &str, file: &str, content: &str, expected: &[&str]) {
        let row = ecosystem(row).expect("a row");
        let found: BTreeSet<String> = row
            .files
            .iter()
            .filter(|named| named.name == file)
            .flat_map(|named| named_registries(named, content.as_bytes()))
            .map(|named| named.place())
            .collect();
        let expected: BTreeSet<String> = expected.iter().map(|&place| place.to_owned()).collect();
        assert_eq!(found, expected, "{file}: {content}");
    }

    #[test]
    fn lock_and_config_files_name_registries() {
        check(
            "pip",
            "requirements.txt",
            "# see https://docs.example/\n-i https://user:secret@Index.Example:8443/simple\nx @ http://files.example/x.whl\nflask>=2\n",
            &["index.example:8443", "files.example"],
        );
        check(
            "npm",
            "package-lock.json",
            r#"{"packages": {"a": {
                "resolved": "https://registry.npmjs.org/a/-/a.tgz",
                "homepage": "https://home.example"
            }, "b": {
                "resolved": "git+https://git.example/b.git#1"
            }}}"#,
            &["registry.npmjs.org", "git.example"],
        );
        check(
            "npm",
            ".npmrc",
            "registry=http://npm.example:4873/\n",
            &["npm.example:4873"],
        );
        check(
            "cargo",
            "Cargo.lock",
            "source = \"registry+https://github.com/rust-lang/crates.io-index\"\nsource = \"sparse+https://crates.example/index/\"\n",
            &["crates.example"],
        );
        check(
            "uv",
            "uv.lock",
            "source = { registry = \"https://pypi.org/simple\" }\n",
            &["pypi.org"],
        );
        check(
            "maven",
            "pom.xml",
            "<url>https://home.example</url>\n<repository>\n<url>https://maven.example/m2</url>\n</repository>\n<url>https://scm.example</url>\n",
            &["maven.example"],
        );
    }

    #[test]
    fn what_is_no_host_of_a_registry_is_passed_over() {
        check(
            "pip",
            "requirements.txt",
            "http://10.0.0.1/x\nhttp://[::1]/x\nfile:///etc\nhttps://\nhttp://a.example:0/\nhttp://b.example:x/\nssh://c.example/\n",
            &[],
        );
        let many: String = (0..200)
            .map(|n| format!("https://n{n}.example/\n"))
            .collect();
        let row = ecosystem("pip").expect("a row");
        assert_eq!(named_registries(&row.files[0], many.as_bytes()).len(), MOST);
        assert!(named_registries(&row.files[0], &[0xff, 0, 10, 0xfe]).is_empty());
    }

    #[test]
    fn the_host_is_the_one_that_a_client_would_ask() {
        check(
            "pip",
            "requirements.txt",
            "http://pypi.org@evil.example/\nhttp://other.example#pypi.org\n",
            &["evil.example", "other.example"],
        );
    }
}
