//! What is read once more where it is run: a function that is called, and a file that the text wrote itself.

use super::CALLED_MAX;
use super::DEPTH_MAX;
use super::Reader;
use super::TOO_MUCH;
use super::n_given;
use super::shifted;
use crate::shell::Command;
use crate::shell::Redirection;
use crate::shell::Word;
use crate::shell::files::How;
use crate::shell::files::Ran;
use crate::shell::runs;
use crate::shell::written;

/// Why a file of its own is in doubt.
const UNREAD: &str = "what the text writes into it cannot be read, and it is run";
/// Why a function is in doubt.
const TOO_MUCH_CALLED: &str = "too much is called for all of it to be read";

/// What a call hides as long as it is read.
struct Hidden {
    values: Vec<(String, Option<String>)>,
    given_words: usize,
}

impl Reader {
    /// Reads what a function does where it is called, with the words that it is given.
    pub(super) fn call(&mut self, command: &Command, depth: usize) {
        let Some(name) = command.program().and_then(Word::known) else { return };
        // Without a variable in it, it does what it does where it stands, but for where that goes.
        let is_written = command.redirections.iter().any(Redirection::writes);
        let Some(text) = self.bodies.get(name).filter(|body| is_written || body.contains('$')).cloned() else { return };
        if self.calls == 0 || text.len() > self.called_left {
            return self.doubt(name, TOO_MUCH_CALLED);
        }
        if depth >= DEPTH_MAX || !self.may_call(name, &text) {
            return;
        }
        self.count_call(&text);
        for (n_gone, words) in shifted::given(&text, &command.words).into_iter().enumerate() {
            if n_gone > 0 && !self.count_shift() {
                return self.doubt(name, TOO_MUCH_CALLED);
            }
            let kept = self.begin_call(name, &words, n_given(&command.words));
            let (start, n_into) = (self.script.commands.len(), self.into.len());
            self.into.extend(command.redirections.iter().filter(|redirection| redirection.writes()).cloned());
            self.text(&text, depth + 1, command.shell);
            self.into.truncate(n_into);
            self.script.commands[start..].iter_mut().for_each(|command| command.is_certain = false);
            self.end_call(kept);
        }
    }

    /// Reads what stands in a file that the text wrote, where a shell runs it.
    pub(super) fn run(&mut self, ran: Ran, around: usize, depth: usize) {
        let Ran { file, held, words, how } = ran;
        for text in held.texts().filter(|text| how != How::ByItsName || runs::is_for_shell(text)) {
            // One that runs itself does nothing new.
            if self.calling.contains(&file) {
                return;
            }
            if depth >= DEPTH_MAX || !self.may_call(&file, text) || text.len() > self.called_left {
                return self.doubt(&file, TOO_MUCH);
            }
            // Without words of its own, what is read in is given those of the shell.
            let is_same = how == How::Sourced && words.len() < 2;
            let given_words = if is_same { self.given_words } else { n_given(&words) };
            let shell = if how == How::Sourced { around } else { self.shell_within(around) };
            self.count_call(text);
            for (n_gone, words) in shifted::given(text, &words).into_iter().enumerate() {
                if n_gone > 0 && !self.count_shift() {
                    return self.doubt(&file, TOO_MUCH);
                }
                let kept = self.begin_call(&file, &words, given_words);
                self.text_within(text, depth + 1, shell, how != How::Sourced);
                self.end_call(kept);
            }
        }
        if held.may_be_more() {
            self.doubt(&file, UNREAD);
        }
    }

    /// Returns what a command is given of the files that the text wrote, and takes for a program or for rules.
    pub(super) fn given(&mut self, command: &Command, ran: Option<&Ran>) -> Vec<String> {
        let mut programs = self.files.programs(command, self.piping.as_ref());
        // The first line names a program, and the rest may be in the language of that.
        programs.extend(ran.filter(|ran| ran.how == How::ByItsName).map(|ran| (ran.file.clone(), ran.held.first_lines())));
        let mut given = Vec::new();
        // `make -f <(printf …)`
        let told = command.words.iter().filter(|word| runs::is_make(command) && word.text.starts_with("<("));
        given.extend(told.take(self.calls).filter_map(written::substituted).map(|said| said.text));
        self.calls -= given.len();
        for (file, held) in programs {
            if held.may_be_more() {
                self.doubt(&file, UNREAD);
            }
            for text in held.texts() {
                if self.calls == 0 {
                    self.doubt(&file, TOO_MUCH);
                    return given;
                }
                self.calls -= 1;
                given.push(text.to_owned());
            }
        }
        given
    }

    fn may_call(&self, name: &str, text: &str) -> bool {
        // One that calls itself does nothing new.
        self.calls > 0 && text.len() <= self.left.min(CALLED_MAX) && !self.calling.iter().any(|calling| calling == name)
    }

    fn count_call(&mut self, text: &str) {
        self.calls -= 1;
        self.called_left -= text.len();
    }

    /// Counts a text that is read once more with fewer words, which takes nothing from the calls behind it.
    fn count_shift(&mut self) -> bool {
        let left = self.shifts_left.checked_sub(1);
        self.shifts_left = left.unwrap_or_default();
        left.is_some()
    }

    fn begin_call(&mut self, name: &str, words: &[Word], given_words: usize) -> Hidden {
        self.calling.push(name.to_owned());
        Hidden {
            values: self.values.call(words, self.script.commands.len().saturating_sub(1)),
            given_words: std::mem::replace(&mut self.given_words, given_words),
        }
    }

    fn end_call(&mut self, hidden: Hidden) {
        self.values.come_back(hidden.values);
        self.given_words = hidden.given_words;
        self.calling.pop();
    }
}
