//! Git's config format: parser and writer. Included files are never read.

/// One setting, as a line of `git config --list`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigEntry {
    /// In lower case.
    pub(crate) section: String,
    /// As written: its case counts.
    pub(crate) subsection: Option<Vec<u8>>,
    /// In lower case.
    pub(crate) key: String,
    /// `None`: the key stands alone, which means true.
    pub(crate) value: Option<Vec<u8>>,
}

impl ConfigEntry {
    pub(crate) fn new(section: &str, subsection: Option<&[u8]>, key: &str, value: &[u8]) -> Self {
        Self {
            section: section.to_owned(),
            subsection: subsection.map(<[u8]>::to_vec),
            key: key.to_owned(),
            value: Some(value.to_vec()),
        }
    }

    /// Returns whether this is the setting `section.key`.
    pub(crate) fn is(&self, section: &str, key: &str) -> bool {
        self.section == section && self.subsection.is_none() && self.key == key
    }

    /// Returns the value as git reads a boolean.
    pub(crate) fn is_true(&self) -> bool {
        match &self.value {
            None => true,
            Some(value) => match value.to_ascii_lowercase().as_slice() {
                b"true" | b"yes" | b"on" => true,
                number => std::str::from_utf8(number)
                    .ok()
                    .and_then(|text| text.parse::<i64>().ok())
                    .is_some_and(|number| number != 0),
            },
        }
    }
}

/// Parses a config file; an error names its line.
pub(crate) fn parse(text: &[u8]) -> Result<Vec<ConfigEntry>, String> {
    let mut reader = ConfigReader {
        rest: text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text),
        line: 1,
    };
    let mut entries = Vec::new();
    let mut section: Option<(String, Option<Vec<u8>>)> = None;
    while let Some(byte) = reader.next() {
        match byte {
            b' ' | b'\t' | b'\n' => {}
            b'#' | b';' => reader.skip_line(),
            b'[' => {
                section = Some(
                    reader
                        .section()
                        .ok_or_else(|| reader.wrong("a section's name"))?,
                );
            }
            first if first.is_ascii_alphabetic() => {
                let Some((section, subsection)) = &section else {
                    return Err(reader.wrong("a setting outside of any section"));
                };
                let (key, value) = reader
                    .setting(first)
                    .ok_or_else(|| reader.wrong("a setting"))?;
                entries.push(ConfigEntry {
                    section: section.clone(),
                    subsection: subsection.clone(),
                    key,
                    value,
                });
            }
            _ => return Err(reader.wrong("a character that begins nothing")),
        }
    }
    Ok(entries)
}

/// Writes settings so that git and [`parse`] read the same ones.
pub(crate) fn write(entries: &[ConfigEntry]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut last = None;
    for entry in entries {
        let section = (&entry.section, &entry.subsection);
        if last != Some(section) {
            out.push(b'[');
            out.extend_from_slice(entry.section.as_bytes());
            if let Some(subsection) = &entry.subsection {
                out.extend_from_slice(b" \"");
                for &byte in subsection {
                    if matches!(byte, b'"' | b'\\') {
                        out.push(b'\\');
                    }
                    out.push(byte);
                }
                out.push(b'"');
            }
            out.extend_from_slice(b"]\n");
            last = Some(section);
        }
        out.push(b'\t');
        out.extend_from_slice(entry.key.as_bytes());
        if let Some(value) = &entry.value {
            out.extend_from_slice(b" = \"");
            for &byte in value {
                match byte {
                    b'\n' => out.extend_from_slice(b"\\n"),
                    b'\t' => out.extend_from_slice(b"\\t"),
                    b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
                    byte => out.push(byte),
                }
            }
            out.push(b'"');
        }
        out.push(b'\n');
    }
    out
}

struct ConfigReader<'text> {
    rest: &'text [u8],
    line: usize,
}

impl ConfigReader<'_> {
    fn next(&mut self) -> Option<u8> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        if byte == b'\r' && self.rest.first() == Some(&b'\n') {
            return self.next();
        }
        if byte == b'\n' {
            self.line += 1;
        }
        Some(byte)
    }

    fn wrong(&self, what: &str) -> String {
        format!("line {}: {what}", self.line)
    }

    fn skip_line(&mut self) {
        while self.next().is_some_and(|byte| byte != b'\n') {}
    }

    /// Parses the rest of a section header, with its closing bracket.
    fn section(&mut self) -> Option<(String, Option<Vec<u8>>)> {
        let mut name = String::new();
        loop {
            match self.next()? {
                b']' if !name.is_empty() => {
                    // The old form: the part behind the dot is a subsection, in lower case.
                    let parts = name
                        .split_once('.')
                        .map(|(section, sub)| (section.to_owned(), Some(sub.as_bytes().to_vec())));
                    return Some(parts.unwrap_or((name, None)));
                }
                b' ' | b'\t' if !name.is_empty() => break,
                byte if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.') => {
                    name.push(char::from(byte.to_ascii_lowercase()));
                }
                _ => return None,
            }
        }
        loop {
            match self.next()? {
                b' ' | b'\t' => {}
                b'"' => break,
                _ => return None,
            }
        }
        let mut subsection = Vec::new();
        loop {
            match self.next()? {
                b'"' => break,
                b'\n' => return None,
                b'\\' => match self.next()? {
                    b'\n' => return None,
                    byte => subsection.push(byte),
                },
                byte => subsection.push(byte),
            }
        }
        (self.next()? == b']').then_some((name, Some(subsection)))
    }

    /// Parses the rest of a key and its value, to the end of the line.
    fn setting(&mut self, first: u8) -> Option<(String, Option<Vec<u8>>)> {
        let mut key = String::from(char::from(first.to_ascii_lowercase()));
        loop {
            match self.next() {
                Some(byte) if byte.is_ascii_alphanumeric() || byte == b'-' => {
                    key.push(char::from(byte.to_ascii_lowercase()));
                }
                Some(b'=') => return Some((key, Some(self.value()?))),
                Some(b' ' | b'\t') => break,
                Some(b'\n') | None => return Some((key, None)),
                Some(_) => return None,
            }
        }
        loop {
            match self.next() {
                Some(b' ' | b'\t') => {}
                Some(b'=') => return Some((key, Some(self.value()?))),
                Some(b'#' | b';') => {
                    self.skip_line();
                    return Some((key, None));
                }
                Some(b'\n') | None => return Some((key, None)),
                Some(_) => return None,
            }
        }
    }

    fn value(&mut self) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        // Blanks at the end are stripped, those in quotes are not.
        let mut kept = 0;
        let mut is_quoted = false;
        loop {
            match self.next() {
                None | Some(b'\n') if is_quoted => return None,
                None | Some(b'\n') => break,
                Some(b'#' | b';') if !is_quoted => {
                    self.skip_line();
                    break;
                }
                Some(byte @ (b' ' | b'\t')) if !is_quoted => {
                    if !value.is_empty() {
                        value.push(byte);
                    }
                }
                Some(b'"') => {
                    is_quoted = !is_quoted;
                    kept = value.len();
                }
                Some(b'\\') => {
                    match self.next()? {
                        b'\n' => {}
                        b'n' => value.push(b'\n'),
                        b't' => value.push(b'\t'),
                        b'b' => value.push(8),
                        byte @ (b'"' | b'\\') => value.push(byte),
                        _ => return None,
                    }
                    kept = value.len();
                }
                Some(byte) => {
                    value.push(byte);
                    kept = value.len();
                }
            }
        }
        value.truncate(kept);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[(&str, Option<&str>, &str, Option<&str>)]) {
        let expected: Vec<ConfigEntry> = expected
            .iter()
            .map(|(section, subsection, key, value)| ConfigEntry {
                section: (*section).to_owned(),
                subsection: subsection.map(|text| text.as_bytes().to_vec()),
                key: (*key).to_owned(),
                value: value.map(|text| text.as_bytes().to_vec()),
            })
            .collect();
        assert_eq!(parse(text.as_bytes()), Ok(expected), "{text}");
    }

    #[test]
    fn config_is_read_as_git_reads_it() {
        check("", &[]);
        check(
            "\u{feff}# a\n; b\n[core]\n\tBare = false\r\n",
            &[("core", None, "bare", Some("false"))],
        );
        check("[core] bare\n", &[("core", None, "bare", None)]);
        check(
            "[core]bare ; why\n[a.B]c=d",
            &[
                ("core", None, "bare", None),
                ("a", Some("b"), "c", Some("d")),
            ],
        );
        check(
            "[branch \"a \\\"b\\\\\"]\nx = 1 2  # no\n",
            &[("branch", Some("a \"b\\"), "x", Some("1 2"))],
        );
        check("[a]\nb = \" x \" y \n", &[("a", None, "b", Some(" x  y"))]);
        check(
            "[a]\nb = x \\\n  y # z\n",
            &[("a", None, "b", Some("x   y"))],
        );
        check(
            "[a]\nb = \"#;\" \\t\\n\\\\\n",
            &[("a", None, "b", Some("#; \t\n\\"))],
        );
        check(
            "[a]\nb =\nc=",
            &[("a", None, "b", Some("")), ("a", None, "c", Some(""))],
        );
        check(
            "[include]\npath = /etc/passwd\n",
            &[("include", None, "path", Some("/etc/passwd"))],
        );
    }

    #[test]
    fn syntax_errors_of_git_are_errors_here() {
        for text in [
            "a = b",
            "[a",
            "[a \"b]\n",
            "[]",
            "[a]\n=b",
            "[a]\nb c",
            "[a]\nb = \"x\n\"",
            "[a]\nb = \\x",
            "[a]\n-b = c",
            "[a \"b\"c]",
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
        assert_eq!(
            parse(b"[a]\n\n*"),
            Err("line 3: a character that begins nothing".to_owned())
        );
    }

    proptest! {
        #[test]
        fn no_input_makes_the_reader_panic(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&text);
        }

        #[test]
        fn written_config_is_read_back(
            subsection in proptest::option::of("[^\r\n\0]{0,9}"),
            value in "[^\r\0\u{8}]{0,20}",
        ) {
            let entry = ConfigEntry::new("a", subsection.as_deref().map(str::as_bytes), "b-c", value.as_bytes());
            prop_assert_eq!(parse(&write(std::slice::from_ref(&entry))), Ok(vec![entry]));
        }
    }
}
