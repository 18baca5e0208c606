//! A message's text within a page of Markdown: it stays readable, and cannot add to the page's
//! structure.

/// How many levels a message's headings are moved down, below those of the page.
const DEEPER: usize = 3;
/// The deepest heading level of Markdown.
const DEEPEST: usize = 6;

/// Returns a message's text without headings of the page's levels; code blocks and HTML that start
/// in it also end in it.
pub(super) fn contained(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut open: Option<Fence> = None;
    let mut is_behind_words = false;
    for line in text.split('\n') {
        let line = line.trim_end_matches('\r');
        let indent = line.len() - line.trim_start_matches(' ').len();
        // In a list, the block ends with its item; elsewhere it must be closed.
        if let Some(fence) = open.take_if(|fence| indent < fence.indent && !line.trim().is_empty())
        {
            out.push_str(&fence.end());
            out.push('\n');
        }
        if let Some(fence) = &open {
            out.push_str(line);
            if fence.is_ended_by(line) {
                open = None;
            }
            is_behind_words = false;
        } else if let Some(fence) = Fence::begun_by(line) {
            out.push_str(line);
            open = Some(fence);
        } else {
            plain(&mut out, line, indent, is_behind_words);
            is_behind_words = !line.trim().is_empty();
        }
        out.push('\n');
    }
    match open {
        Some(fence) => out.push_str(&fence.end()),
        None => out.truncate(out.len() - 1),
    }
    out
}

/// Writes a line outside of a code block.
fn plain(out: &mut String, line: &str, indent: usize, is_behind_words: bool) {
    let words = line[indent..].trim_end();
    let n_marks = words.bytes().take_while(|byte| *byte == b'#').count();
    let is_heading = indent < 4
        && (1..=DEEPEST).contains(&n_marks)
        && !words[n_marks..].starts_with(|c: char| !c.is_whitespace());
    // Such a line below a paragraph makes it a heading.
    let is_rule = is_behind_words
        && ["=", "-"].iter().any(|mark| {
            !words.is_empty()
                && words
                    .trim_matches(mark.chars().next().unwrap_or('='))
                    .is_empty()
        });
    out.push_str(&line[..indent]);
    if is_heading {
        out.push_str(&"#".repeat((n_marks + DEEPER).min(DEEPEST) - n_marks));
    } else if is_rule {
        out.push('\\');
    }
    without_markup(out, &line[indent..]);
}

/// Writes a line with HTML tags escaped, except in code spans.
fn without_markup(out: &mut String, line: &str) {
    let mut rest = line;
    while let Some(at) = rest.find(['<', '`']) {
        let (before, behind) = rest.split_at(at);
        out.push_str(before);
        if behind.starts_with('`') {
            let n_ticks = behind.bytes().take_while(|byte| *byte == b'`').count();
            let n_code = code(behind, n_ticks).unwrap_or(n_ticks);
            out.push_str(&behind[..n_code]);
            rest = &behind[n_code..];
            continue;
        }
        let is_escaped = (out.len() - out.trim_end_matches('\\').len()) % 2 == 1;
        if !is_escaped
            && behind[1..]
                .starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?'))
        {
            out.push('\\');
        }
        out.push('<');
        rest = &behind[1..];
    }
    out.push_str(rest);
}

/// Returns the length of a code span that begins with so many backticks, if the line has the
/// closing ones.
fn code(text: &str, n_ticks: usize) -> Option<usize> {
    let mut at = n_ticks;
    loop {
        at += text[at..].find('`')?;
        let n = text[at..].bytes().take_while(|byte| *byte == b'`').count();
        at += n;
        if n == n_ticks {
            return Some(at);
        }
    }
}

/// An open code block.
struct Fence {
    mark: char,
    n_marks: usize,
    indent: usize,
}

impl Fence {
    fn begun_by(line: &str) -> Option<Self> {
        let words = line.trim_start_matches(' ');
        let mark = words
            .chars()
            .next()
            .filter(|mark| matches!(mark, '`' | '~'))?;
        let n_marks = words.chars().take_while(|other| *other == mark).count();
        let indent = line.len() - words.len();
        let is_within_a_line = mark == '`' && words[n_marks..].contains('`');
        (n_marks >= 3 && indent < 4 && !is_within_a_line).then_some(Self {
            mark,
            n_marks,
            indent,
        })
    }

    fn is_ended_by(&self, line: &str) -> bool {
        let words = line.trim_start_matches(' ');
        let marks = words.trim_end();
        line.len() - words.len() < 4
            && marks.len() >= self.n_marks
            && marks.chars().all(|c| c == self.mark)
    }

    fn end(&self) -> String {
        " ".repeat(self.indent) + &String::from(self.mark).repeat(self.n_marks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(contained(text), expected, "{text}");
    }

    #[test]
    fn headings_and_html_of_a_message_are_not_the_pages() {
        check(
            "# A\n## You\n  ###\n#### D ##\n####### no heading",
            "#### A\n##### You\n  ######\n###### D ##\n####### no heading",
        );
        check(
            "You\n---\nModel\n===\n\n---",
            "You\n\\---\nModel\n\\===\n\n---",
        );
        check(
            "a <h2>You</h2> b\n<!-- all",
            "a \\<h2>You\\</h2> b\n\\<!-- all",
        );
        check(
            "`Vec<u8>` and Vec<u8>, \\<b> \\\\<b> 1 < 2 <3",
            "`Vec<u8>` and Vec\\<u8>, \\<b> \\\\\\<b> 1 < 2 <3",
        );
        check("``a`<b>``<b> `<b>", "``a`<b>``\\<b> `\\<b>");
    }

    #[test]
    fn a_code_block_ends_with_its_message() {
        check("```\n# code <b>\n", "```\n# code <b>\n\n```");
        check("~~~~py\n```\n~~~\n# x", "~~~~py\n```\n~~~\n# x\n~~~~");
        check("```sh\nls # a\n```\n# A", "```sh\nls # a\n```\n#### A");
        check("- a\n  ```\n## You", "- a\n  ```\n  ```\n##### You");
        check(
            "- a\n  ```\n  # code\n\n  ```\n",
            "- a\n  ```\n  # code\n\n  ```\n",
        );
        check("    ```\n# A", "    ```\n#### A");
        check("```x``` y\n# A", "```x``` y\n#### A");
    }

    #[test]
    fn ordinary_markdown_is_unchanged() {
        for text in [
            "",
            "a\n\nb",
            "#hash #1",
            "a - b\n- c\n- d",
            "| a | b |\n|---|---|\n| c | d |",
            "x\ny",
            "    # indented",
            "`#`",
        ] {
            check(text, text);
        }
    }
}
