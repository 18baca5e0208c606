//! Commands on one line with the begin of a here-document in front of them, `cat <<END; ls`, of which the grammar cannot read all: the same text
//! with the second command behind the document, where it means the same.

use std::ops::Range;

use super::plain;
use super::plain::Heredoc;

/// Most commands that are moved.
const MOVED_MAX: usize = 16;

/// Returns a text in which nothing stands on the line of a here-document behind a `;`, and no second one behind `&&` or `||`; `None` where that is
/// so already, or where it cannot be seen for certain what is quoted.
pub(super) fn parted(text: &str) -> Option<String> {
    let mut parted = text.contains("<<").then(|| once(text)).flatten()?;
    for _ in 1..MOVED_MAX {
        let Some(more) = once(&parted) else { break };
        parted = more;
    }
    Some(parted)
}

/// Where a line can be cut.
struct Cut {
    /// What goes: the `;`, or nothing.
    sign: Range<usize>,
    /// How many documents begin in front of it.
    n_before: usize,
    /// Whether it is cut even if none begins behind it.
    has_to_be: bool,
}

/// Moves the first command that has to be.
fn once(text: &str) -> Option<String> {
    let mut at = 0;
    let mut documents: Vec<Heredoc<'_>> = Vec::new();
    let mut cut: Option<Cut> = None;
    // Where the last part ends that is escaped, in quotes or an expansion.
    let mut quoted = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let taken = match c {
            '\\' => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            '\'' => rest[1..].find('\'')? + 2,
            '"' => plain::double(&rest[1..]).ok()?? + 2,
            '`' => return None,
            '$' => match plain::expansion(rest).ok()? {
                Some(end) => end,
                None if rest.starts_with("$((") => return None,
                None => 1,
            },
            '#' => match Before::of(&text[..at], quoted) {
                Before::Blank => rest.find('\n').unwrap_or(rest.len()),
                Before::Word => 1,
                Before::Unclear => return None,
            },
            '<' if rest.starts_with("<<<") => 3,
            '<' if rest.starts_with("<<") => {
                let (document, end) = plain::heredoc(rest)?;
                documents.push(document);
                end
            }
            // Which of both the document belongs to is not the same everywhere.
            ')' if !documents.is_empty() => return None,
            ';' if !documents.is_empty() && cut.as_ref().is_none_or(|cut| !cut.has_to_be && cut.n_before == documents.len()) => {
                if rest.starts_with(";;") || rest.starts_with(";&") {
                    return None;
                }
                cut = Some(Cut { sign: at..at + 1, n_before: documents.len(), has_to_be: true });
                1
            }
            // These may end a line.
            '&' | '|' if !documents.is_empty() && cut.is_none() && (rest.starts_with("&&") || rest.starts_with("||")) => {
                cut = Some(Cut { sign: at + 2..at + 2, n_before: documents.len(), has_to_be: false });
                2
            }
            '\n' => {
                let ends = ends(&rest[1..], &documents)?;
                let goes = |cut: &Cut| (cut.has_to_be && !text[cut.sign.end..at].trim().is_empty()) || cut.n_before < documents.len();
                if let Some(Cut { sign, n_before, .. }) = cut.filter(goes) {
                    let (begin, end) = (at + 1, at + 1 + ends[n_before - 1]);
                    let [before, documents, moved, behind] = [&text[..sign.start], &text[begin..end], &text[sign.end..at], &text[end..]];
                    let line = if documents.ends_with('\n') { "" } else { "\n" };
                    return Some(format!("{before}\n{documents}{line}{moved}\n{behind}"));
                }
                documents.clear();
                cut = None;
                1 + ends.last().copied().unwrap_or_default()
            }
            c => c.len_utf8(),
        };
        at += taken;
        if matches!(c, '\\' | '\'' | '"' | '$') {
            quoted = at;
        }
    }
    None
}

/// What stands in front of a `#`.
enum Before {
    /// It begins a comment.
    Blank,
    /// It is a sign of the word like any other.
    Word,
    Unclear,
}

impl Before {
    fn of(text: &str, quoted: usize) -> Self {
        match text.chars().next_back() {
            // What joins two lines leaves what stands in front of it.
            Some('\n') if quoted == text.len() => Self::Unclear,
            Some(_) if quoted == text.len() && quoted > 0 => Self::Word,
            // Of a substitution, it goes on with a word.
            Some(')' | '<' | '>') => Self::Unclear,
            None => Self::Blank,
            Some(c) => {
                if plain::ENDS.contains(&c) {
                    Self::Blank
                } else {
                    Self::Word
                }
            }
        }
    }
}

/// Returns where each document ends, one behind the other; `None` where one has no end, or a line of one goes on in the next.
fn ends(text: &str, documents: &[Heredoc<'_>]) -> Option<Vec<usize>> {
    let mut at = 0;
    let mut ends = Vec::with_capacity(documents.len());
    for document in documents {
        loop {
            let line = text[at..].split_inclusive('\n').next()?;
            at += line.len();
            let line = line.strip_suffix('\n').unwrap_or(line);
            if document.is_ended_by(line) {
                break;
            }
            // Bash lets the end of a substitution follow it.
            if document.is_begun_by(line) || (!document.is_quoted && line.ends_with('\\')) {
                return None;
            }
        }
        ends.push(at);
    }
    Some(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_behind_the_begin_of_a_document_is_moved_behind_it() {
        for (text, expected) in [
            ("cat <<E; ls\na\nE\n", "cat <<E\na\nE\n ls\n"),
            ("cat <<E; ls\na\nE", "cat <<E\na\nE\n ls\n"),
            ("cat <<-'E' > f; ls; pwd\n\ta; b\n\tE\ncd x", "cat <<-'E' > f\n\ta; b\n\tE\n ls; pwd\ncd x"),
            ("cat <<E; cat <<F; ls\na\nE\nb\nF\n", "cat <<E\na\nE\n cat <<F\nb\nF\n ls\n"),
            ("cat <<E > a && cat <<F > b || ls\na\nE\nb\nF\n", "cat <<E > a &&\na\nE\n cat <<F > b || ls\nb\nF\n"),
            ("cat <<E && ls; pwd\na\nE\n", "cat <<E && ls\na\nE\n pwd\n"),
            ("if cat <<E; then\na\nE\nls; fi", "if cat <<E\na\nE\n then\nls; fi"),
            ("f() { cat <<E; }\na\nE\n", "f() { cat <<E\na\nE\n }\n"),
            ("x=$(cat <<E; ls\na\nE\n)", "x=$(cat <<E\na\nE\n ls\n)"),
            ("echo \\;#'\n'; cat <<E; ls\na\nE", "echo \\;#'\n'; cat <<E\na\nE\n ls\n"),
            ("echo $((1))#'\n'; cat <<E; ls\na\nE", "echo $((1))#'\n'; cat <<E\na\nE\n ls\n"),
            ("echo 'a <<E; b' \"<<F; c\" # <<G; d\ncat <<E; ls\n'\nE\n", "echo 'a <<E; b' \"<<F; c\" # <<G; d\ncat <<E\n'\nE\n ls\n"),
        ] {
            assert_eq!(parted(text).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "cat <<E\na; b\nE\nls; pwd",
            "cat <<E;\na\nE\n",
            "cat <<E && ls | sort\na\nE\n",
            "ls; cat <<E\na\nE\n",
            "cat <<<a; ls",
            "case x in a) cat <<E;; esac\na\nE\n",
            "x=$(cat <<E); ls\na\nE\n",
            "cat <<E; ls\na\n",
            "cat <<E; ls\na\\\nE\nE\n",
            "cat <<E; ls `\na\nE\n",
            "cat <<$x; ls\na\n",
            "x=$(cat <<E; ls\na\nE)\ncat <<'F'\nE\nF",
            "x=$(cat <<-E; ls\n\ta\n\tE )\ncat <<'F'\nE\nF",
            "echo $(a)#'\ncat <<E; ls #'\nls\nE\n",
            "echo a \\\n#'\ncat <<E; ls #'\nls\nE\n",
        ] {
            assert_eq!(parted(text), None, "{text}");
        }
    }
}
