//! What a token begins: a block of calls, a thought, a header.

use super::Parser;
use super::State;
use super::Step;
use crate::format::text::bare;
use crate::format::text::channel;
use crate::format::text::channel::Follows;
use crate::format::text::collector::Place;
use crate::format::text::cursor::Cursor;
use crate::format::text::cursor::Read;
use crate::format::text::cursor::Stop;
use crate::format::text::family::Found;
use crate::format::text::fence::Certainty;
use crate::format::text::markers;
use crate::format::text::openers;
use crate::format::text::openers::Opener;
use crate::format::text::turns;
use crate::format::text::unread::Unread;

/// How many blocks that could not be read are kept in mind.
const MAX_UNREAD: usize = 8;

impl Parser {
    pub(super) fn opener(&mut self, text: &str, last: bool) -> Step {
        let begin = self.at;
        let mut c = Cursor::new(text, begin, last);
        let opener = openers::find(&mut c);
        self.pay(&c);
        match opener {
            Err(_) => Step::Wait,
            Ok(None) if last && openers::is_cut_off(&text[begin..]) => self.cut_off(text, None),
            // The beginning of what ends a call, or the turn: no word of the model's.
            Ok(None) if last && self.out.has_calls() && openers::is_begun(&text[begin..]) => {
                self.out.noise(&text[begin..]);
                self.go(text.len())
            }
            // A list of calls may stand in the open.
            Ok(None)
                if text.as_bytes()[begin] == b'[' && self.line.is_blank() && !self.is_closed =>
            {
                self.open(text, last)
            }
            Ok(None) => self.plain(text, c.seen()),
            Ok(Some(Opener::Section)) if is_nothing_yet(&text[c.at()..]) && !last => {
                self.spent += text.len() - begin;
                self.work += (text.len() - begin) as u64;
                Step::Wait
            }
            Ok(Some(Opener::Section))
                if is_nothing_yet(&text[c.at()..]) && !self.out.has_calls() =>
            {
                self.cut_off(text, None)
            }
            Ok(Some(Opener::Section | Opener::Noise)) => {
                self.out.noise(&text[begin..c.at()]);
                self.has_ended = true;
                self.go(c.at())
            }
            Ok(Some(Opener::Other)) => {
                let mut c = Cursor::new(text, begin, last);
                let is_spoken_of = if self.has_ended || !self.is_mid_line() {
                    Ok(false)
                } else {
                    turns::is_spoken_of(&mut c)
                };
                self.pay(&c);
                match is_spoken_of {
                    Err(_) => Step::Wait,
                    Ok(true) => self.plain(text, c.at()),
                    Ok(false) => self.over(text),
                }
            }
            Ok(Some(Opener::Thought(closers))) if self.may_think => {
                self.state = State::Thought(closers);
                self.has_thought = true;
                self.go(c.at())
            }
            Ok(Some(Opener::Thought(_))) => {
                // It is spoken of, and so is its end.
                self.has_thought = true;
                self.plain(text, c.at())
            }
            Ok(Some(Opener::ThoughtEnd)) if self.n_nested > 0 && !self.out.has_calls() => {
                // The end before this one was that of a thought within it: what came since is
                // thought too.
                self.n_nested -= 1;
                self.out.rethink();
                self.thought_ended();
                self.go(c.at())
            }
            Ok(Some(Opener::ThoughtEnd)) if self.has_thought => self.plain(text, c.at()),
            // Its beginning stood in the prompt: all before it is thought, whatever that holds.
            Ok(Some(Opener::ThoughtEnd)) => {
                self.out.rethink();
                self.thought_ended();
                self.go(c.at())
            }
            Ok(Some(Opener::Recipient)) => {
                let recipient = c.at();
                let is_everybody = for_everybody(&mut c);
                self.pay(&c);
                match is_everybody {
                    Err(_) => Step::Wait,
                    Ok(true) => {
                        self.out.drop_noise();
                        self.out.text(Place::Content, "\n\n");
                        self.for_everybody(c.at())
                    }
                    Ok(false) => {
                        c.go(recipient);
                        self.block(text, Opener::Recipient, c, last)
                    }
                }
            }
            Ok(Some(Opener::Channel)) => {
                let mut found = Found::default();
                let follows = channel::read(&mut c, &self.tools, &mut found);
                self.pay(&c);
                match follows {
                    Ok(Follows::Call) => {
                        self.accept(text, found.calls, Certainty::Certain, found.end)
                    }
                    Ok(Follows::Answer) => {
                        self.out.drop_noise();
                        self.out.text(Place::Content, "\n\n");
                        self.go(c.at())
                    }
                    Ok(Follows::Thought) => {
                        self.out.drop_noise();
                        self.state = State::Thought(channel::THOUGHT_ENDS);
                        self.has_thought = true;
                        self.go(c.at())
                    }
                    Err(Stop::No) => {
                        if found.begun.is_some() {
                            self.could_not_read(&text[begin..], 0, Opener::Channel);
                        }
                        self.plain(text, c.seen())
                    }
                    Err(Stop::More) if last => self.cut_off(text, found.begun),
                    Err(Stop::More) => Step::Wait,
                }
            }
            Ok(Some(Opener::Calls(closers)))
                if closers == openers::TOOLS
                    && !text[c.at()..].trim_ascii_start().starts_with(['{', '[']) =>
            {
                if text[c.at()..].trim_ascii().is_empty() && !last {
                    self.spent += text.len() - begin;
                    self.work += (text.len() - begin) as u64;
                    return Step::Wait;
                }
                self.plain(text, c.at())
            }
            Ok(Some(opener)) => self.block(text, opener, c, last),
        }
    }

    /// Reads the calls behind an opener.
    pub(super) fn block<'t>(
        &mut self,
        text: &'t str,
        opener: Opener,
        mut c: Cursor<'t>,
        last: bool,
    ) -> Step {
        let begin = self.at;
        let behind = c.at();
        let mut found = Found::default();
        let closed = if last || self.is_bounded {
            self.end_of_block(text, behind, opener)
        } else {
            None
        };
        if self.is_bounded && matches!(opener, Opener::Calls(_)) {
            match closed {
                Some(bound) => c = Cursor::new(&text[..bound], behind, true),
                None if last => {}
                None => {
                    self.spent += text.len() - begin;
                    self.work += (text.len() - begin) as u64;
                    return Step::Wait;
                }
            }
        }
        let mut c = c.flat(self.is_flat);
        let result = openers::read(&mut c, opener, begin, &self.tools, &mut found);
        self.is_flat |= c.is_unbalanced();
        self.pay(&c);
        // No quote is missing where tags hold the arguments, and what such a call may hold is not
        // to be looked at for others.
        let closed = closed.filter(|_| !found.is_tagged);
        match result {
            Err(Stop::More) if !last && closed.is_none() => Step::Wait,
            Err(Stop::More) if found.calls.is_empty() => match closed {
                Some(_) if !self.is_bounded => {
                    // A quote is missing somewhere, so that the text seems to be one string to its
                    // end.
                    self.is_bounded = true;
                    Step::On
                }
                Some(end) => {
                    self.note_incomplete(&text[begin..end], found.begun);
                    self.plain(text, end)
                }
                None if self.out.has_calls() && text[behind..].trim().is_empty() => {
                    self.out.noise(&text[begin..]);
                    self.go(text.len())
                }
                None => self.cut_off(text, found.begun),
            },
            Err(Stop::More) => {
                let end = found.end;
                let begun = found.begun.take();
                self.accept(text, found.calls, Certainty::Certain, end);
                match closed {
                    // Only its own text was looked at; what is behind it is still to come.
                    Some(bound) if self.is_bounded => self.plain(text, bound.max(end)),
                    _ if text[end..].trim().is_empty() => self.go(text.len()),
                    _ => self.cut_off(text, begun),
                }
            }
            _ if found.calls.is_empty() => match self
                .end_of_block(text, behind, opener)
                .filter(|end| *end <= c.seen())
            {
                Some(end) if !self.is_bounded => {
                    // It went on beyond its own end: a quote is missing here too.
                    self.is_bounded = true;
                    self.note_incomplete(&text[begin..end], found.begun);
                    self.plain(text, end)
                }
                _ => {
                    self.could_not_read(&text[begin..], behind - begin, opener);
                    self.plain(text, c.seen())
                }
            },
            _ => self.accept(text, found.calls, Certainty::Certain, found.end),
        }
    }

    /// Returns where a block ends by its first closing token.
    fn end_of_block(&mut self, text: &str, behind: usize, opener: Opener) -> Option<usize> {
        let Opener::Calls(closers) = opener else {
            return None;
        };
        self.ends.first(text, behind, closers, &mut self.work)
    }

    /// Notes a block that could not be read.
    fn could_not_read(&mut self, text: &str, behind: usize, opener: Opener) {
        if self.unread.len() < MAX_UNREAD && self.state == State::Text {
            self.unread
                .extend(Unread::new(text, behind, opener, self.line.is_blank()));
        }
    }
}

/// Steps over the name of everybody, behind Functionary's mark of whom words are for, and what
/// begins them.
fn for_everybody(c: &mut Cursor) -> Read<bool> {
    c.spaces();
    Ok(bare::everybody(c, "")? && c.take(markers::CONTENT)?)
}

/// Returns whether all there is behind the beginning of a list of calls may still become one.
fn is_nothing_yet(rest: &str) -> bool {
    let rest = rest.trim_ascii_start();
    rest.is_empty() || openers::is_begun(rest)
}
