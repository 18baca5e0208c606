use podbay_wire::Hunk;
use podbay_wire::PatchLine;

/// A hunk that is being parsed.
#[derive(Debug, Default)]
pub(super) struct Body {
    pub(super) hunk: Hunk,
    /// Lines of the old and of the new text that are to come, by the hunk's header.
    pub(super) left: Option<(u64, u64)>,
    /// Empty lines at the end, which may be part of the hunk or only its end.
    n_blank: usize,
}

impl Body {
    /// Parses what follows `@@`.
    pub(super) fn begin(head: &str) -> Self {
        let mut body = Self::default();
        let Some((old, new)) = ranges(head) else {
            let anchor = head.trim_start_matches('@').trim();
            let anchor = anchor.strip_suffix("@@").unwrap_or(anchor).trim();
            if !anchor.is_empty() && anchor != "..." {
                body.hunk.anchors.push(anchor.to_owned());
            }
            return body;
        };
        // For an empty range, the number is that of the line before.
        body.hunk.line = Some(if old.1 == 0 { old.0 + 1 } else { old.0 });
        body.left = Some((old.1, new.1));
        body
    }

    /// Returns whether the hunk changes something so far.
    pub(super) fn changes(&self) -> bool {
        self.hunk
            .lines
            .iter()
            .any(|line| !matches!(line, PatchLine::Keep(_)))
    }

    /// Returns whether the hunk has as many lines as its header says.
    pub(super) fn is_full(&self) -> bool {
        self.left == Some((0, 0))
    }

    /// Returns how many old and new lines are still missing, if the header was right so far.
    pub(super) fn missing(&self) -> Option<(u64, u64)> {
        self.left.filter(|left| *left != (0, 0))
    }

    /// Adds a line, if it can be one of a hunk.
    pub(super) fn push(&mut self, line: &str) -> bool {
        let is_blank = line.is_empty() || line == "\r";
        let read = match line.as_bytes().first() {
            _ if is_blank => PatchLine::Keep(String::new()),
            Some(b' ') => PatchLine::Keep(line[1..].to_owned()),
            Some(b'-') => PatchLine::Remove(line[1..].to_owned()),
            Some(b'+') => PatchLine::Add(line[1..].to_owned()),
            Some(b'\\') => {
                self.unended();
                return true;
            }
            _ => return false,
        };
        self.n_blank = if is_blank { self.n_blank + 1 } else { 0 };
        if let Some((old, new)) = &mut self.left {
            // Beyond its counts the header is no longer trusted.
            let (takes_old, takes_new) = match &read {
                PatchLine::Keep(_) => (1, 1),
                PatchLine::Remove(_) => (1, 0),
                PatchLine::Add(_) => (0, 1),
            };
            match (old.checked_sub(takes_old), new.checked_sub(takes_new)) {
                (Some(left_old), Some(left_new)) => (*old, *new) = (left_old, left_new),
                _ => self.left = None,
            }
        }
        self.hunk.lines.push(read);
        true
    }

    fn unended(&mut self) {
        let (old, new) = match self.hunk.lines.last() {
            Some(PatchLine::Keep(_)) => (true, true),
            Some(PatchLine::Remove(_)) => (true, false),
            Some(PatchLine::Add(_)) => (false, true),
            None => (false, false),
        };
        self.hunk.old_unended |= old;
        self.hunk.new_unended |= new;
        self.hunk.at_end |= old || new;
    }

    /// Ends the hunk.
    pub(super) fn end(mut self) -> Hunk {
        if !self.is_full() {
            let n = self.hunk.lines.len() - self.n_blank;
            self.hunk.lines.truncate(n);
        }
        self.hunk
    }
}

/// Returns whether a line is a hunk header with line numbers.
pub(super) fn is_counted(head: &str) -> bool {
    ranges(head).is_some()
}

/// Returns where a hunk begins and how long it is, old and new: `@@ -1,2 +1,3 @@`.
fn ranges(head: &str) -> Option<((u64, u64), (u64, u64))> {
    let mut words = head.strip_prefix("@@")?.split_whitespace();
    let range = |word: &str, sign| {
        let word: &str = word.strip_prefix(sign)?;
        let (line, n) = word.split_once(',').unwrap_or((word, "1"));
        Some((line.parse().ok()?, n.parse().ok()?))
    };
    let old = range(words.next()?, '-')?;
    let new = range(words.next()?.trim_end_matches("@@"), '+')?;
    Some((old, new))
}
