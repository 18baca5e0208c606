//! Which lines of a text begin and end blocks of code.

/// Most of a line that is looked at, in bytes: marks and the name of a language.
const MAX_LINE: usize = 256;

/// Follows a text line by line.
#[derive(Debug, Default)]
pub struct Fences {
    /// The mark of the block that is open, and how many of them.
    open: Option<(char, usize)>,
}

impl Fences {
    /// Takes the next line; returns whether it is a fence: three backticks or tildes at least, and
    /// for the end as many of the same.
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
            // With backticks behind it this is code within a line.
            None if n_marks < 3 || mark == '`' && line[n_marks..].contains('`') => return false,
            None => self.open = Some((mark, n_marks)),
        }
        true
    }

    /// Returns whether what follows is code.
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
    fn blocks_end_with_the_marks_that_began_them() {
        check("a\n```rust\nb\n```\nc", &[1, 3], false);
        check("  ~~~\n```\n~~\n~~~~\n", &[0, 3], false);
        check("````\n```\n````\n~~~", &[0, 2, 3], true);
        check("```x``` is code\n``\n~~", &[], false);
        check(&format!("```{}\n", "é".repeat(1000)), &[0], true);
    }
}
