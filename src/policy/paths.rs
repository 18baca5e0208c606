//! The paths of a call, as rules name them.

use super::Action;
use podbay_wire::BytesPath;
use podbay_wire::FileScope;
use podbay_wire::PathAccess;

/// Returns the folders that a call processes or searches entirely; `None` if there are none; an
/// empty list if it may be any.
pub(super) fn whole_folders(action: &Action) -> Option<Vec<&BytesPath>> {
    match scope(action) {
        FileScope::Named | FileScope::Listed(_) => None,
        FileScope::Whole(folders) => Some(folders),
        FileScope::Unnamed => Some(Vec::new()),
    }
}

/// Returns the folder whose direct entries a call lists or adds to, without those below them.
pub(super) fn listed_folder(action: &Action) -> Option<&BytesPath> {
    match scope(action) {
        FileScope::Listed(folder) => Some(folder),
        FileScope::Named | FileScope::Whole(_) | FileScope::Unnamed => None,
    }
}

fn scope(action: &Action) -> FileScope<'_> {
    match action {
        Action::Box(call) => call.facts().scope,
        Action::Host(_) => FileScope::Named,
    }
}

/// Returns a path relative to the project, as rules name it. `None` if it contains `..` and would
/// be a guess.
pub(super) fn normalized(path: &BytesPath, in_doubt: bool) -> Option<String> {
    let text = path.to_text();
    let mut parts: Vec<&str> = Vec::new();
    for part in text
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
    {
        if part != ".." {
            parts.push(part);
        } else if in_doubt {
            parts.pop();
        } else {
            return None;
        }
    }
    if text.starts_with('/') && parts.first() == Some(&"workspace") {
        parts.remove(0);
    }
    Some(parts.join("/"))
}

/// Returns a working directory relative to the project; one outside of it as a full path. `None` if
/// it contains `..`.
pub(super) fn folder(path: &BytesPath) -> Option<String> {
    let inside = normalized(path, false)?;
    let text = path.to_text();
    let is_inside = !text.starts_with('/')
        || text
            .split('/')
            .find(|part| !part.is_empty() && *part != ".")
            == Some("workspace");
    Some(if is_inside {
        inside
    } else {
        format!("/{inside}")
    })
}

/// Returns every path that a call names.
pub(super) fn paths(action: &Action) -> Vec<&BytesPath> {
    let Action::Box(call) = action else {
        return Vec::new();
    };
    let all = call.facts().paths.into_iter();
    all.filter(|named| named.access != PathAccess::WorkingDirectory)
        .map(|named| named.path)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::Mode;
    use super::super::Options;
    use super::super::Policy;
    use super::super::Rule;
    use super::super::Verdict;
    use super::*;
    use podbay_wire::Call;
    use podbay_wire::DeleteFile;
    use podbay_wire::Git;
    use podbay_wire::GitQuery;
    use podbay_wire::Glob;
    use podbay_wire::Grep;
    use podbay_wire::GrepOutput;
    use podbay_wire::ReadFile;

    #[test]
    fn a_folder_is_denied_with_a_denied_path_in_it() {
        let delete = |path: &str, recursive| {
            Action::Box(Call::DeleteFile(DeleteFile {
                path: path.into(),
                recursive,
                protected: false,
                known: None,
            }))
        };
        let rule = Rule::parse("delete_file(data/secret/**)").expect("a good rule");
        for path in ["data/secret", "data", "/workspace/data/", "x/../data", "."] {
            assert!(rule.may_match(&delete(path, true), None, false), "{path}");
        }
        assert!(rule.may_match(&delete("data/secret/a", false), None, false));
        for (path, recursive) in [
            ("data", false),
            ("data/secre", true),
            ("data/other", true),
            ("dat", true),
        ] {
            assert!(
                !rule.may_match(&delete(path, recursive), None, false),
                "{path}"
            );
        }
        assert!(
            !rule.matches(&delete("data", true), None),
            "one that allows speaks of no more than it says"
        );
    }

    #[test]
    fn commits_of_everything_or_a_folder_may_include_denied_paths() {
        let commit = |files: &[&str]| {
            let query = GitQuery::Commit {
                message: "x".to_owned(),
                files: files.iter().map(|&file| file.into()).collect(),
            };
            let (timeout_ms, grace_ms, stream_bytes, tail_bytes) = (1, 1, 1, 1);
            Action::Box(Call::Git(Git {
                query,
                path: "".into(),
                protected: false,
                timeout_ms,
                grace_ms,
                stream_bytes,
                tail_bytes,
            }))
        };
        let rule = Rule::parse("git_commit(secret/**)").expect("a good rule");
        for files in [&[][..], &["secret"], &["."], &["a", "secret/k"]] {
            assert!(rule.may_match(&commit(files), None, false), "{files:?}");
        }
        assert!(!rule.may_match(&commit(&["src", "a"]), None, false));
    }

    #[test]
    fn denied_files_deny_searches_of_their_folder_and_cursors() {
        let rule = |text: &str| Rule::parse(text).expect("a good rule");
        let glob = |path: &str| {
            Action::Box(Call::Glob(Glob {
                pattern: "*".into(),
                path: path.into(),
                exclude: None,
                include_ignored: false,
                max_results: 9,
            }))
        };
        for pattern in [
            "glob(secret/**)",
            "glob(/workspace/secret/**)",
            "glob(./secret/**)",
        ] {
            assert!(
                rule(pattern).may_match(&glob("."), None, false)
                    && rule(pattern).may_match(&glob("secret/a"), None, false),
                "{pattern}"
            );
            assert!(
                !rule(pattern).may_match(&glob("other"), None, false),
                "{pattern}"
            );
        }
        for (pattern, path, is_in) in [
            ("glob(**/*.pem)", "src", true),
            ("glob(src/**/*.pem)", "src/a/b", true),
            ("glob(src/**/*.pem)", "other", false),
            ("glob(*/x)", "a", true),
            ("glob(*/x)", "a/b", false),
            ("glob(a/b)", "a/b/c", false),
            ("glob(/[.]pem$/)", "src", true),
        ] {
            assert_eq!(
                rule(pattern).may_match(&glob(path), None, false),
                is_in,
                "{pattern} {path}"
            );
        }
        let cursor = ReadFile {
            path: None,
            offset: 1,
            limit: 9,
            max_bytes: 99,
            cursor: Some("x".into()),
            max_files: 1,
            images: false,
            protected: false,
        };
        assert!(rule("read_file(secret/**)").may_match(
            &Action::Box(Call::ReadFile(cursor)),
            None,
            false
        ));
        for pattern in [
            "write_file(/etc/**)",
            "write_file(../x)",
            "write_file(/etc/passwd)",
            "write_file(~/x)",
        ] {
            let error = Rule::parse(pattern).expect_err("it can match nothing");
            assert!(
                error.to_string().contains("relative to the project"),
                "{error}"
            );
        }
    }

    /// A search is judged by the folder it begins in; one that means a single folder is told how to
    /// name it.
    #[test]
    fn a_denied_search_names_the_folder_to_begin_in() {
        let reason = |rule: &str, path: &str, pattern: &str| {
            let action = Action::Box(Call::Glob(Glob {
                pattern: pattern.into(),
                path: path.into(),
                exclude: None,
                include_ignored: false,
                max_results: 9,
            }));
            let options = Options {
                deny: vec![rule.to_owned()],
                ..Options::default()
            };
            match Policy::new(Mode::Auto, &options)
                .expect("a good rule")
                .judge(action)
            {
                Verdict::Deny { reason, .. } => reason,
                other => panic!("{rule} {path} {pattern}: {other:?}"),
            }
        };
        for (path, pattern, way) in [
            (
                ".",
                "open/*.txt",
                r#"name the folder in `path`: {"path":"open","pattern":"/*.txt"}"#,
            ),
            (
                ".",
                "./a/b/**/x",
                r#"name the folder in `path`: {"path":"a/b","pattern":"/**/x"}"#,
            ),
            (
                ".",
                "//open/*.txt",
                r#"name the folder in `path`: {"path":"open","pattern":"/*.txt"}"#,
            ),
            (
                ".",
                ".github/*",
                r#"name the folder in `path`: {"path":".github","pattern":"/*"}"#,
            ),
        ] {
            let reason = reason("glob(forbidden/**)", path, pattern);
            assert!(
                reason.starts_with("the rule `glob(forbidden/**)` denies it (it begins in `.`,")
                    && reason.contains(way),
                "{reason}"
            );
        }
        assert!(
            reason("glob(a/secret/**)", "a", "open/*")
                .contains(r#"{"path":"a/open","pattern":"/*"}"#)
        );
        let grep = Grep {
            pattern: "x".into(),
            path: ".".into(),
            glob: Some("open/*".into()),
            include_ignored: false,
            context: 0,
            case_insensitive: false,
            output: GrepOutput::Content,
            max_results: 9,
            timeout_ms: 1,
            protected: false,
        };
        let options = Options {
            deny: vec!["grep(secret/**)".to_owned()],
            ..Options::default()
        };
        let verdict = Policy::new(Mode::Auto, &options)
            .expect("a good rule")
            .judge(Action::Box(Call::Grep(grep)));
        let way = r#"name the folder in `path`: {"path":"open","glob":"/*"}"#;
        assert!(
            matches!(&verdict, Verdict::Deny { reason, .. } if reason.contains(way)),
            "{verdict:?}"
        );
        // If that would be denied as well, or there is no such folder, no alternative is suggested.
        for (rule, pattern) in [
            ("glob(forbidden/**)", "forbidden/*"),
            ("glob(forbidden/**)", "../open/*"),
            ("glob(forbidden/**)", "*.txt"),
            ("glob(/x.*/)", "open/*"),
            ("glob", "open/*"),
        ] {
            assert!(
                reason(rule, ".", pattern).ends_with("denies it"),
                "{rule} {pattern}"
            );
        }
    }
}
