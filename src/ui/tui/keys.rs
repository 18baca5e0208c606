//! What each key does.

use std::time::Duration;
use std::time::Instant;

use crossterm::event::KeyCode;
use crossterm::event::KeyEvent;
use crossterm::event::KeyModifiers;

use podbay_event::Command;

use super::modal::Came;
use super::popup::Popup;
use super::screen::Effect;
use super::screen::Screen;
use super::search::Search;
use crate::slash;

/// A second Ctrl-C within this time leaves.
const TWICE: Duration = Duration::from_secs(2);

const WIDE: KeyModifiers = KeyModifiers::CONTROL.union(KeyModifiers::ALT);

impl Screen {
    /// Takes a paste; it is one message, whatever it holds.
    pub(super) fn paste(&mut self, text: &str, now: Instant) {
        self.typed = Some(now);
        if let Some(page) = &mut self.over {
            page.paste(text);
            return;
        }
        if let Some(modal) = self.modals.front_mut()
            && modal.paste(text)
        {
            return;
        }
        self.search = None;
        self.editor.insert_paste(text);
        self.complete();
    }

    pub(super) fn key(&mut self, key: KeyEvent, now: Instant) -> Vec<Effect> {
        let typed = self.typed.replace(now);
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && key.code == KeyCode::Char('z') {
            return vec![Effect::Suspend];
        }
        if is_control && key.code == KeyCode::Char('l') {
            return vec![Effect::Redraw];
        }
        if let Some(page) = self.over.take() {
            self.over = page.key(key);
            return Vec::new();
        }
        // A question that nobody could have read yet gets no answer: the key goes where it was
        // meant to go. Ctrl-C always stops.
        let is_stop = is_control && key.code == KeyCode::Char('c');
        if let Some(modal) = self.modals.front_mut()
            && (is_stop || modal.is_armed(typed, now))
        {
            return match modal.key(key) {
                Came::Ignored | Came::Taken => Vec::new(),
                Came::Answered => {
                    self.modals.pop_front();
                    Vec::new()
                }
                Came::AnsweredAndStop => {
                    self.modals.pop_front();
                    self.stop()
                }
            };
        }
        if self.search.is_some() {
            return self.search_key(key, now);
        }
        if is_control {
            return self.control_key(key, now);
        }
        if key.modifiers.contains(KeyModifiers::ALT) {
            return self.alt_key(key, now);
        }
        self.plain_key(key, now)
    }

    fn control_key(&mut self, key: KeyEvent, now: Instant) -> Vec<Effect> {
        match key.code {
            KeyCode::Char('c') => return self.interrupt_key(now),
            KeyCode::Char('d') if self.editor.is_empty() => {
                return vec![Effect::Send(Command::Quit)];
            }
            KeyCode::Char('d') => self.editor.delete(),
            KeyCode::Char('a') => self.editor.home(),
            KeyCode::Char('e') => self.editor.end(),
            KeyCode::Char('b') => self.editor.left(),
            KeyCode::Char('f') => self.editor.right(),
            KeyCode::Char('p') => {
                self.editor.up();
            }
            KeyCode::Char('n') => {
                self.editor.down();
            }
            KeyCode::Char('h') => self.editor.backspace(),
            KeyCode::Char('w') | KeyCode::Backspace => self.editor.delete_word(),
            KeyCode::Char('u') => self.editor.delete_to_start(),
            KeyCode::Char('k') => self.editor.delete_to_end(),
            KeyCode::Char('y') => self.editor.insert_cut(),
            KeyCode::Char('j') => self.editor.insert("\n"),
            KeyCode::Left => self.editor.word_left(),
            KeyCode::Right => self.editor.word_right(),
            KeyCode::Char('r') => self.search = Some(Search::default()),
            KeyCode::Char('g') => return vec![Effect::Edit(self.editor.whole())],
            KeyCode::Char('o') => self.transcript.toggle_thinking(),
            KeyCode::Char('x') => self.transcript.toggle_panels(),
            KeyCode::Home => self.scroll = usize::MAX,
            KeyCode::End => self.scroll = 0,
            _ => {}
        }
        self.complete();
        Vec::new()
    }

    fn alt_key(&mut self, key: KeyEvent, now: Instant) -> Vec<Effect> {
        match key.code {
            KeyCode::Enter => self.editor.insert("\n"),
            KeyCode::Char('b') | KeyCode::Left => self.editor.word_left(),
            KeyCode::Char('f') | KeyCode::Right => self.editor.word_right(),
            KeyCode::Char('d') => self.editor.delete_word_after(),
            KeyCode::Backspace => self.editor.delete_word(),
            KeyCode::Up => self.chosen = self.transcript.next_panel(self.chosen, true),
            KeyCode::Down => self.chosen = self.transcript.next_panel(self.chosen, false),
            _ => return self.plain_key(KeyEvent::new(key.code, KeyModifiers::NONE), now),
        }
        self.complete();
        Vec::new()
    }

    /// Takes a key that vi has for itself; returns whether it was one.
    fn vi_key(&mut self, key: KeyEvent) -> bool {
        let Some(vi) = &mut self.vi else {
            return false;
        };
        match key.code {
            // A list is closed first, and a turn is stopped where there is no text to edit.
            KeyCode::Esc if self.popup.is_some() || self.chosen.is_some() => return false,
            KeyCode::Esc if self.working.is_some() => {
                if vi.is_normal() || self.editor.is_empty() {
                    return false;
                }
                vi.leave_insert(&mut self.editor);
            }
            KeyCode::Esc if vi.is_normal() => vi.forget_command(),
            KeyCode::Esc => vi.leave_insert(&mut self.editor),
            KeyCode::Char(letter) if vi.is_normal() => vi.key(letter, &mut self.editor),
            KeyCode::Backspace if vi.is_normal() => self.editor.left(),
            _ => return false,
        }
        self.complete();
        true
    }

    fn plain_key(&mut self, key: KeyEvent, now: Instant) -> Vec<Effect> {
        if self.vi_key(key) {
            return Vec::new();
        }
        match key.code {
            KeyCode::Esc => return self.escape(now),
            KeyCode::Enter if key.modifiers.contains(KeyModifiers::SHIFT) => {
                self.editor.insert("\n");
            }
            KeyCode::Enter => return self.enter(now),
            KeyCode::Tab => {
                if !self.take_choice() && !self.editor.expand_paste() {
                    self.complete();
                }
                return Vec::new();
            }
            KeyCode::BackTab => return self.next_mode(now),
            KeyCode::Backspace => self.editor.backspace(),
            KeyCode::Delete => self.editor.delete(),
            KeyCode::Left => self.editor.left(),
            KeyCode::Right => self.editor.right(),
            KeyCode::Home => self.editor.home(),
            KeyCode::End => self.editor.end(),
            KeyCode::Up => {
                if let Some(popup) = &mut self.popup {
                    popup.previous();
                    return Vec::new();
                }
                self.up();
            }
            KeyCode::Down => {
                if let Some(popup) = &mut self.popup {
                    popup.next();
                    return Vec::new();
                }
                self.editor.down();
            }
            KeyCode::PageUp => self.scroll = self.scroll.saturating_add(self.page.max(2) - 1),
            KeyCode::PageDown => self.scroll = self.scroll.saturating_sub(self.page.max(2) - 1),
            KeyCode::Char(c) if !key.modifiers.intersects(WIDE) => {
                self.editor.insert(&c.to_string());
            }
            _ => {}
        }
        self.complete();
        Vec::new()
    }

    fn complete(&mut self) {
        self.popup = Popup::of(&self.editor, &self.files, &self.custom);
    }

    /// Puts what is chosen into the line; returns whether there was something to choose from.
    fn take_choice(&mut self) -> bool {
        let Some(popup) = self.popup.take() else {
            return false;
        };
        if let Some(choice) = popup.chosen() {
            let words = format!("{} ", choice.words);
            self.editor.complete(popup.from, &words);
        }
        true
    }

    fn enter(&mut self, now: Instant) -> Vec<Effect> {
        if let Some(popup) = &self.popup {
            let typed = &self.editor.text()[popup.from..self.editor.cursor()];
            let is_whole = popup.choices.iter().any(|choice| choice.words == typed);
            if !is_whole {
                self.take_choice();
                // A command that was chosen is meant to be run; a file belongs to a message.
                if !self.editor.text().starts_with('/') {
                    return Vec::new();
                }
            }
            self.popup = None;
        }
        if self.editor.is_empty() {
            if let Some(at) = self.chosen {
                self.transcript.toggle_panel(at);
            }
            return Vec::new();
        }
        if self.editor.text().ends_with('\\') && self.editor.cursor() == self.editor.text().len() {
            self.editor.backspace();
            self.editor.insert("\n");
            return Vec::new();
        }
        if self.editor.whole().trim().is_empty() {
            self.editor.clear();
            return Vec::new();
        }
        let message = self.editor.take();
        if let Some(vi) = &mut self.vi {
            vi.forget();
        }
        self.submit(message, now)
    }

    fn escape(&mut self, now: Instant) -> Vec<Effect> {
        if self.popup.take().is_some() {
            return Vec::new();
        }
        if self.chosen.take().is_some() {
            return Vec::new();
        }
        if self.working.is_some() {
            let effects = self.stop();
            if effects.is_empty() {
                self.say("it is being stopped; Ctrl-C leaves at once", now);
            }
            return effects;
        }
        if !self.editor.is_empty() {
            self.editor.clear();
        }
        Vec::new()
    }

    /// Ctrl-C: ends the turn, clears the line, leaves, in that order.
    fn interrupt_key(&mut self, now: Instant) -> Vec<Effect> {
        self.popup = None;
        let again = self
            .pressed
            .replace(now)
            .is_some_and(|at| now.saturating_duration_since(at) < TWICE);
        if let Some(working) = &self.working {
            if working.is_stopping {
                return vec![Effect::Send(Command::Interrupt)];
            }
            return self.stop();
        }
        if !self.editor.is_empty() {
            self.editor.clear();
            self.pressed = None;
            return Vec::new();
        }
        if again {
            return vec![Effect::Send(Command::Quit)];
        }
        self.say("press Ctrl-C again to leave", now);
        Vec::new()
    }

    /// An arrow up at an empty line brings back what waits, so that it can be changed.
    fn up(&mut self) {
        if self.editor.is_empty()
            && let Some(message) = self.queue.take_newest()
        {
            self.editor.set(&message.text);
            return;
        }
        self.editor.up();
    }

    /// Shift-Tab: from auto to plan mode, from there to ask, and back.
    fn next_mode(&mut self, now: Instant) -> Vec<Effect> {
        if self.working.is_some() {
            self.say("the mode changes between turns", now);
            return Vec::new();
        }
        let facts = &self.status.facts;
        let commands = next_mode(&facts.mode, self.status.is_planning, facts.has_plan_mode);
        let Some((first, rest)) = commands.split_first() else {
            return Vec::new();
        };
        for more in rest {
            self.queue.push(slash::queued((*more).to_owned()));
        }
        self.submit_first(first, now)
    }

    fn search_key(&mut self, key: KeyEvent, now: Instant) -> Vec<Effect> {
        let Some(search) = &mut self.search else {
            return Vec::new();
        };
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('r') if is_control => search.older(self.editor.history()),
            KeyCode::Char('c' | 'g') if is_control => self.search = None,
            KeyCode::Esc => self.search = None,
            KeyCode::Backspace => search.backspace(),
            KeyCode::Char(c) if !key.modifiers.intersects(WIDE) => search.type_letter(c),
            _ => {
                if let Some(found) = search.found(self.editor.history()).cloned() {
                    self.editor.set(&found);
                }
                self.search = None;
                if key.code == KeyCode::Enter {
                    return self.enter(now);
                }
            }
        }
        Vec::new()
    }
}

/// Returns the commands that Shift-Tab stands for: from auto to plan mode, from there to ask, and
/// back. Where there is no plan mode, deny has its place.
pub fn next_mode(mode: &str, is_planning: bool, has_plan_mode: bool) -> Vec<&'static str> {
    match mode {
        "ask" if is_planning => vec!["/plan off"],
        _ if is_planning => vec!["/plan off", "/mode ask"],
        "auto" if has_plan_mode => vec!["/plan on"],
        "auto" => vec!["/mode ask"],
        "ask" if !has_plan_mode => vec!["/mode deny"],
        _ => vec!["/mode auto"],
    }
}
