use super::text::Cleaner;

/// Lines of one command's output that are shown while it runs.
const LINES_MAX: usize = 200;
const LINE_MAX: usize = 4096;

/// The output of one running command, as whole clean lines.
#[derive(Default)]
pub(super) struct Output {
    cleaner: Cleaner,
    partial: String,
    n_lines: usize,
}

impl Output {
    /// Takes a piece of output and returns the lines that it completes.
    pub(super) fn push(&mut self, text: &str) -> Vec<String> {
        let cleaned = self.cleaner.push(text.as_bytes());
        self.partial.push_str(&cleaned);
        let mut lines: Vec<String> = Vec::new();
        while let Some(end) = self.partial.find('\n') {
            let rest = self.partial.split_off(end + 1);
            lines.push(
                std::mem::replace(&mut self.partial, rest)
                    .trim_end()
                    .to_owned(),
            );
        }
        if self.partial.len() > LINE_MAX {
            lines.push(std::mem::take(&mut self.partial));
        }
        self.bound(lines)
    }

    /// Returns whether a whole line of it was shown.
    pub(super) fn has_lines(&self) -> bool {
        self.n_lines > 0
    }

    /// Returns what was left without a newline.
    pub(super) fn finish(mut self) -> Vec<String> {
        let rest = self.cleaner.finish();
        self.partial.push_str(&rest);
        let line = std::mem::take(&mut self.partial);
        if line.is_empty() {
            Vec::new()
        } else {
            self.bound(vec![line])
        }
    }

    fn bound(&mut self, mut lines: Vec<String>) -> Vec<String> {
        let room = LINES_MAX.saturating_sub(self.n_lines);
        let over = lines.len() > room && self.n_lines <= LINES_MAX;
        self.n_lines = self.n_lines.saturating_add(lines.len());
        lines.truncate(room);
        if over {
            lines.push(format!("… more than {LINES_MAX} lines"));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_comes_as_whole_lines_up_to_a_bound() {
        let mut output = Output::default();
        assert_eq!(
            (output.push("on\x1b[3"), output.has_lines()),
            (Vec::new(), false)
        );
        assert_eq!(output.push("1me\ntwo\nthr"), ["one", "two"]);
        assert!(output.has_lines());
        let many = output.push(&"x\n".repeat(500));
        assert_eq!(
            (many.len(), many.last().expect("some")),
            (199, &"… more than 200 lines".to_owned())
        );
        assert_eq!(output.push("more\n"), Vec::<String>::new());
        assert_eq!(Output::default().finish(), Vec::<String>::new());
    }
}
