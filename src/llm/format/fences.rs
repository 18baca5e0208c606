//! Finds the lines of a text that open and close Markdown code blocks.

/// How much of a line is examined, in bytes: fence marks and the name of a language.
const MAX_LINE: usize = 256;

/// Tracks code fences line by line.
#[derive(Debug, Default)]
pub struct Fences {
    /// The fence character of the open block, and how many opened it.
    open: Option<(char, usize)>,
}

impl Fences {
    /// Processes the next line; returns whether it is a fence: at least three backticks or tildes,
    /// and at least as many of the same to close it.
    pub fn take(&mut self, line: &str) -> bool {
        let line = line.trim_start();
        let line = &line[..line.floor_char_boundary(MAX_LINE)];
        let Some(mark) = line.chars().next().filter(|mark| matches!(mark, '`' | '~')) else {
            return false;
        };
        let n_marks = line.chars().take_while(|other| *other == mark).count();
        match self.open {
            Some((open, least)) if open == mark && n_marks >= least => self.open = None,
            Some(_) => return false,
            // With backticks after it this is inline code.
            None if n_marks < 3 || mark == '`' && line[n_marks..].contains('`') => return false,
            None => self.open = Some((mark, n_marks)),
        }
        true
    }

    /// Returns whether the next line is code.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, fences: &[usize], is_open: bool) {
        let mut all = Fences::default();
        let found: Vec<usize> = text
            .lines()
            .zip(0..)
            .filter(|(line, _)| all.take(line))
            .map(|(_, at)| at)
            .collect();
        assert_eq!(
            (found.as_slice(), all.is_open()),
            (fences, is_open),
            "{text}"
        );
    }

    #[test]
    fn blocks_end_with_the_marks_that_opened_them() {
        check("a\n```rust\nb\n```\nc", &[1, 3], false);
        check("  ~~~\n```\n~~\n~~~~\n", &[0, 3], false);
        check("````\n```\n````\n~~~", &[0, 2, 3], true);
        check("```x``` is code\n``\n~~", &[], false);
        check(&format!("```{}\n", "é".repeat(1000)), &[0], true);
    }
}
