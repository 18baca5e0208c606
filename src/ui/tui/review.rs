//! The review: files and hunks to take or leave, before any of it is applied.

use crossterm::event::KeyCode;
use crossterm::event::KeyEvent;
use crossterm::event::KeyModifiers;

/// What is pending, as it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReviewView {
    /// Whose changes they are.
    pub title: String,
    pub files: Vec<ReviewFile>,
    /// Commits, and what is not on the screen.
    pub notes: Vec<String>,
    /// What discarding does, in words; `None`: it is not possible.
    pub discard: Option<String>,
}

/// One pending path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReviewFile {
    pub name: String,
    /// A letter as `git status` has them: A, M, D, R, T.
    pub sign: char,
    /// Added and removed lines, where they were counted.
    pub lines: Option<(u64, u64)>,
    /// What the diff says before its hunks: modes, renames, why there is no content.
    pub head: Vec<String>,
    /// The hunks, each with its header.
    pub hunks: Vec<String>,
    /// Whether hunks can be taken one by one.
    pub is_divisible: bool,
    /// Which program on the user's machine may run it.
    pub runs: Option<String>,
    /// It runs without being asked for: left out until it is taken.
    pub runs_by_itself: bool,
    /// Another program changed it in the project since.
    pub is_conflict: bool,
}

/// What the user decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReviewChoice {
    /// For each file the hunks that are taken, all of them where it is whole; `None`: the file is
    /// left.
    Apply(Vec<Option<Vec<u32>>>),
    Discard,
    /// All of it stays pending.
    Quit,
}

/// Which part of the screen the arrows move in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Focus {
    Files,
    Hunks,
}

/// What a second key confirms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asking {
    Apply,
    Discard,
}

/// The state of the screen.
pub(super) struct Review {
    pub(super) view: ReviewView,
    /// Which hunks of each file are taken; a file without hunks has one.
    pub(super) taken: Vec<Vec<bool>>,
    pub(super) focus: Focus,
    pub(super) file: usize,
    pub(super) hunk: usize,
    /// First line of the diff that is shown.
    pub(super) scroll: usize,
    /// How many lines of the diff were shown last.
    pub(super) page: usize,
    pub(super) asking: Option<Asking>,
    /// Where the hunks of the chosen file begin in its diff, as it was drawn last.
    pub(super) starts: Vec<usize>,
}

/// How much of a file is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    All,
    Some,
    None,
}

impl Review {
    pub(super) fn new(view: ReviewView) -> Self {
        let taken = view
            .files
            .iter()
            .map(|file| vec![!file.runs_by_itself; n_parts(file)])
            .collect();
        Self {
            view,
            taken,
            focus: Focus::Files,
            file: 0,
            hunk: 0,
            scroll: 0,
            page: 1,
            asking: None,
            starts: Vec::new(),
        }
    }

    /// Returns how much of a file is taken.
    pub(super) fn part(&self, file: usize) -> Part {
        let taken = self.taken.get(file).map(Vec::as_slice).unwrap_or_default();
        match taken.iter().filter(|taken| **taken).count() {
            0 => Part::None,
            n if n == taken.len() => Part::All,
            _ => Part::Some,
        }
    }

    pub(super) fn n_taken(&self) -> usize {
        (0..self.view.files.len())
            .filter(|file| self.part(*file) != Part::None)
            .count()
    }

    /// Takes a key; returns what the user decided, once they have.
    pub(super) fn key(&mut self, key: KeyEvent) -> Option<ReviewChoice> {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && matches!(key.code, KeyCode::Char('c' | 'd')) {
            return Some(ReviewChoice::Quit);
        }
        if let Some(asking) = self.asking.take() {
            return match (asking, key.code) {
                (Asking::Apply, KeyCode::Char('y')) => Some(self.apply()),
                (Asking::Discard, KeyCode::Char('y')) => Some(ReviewChoice::Discard),
                // Any other key goes back.
                _ => None,
            };
        }
        match key.code {
            KeyCode::Esc if self.focus == Focus::Hunks => self.focus = Focus::Files,
            KeyCode::Esc | KeyCode::Char('q') => return Some(ReviewChoice::Quit),
            KeyCode::Up | KeyCode::Char('k') => self.step(false),
            KeyCode::Down | KeyCode::Char('j') => self.step(true),
            KeyCode::Tab | KeyCode::BackTab => self.turn(),
            KeyCode::Right if self.focus == Focus::Files => self.turn(),
            KeyCode::Left if self.focus == Focus::Hunks => self.turn(),
            KeyCode::Char(' ') => self.toggle(),
            KeyCode::Char('a') => self.set_all(true),
            KeyCode::Char('n') => self.set_all(false),
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(self.page.max(2) - 1),
            KeyCode::PageDown => self.scroll += self.page.max(2) - 1,
            KeyCode::Home => self.choose(0),
            KeyCode::End => self.choose(usize::MAX),
            KeyCode::Enter if self.n_taken() > 0 => self.asking = Some(Asking::Apply),
            KeyCode::Char('d') if self.view.discard.is_some() => {
                self.asking = Some(Asking::Discard);
            }
            _ => {}
        }
        None
    }

    fn apply(&self) -> ReviewChoice {
        let taken = self.taken.iter().map(|taken| {
            let hunks: Vec<u32> = (0..)
                .zip(taken)
                .filter(|(_, taken)| **taken)
                .map(|(n, _)| n)
                .collect();
            (!hunks.is_empty()).then_some(hunks)
        });
        ReviewChoice::Apply(taken.collect())
    }

    fn turn(&mut self) {
        let can = self
            .view
            .files
            .get(self.file)
            .is_some_and(|file| !file.hunks.is_empty());
        self.focus = match self.focus {
            Focus::Files if can => Focus::Hunks,
            _ => Focus::Files,
        };
        self.hunk = 0;
    }

    fn choose(&mut self, file: usize) {
        self.file = file.min(self.view.files.len().saturating_sub(1));
        self.focus = Focus::Files;
        (self.hunk, self.scroll) = (0, 0);
    }

    fn step(&mut self, is_down: bool) {
        let step = |at: usize, n: usize| {
            if is_down {
                (at + 1).min(n.saturating_sub(1))
            } else {
                at.saturating_sub(1)
            }
        };
        match self.focus {
            Focus::Files => {
                let next = step(self.file, self.view.files.len());
                if next != self.file {
                    self.choose(next);
                }
            }
            Focus::Hunks => {
                let n = self
                    .view
                    .files
                    .get(self.file)
                    .map_or(0, |file| file.hunks.len());
                self.hunk = step(self.hunk, n);
                // The hunk that is chosen is on the screen, with its beginning.
                if let Some(start) = self.starts.get(self.hunk) {
                    self.scroll = *start;
                }
            }
        }
    }

    fn toggle(&mut self) {
        let part = self.part(self.file);
        let Some(taken) = self.taken.get_mut(self.file) else {
            return;
        };
        match self.focus {
            Focus::Hunks if taken.len() > 1 => {
                if let Some(taken) = taken.get_mut(self.hunk) {
                    *taken = !*taken;
                }
            }
            _ => taken.fill(part != Part::All),
        }
    }

    /// Takes or leaves every file; what runs by itself is taken one by one.
    fn set_all(&mut self, is_taken: bool) {
        for (file, taken) in self.view.files.iter().zip(&mut self.taken) {
            taken.fill(is_taken && !file.runs_by_itself);
        }
    }
}

/// How many parts of a file can be taken or left.
fn n_parts(file: &ReviewFile) -> usize {
    if file.is_divisible {
        file.hunks.len().max(1)
    } else {
        1
    }
}
