use globset::GlobBuilder;
use globset::GlobMatcher;
use thiserror::Error;

use crate::policy::Action;
use crate::wire::BytesPath;
use crate::wire::Call;

/// A person's standing answer: `TOOL` or `TOOL(PATTERN)`.
///
/// For file tools the pattern is a glob over the path (`write_file(src/**)`); for `bash` it is the whole command, to the letter: a pattern
/// over a shell line would also match what is hidden behind a `;`.
#[derive(Clone, Debug)]
pub struct Rule {
    text: String,
    tool: String,
    pattern: Option<Pattern>,
}

#[derive(Clone, Debug)]
enum Pattern {
    Path(GlobMatcher),
    Command(String),
}

#[derive(Debug, Error)]
#[error("the rule `{rule}` cannot be used: {problem}")]
pub struct RuleError {
    pub rule: String,
    pub problem: String,
}

impl Rule {
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let bad = |problem: String| RuleError { rule: text.to_owned(), problem };
        let text = text.trim();
        let (tool, pattern) = match text.split_once('(') {
            Some((tool, rest)) => {
                let pattern = rest.strip_suffix(')').ok_or_else(|| bad("it ends without `)`".to_owned()))?;
                (tool.trim(), Some(pattern))
            }
            None => (text, None),
        };
        if tool.is_empty() || !tool.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_') {
            return Err(bad("it must start with a tool's name, such as `bash` or `write_file(src/**)`".to_owned()));
        }
        let pattern = match pattern {
            None => None,
            Some("") => return Err(bad("the pattern between the parentheses is empty".to_owned())),
            Some(pattern) if tool == "bash" => {
                if pattern.contains('*') {
                    return Err(bad("for bash name the whole command; a `*` would also match what follows a `;`".to_owned()));
                }
                Some(Pattern::Command(pattern.to_owned()))
            }
            Some(pattern) => {
                let glob = GlobBuilder::new(pattern).literal_separator(true).build().map_err(|error| bad(error.kind().to_string()))?;
                Some(Pattern::Path(glob.compile_matcher()))
            }
        };
        Ok(Self { text: text.to_owned(), tool: tool.to_owned(), pattern })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether it speaks of this action, for a rule that allows: in doubt it does not.
    pub fn matches(&self, action: &Action) -> bool {
        self.speaks_of(action, false)
    }

    /// Returns whether it may speak of this action, for a rule that denies: a path with `..` is also taken for what it leads to by its
    /// letters.
    pub fn may_match(&self, action: &Action) -> bool {
        self.speaks_of(action, true)
    }

    fn speaks_of(&self, action: &Action, in_doubt: bool) -> bool {
        if self.tool != tool(action) {
            return false;
        }
        match &self.pattern {
            None => true,
            Some(Pattern::Command(command)) => matches!(action, Action::Box(Call::Bash(bash)) if bash.command.trim() == command.trim()),
            Some(Pattern::Path(glob)) => path(action).is_some_and(|path| matches_path(glob, path, in_doubt)),
        }
    }
}

/// A path with `..` in it may lead anywhere, so no rule that allows speaks of it.
fn matches_path(glob: &GlobMatcher, path: &BytesPath, in_doubt: bool) -> bool {
    let text = path.to_text();
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part != ".." {
            parts.push(part);
        } else if in_doubt {
            parts.pop();
        } else {
            return false;
        }
    }
    if text.starts_with('/') && parts.first() == Some(&"workspace") {
        parts.remove(0);
    }
    glob.is_match(parts.join("/"))
}

fn tool(action: &Action) -> &'static str {
    match action {
        Action::Box(Call::ReadFile(_)) | Action::Host(super::HostCall::ReadArtifact { .. }) => "read_file",
        Action::Box(Call::WriteFile(_)) => "write_file",
        Action::Box(Call::EditFile(_)) => "edit_file",
        Action::Box(Call::ListDirectory(_)) => "list_directory",
        Action::Box(Call::Glob(_)) => "glob",
        Action::Box(Call::Grep(_)) => "grep",
        Action::Box(Call::Bash(_) | Call::Exec(_)) => "bash",
    }
}

fn path(action: &Action) -> Option<&BytesPath> {
    match action {
        Action::Box(Call::ReadFile(read)) => read.path.as_ref(),
        Action::Box(Call::WriteFile(write)) => Some(&write.path),
        Action::Box(Call::EditFile(edit)) => Some(&edit.path),
        Action::Box(Call::ListDirectory(list)) => Some(&list.path),
        Action::Box(Call::Glob(glob)) => Some(&glob.path),
        Action::Box(Call::Grep(grep)) => Some(&grep.path),
        Action::Box(Call::Bash(_) | Call::Exec(_)) | Action::Host(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Bash;
    use crate::wire::WriteFile;

    fn write(path: &str) -> Action {
        Action::Box(Call::WriteFile(WriteFile { path: path.into(), content: String::new(), append: false, protected: false }))
    }

    fn bash(command: &str) -> Action {
        Action::Box(Call::Bash(Bash {
            command: command.to_owned(),
            working_directory: None,
            timeout_ms: 1,
            grace_ms: 1,
            stream_bytes: 1,
            tail_bytes: 1,
            background: false,
        }))
    }

    #[test]
    fn a_path_rule_speaks_of_that_path_alone() {
        let rule = Rule::parse("write_file(src/**)").expect("a good rule");
        assert!(rule.matches(&write("src/a/b.rs")));
        assert!(rule.matches(&write("/workspace/src/a.rs")));
        assert!(!rule.matches(&write("srcfoo/a.rs")));
        assert!(!rule.matches(&write("src/../Makefile")));
        assert!(!rule.matches(&write("x/../src/a.rs")), "in doubt nothing is allowed");
        assert!(rule.may_match(&write("x/../src/a.rs")), "and nothing gets past a denial");
        assert!(rule.may_match(&write("/workspace/x/../src/a.rs")));
        assert!(!rule.matches(&bash("true")));
    }

    #[test]
    fn a_command_rule_speaks_of_that_command_to_the_letter() {
        let rule = Rule::parse("bash(git status)").expect("a good rule");
        assert!(rule.matches(&bash("git status")));
        for other in ["git status; touch x", "git status && x", "git status\ntouch x", "git  status", "A=b git status"] {
            assert!(!rule.matches(&bash(other)), "{other}");
        }
    }

    #[test]
    fn rules_that_cannot_be_meant_are_refused() {
        for bad in ["", "Bash", "bash(", "bash()", "bash(git *)", "write_file([)", "rm -rf"] {
            assert!(Rule::parse(bad).is_err(), "{bad}");
        }
    }
}
