/// Width of a level of indentation where nothing tells it.
const TAB_WIDTH: usize = 4;

/// How the indentation of a model's old text maps to that of the file, learned line by line.
#[derive(Debug, Default)]
pub(super) struct Indents {
    lines: Vec<Line>,
}

#[derive(Debug)]
struct Line {
    text: Vec<u8>,
    /// White space of the line in the model's text and in the file.
    model: Vec<u8>,
    file: Vec<u8>,
}

impl Indents {
    pub(super) fn learn(&mut self, model: &[u8], file: &[u8]) {
        // A blank line teaches nothing but keeps its number.
        let text = file.trim_ascii().to_vec();
        self.lines.push(Line {
            text,
            model: indent(model).to_vec(),
            file: indent(file).to_vec(),
        });
    }

    /// Indents the model's new text like the file.
    pub(super) fn apply(&self, new: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(new.len() * 2);
        let mut last = None;
        for (number, line) in new.split_inclusive(|byte| *byte == b'\n').enumerate() {
            if line.trim_ascii().is_empty() {
                out.extend_from_slice(line);
                continue;
            }
            let given = indent(line);
            let fitting = self.fitting(number, line.trim_ascii(), given, last);
            out.extend_from_slice(&fitting);
            out.extend_from_slice(&line[given.len()..]);
            last = Some(fitting);
        }
        out
    }

    fn fitting(&self, number: usize, text: &[u8], given: &[u8], last: Option<Vec<u8>>) -> Vec<u8> {
        let same = |line: &&Line| line.model == given;
        let mut known = self.known().filter(same);
        let Some(first) = known.next() else {
            return self.translate(given);
        };
        if known.all(|line| line.file == first.file) {
            return first.file.clone();
        }
        // The model left the indentation out. Take it from the same line in the old text, then from
        // the line that it replaces, then from the line before.
        let unchanged = self.known().filter(same).find(|line| line.text == text);
        let replaced = self
            .lines
            .get(number)
            .filter(same)
            .filter(|line| !line.text.is_empty());
        match unchanged.or(replaced) {
            Some(line) => line.file.clone(),
            None => last.unwrap_or_else(|| first.file.clone()),
        }
    }

    /// Finds an indentation for one that the old text did not have.
    fn translate(&self, given: &[u8]) -> Vec<u8> {
        // Deeper than a known line: add the difference to that line's indentation.
        let known = self
            .known()
            .filter(|line| given.starts_with(&line.model))
            .max_by_key(|line| line.model.len());
        if let Some(line) = known {
            let mut translated = line.file.clone();
            translated.extend(self.convert(&given[line.model.len()..]));
            return translated;
        }
        // Less deep than all known lines: remove the difference.
        match self.known().next() {
            Some(line) => {
                let less = self
                    .convert(&vec![b' '; line.model.len().saturating_sub(given.len())])
                    .len();
                line.file[..line.file.len().saturating_sub(less)].to_vec()
            }
            None => given.to_vec(),
        }
    }

    /// Converts an indentation to the file's tabs or spaces.
    fn convert(&self, extra: &[u8]) -> Vec<u8> {
        let file_has = |byte| self.lines.iter().any(|line| line.file.contains(&byte));
        let is_all = |byte| extra.iter().all(|other| *other == byte);
        if is_all(b' ') && file_has(b'\t') {
            let (spaces, tabs) = self.ratio(|line| line.model.len(), |line| line.file.len());
            return vec![b'\t'; (extra.len() * tabs).div_ceil(spaces)];
        }
        if is_all(b'\t') && file_has(b' ') {
            let (spaces, tabs) = self.ratio(|line| line.file.len(), |line| line.model.len());
            return vec![b' '; extra.len() * spaces / tabs];
        }
        extra.to_vec()
    }

    /// Returns how many spaces stand for how many tabs, from two lines of different depth or from
    /// one against none.
    fn ratio(
        &self,
        spaces: impl Fn(&Line) -> usize,
        tabs: impl Fn(&Line) -> usize,
    ) -> (usize, usize) {
        let depths: Vec<(usize, usize)> = self
            .known()
            .map(|line| (spaces(line), tabs(line)))
            .collect();
        let first = depths.first().copied().unwrap_or_default();
        let steps = depths
            .iter()
            .map(|depth| (depth.0.abs_diff(first.0), depth.1.abs_diff(first.1)));
        steps
            .chain([first])
            .find(|step| step.0 > 0 && step.1 > 0)
            .unwrap_or((TAB_WIDTH, 1))
    }

    fn known(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| !line.text.is_empty())
    }
}

fn indent(line: &[u8]) -> &[u8] {
    let length = line
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .count();
    &line[..length]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(learnt: &[(&str, &str)], new: &str, expected: &str) {
        let mut indents = Indents::default();
        for (model, file) in learnt {
            indents.learn(model.as_bytes(), file.as_bytes());
        }
        assert_eq!(
            String::from_utf8_lossy(&indents.apply(new.as_bytes())),
            expected
        );
    }

    #[test]
    fn new_lines_keep_their_depth_relative_to_the_old_ones() {
        check(&[("a", "    a")], "a\n  b\nc", "    a\n      b\n    c");
        check(
            &[("        a", "    a")],
            "    b\n        c\n            d",
            "b\n    c\n        d",
        );
        check(&[("  a", "  a")], " a\n\n  b", " a\n\n  b");
    }

    #[test]
    fn tabs_and_spaces_follow_the_file() {
        check(&[("a", "\ta"), ("  b", "\t\tb")], "    c", "\t\t\tc");
        check(&[("\ta", "  a")], "\t\tb", "    b");
    }
}
