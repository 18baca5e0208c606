//! Parses what a token begins: a block of calls, a thought, a header.

use super::Parser;
use super::State;
use super::Step;
use crate::format::text::channel;
use crate::format::text::channel::HeaderTarget;
use crate::format::text::collector::TextKind;
use crate::format::text::cursor::Cursor;
use crate::format::text::cursor::Read;
use crate::format::text::cursor::Stop;
use crate::format::text::fence::Certainty;
use crate::format::text::markers;
use crate::format::text::openers;
use crate::format::text::openers::Opener;
use crate::format::text::parsed_calls::ParsedCalls;
use crate::format::text::turns;
use crate::format::text::unreadable_calls::UnreadableBlock;
use crate::format::text::untagged;

/// How many blocks that could not be parsed are remembered.
const MAX_UNREAD: usize = 8;

impl Parser {
    pub(super) fn opener(&mut self, text: &str, last: bool) -> Step {
        let begin = self.at;
        let mut c = Cursor::new(text, begin, last);
        let opener = openers::find(&mut c);
        self.charge(&c);
        match opener {
            Err(_) => Step::Wait,
            Ok(None) if last && openers::is_cut_off(&text[begin..]) => self.cut_off(text, None),
            // The beginning of a token that ends a call or the turn: not part of the content.
            Ok(None) if last && self.out.has_calls() && openers::is_begun(&text[begin..]) => {
                self.out.noise(&text[begin..]);
                self.go(text.len())
            }
            // A list of calls may be untagged.
            Ok(None)
                if text.as_bytes()[begin] == b'[' && self.line.is_blank() && !self.is_closed =>
            {
                self.open(text, last)
            }
            Ok(None) => self.plain(text, c.seen()),
            Ok(Some(Opener::Section)) if may_become_list(&text[c.at()..]) && !last => {
                self.spent += text.len() - begin;
                self.work += (text.len() - begin) as u64;
                Step::Wait
            }
            Ok(Some(Opener::Section))
                if may_become_list(&text[c.at()..]) && !self.out.has_calls() =>
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
                self.charge(&c);
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
                // It is only mentioned, and so is its closing token.
                self.has_thought = true;
                self.plain(text, c.at())
            }
            Ok(Some(Opener::ThoughtEnd)) if self.n_nested > 0 && !self.out.has_calls() => {
                // The previous closing token ended a nested thought: what came since is thought
                // too.
                self.n_nested -= 1;
                self.out.retract_as_thought();
                self.thought_ended();
                self.go(c.at())
            }
            Ok(Some(Opener::ThoughtEnd)) if self.has_thought => self.plain(text, c.at()),
            // Its opening token was in the prompt: everything before it is a thought, whatever it
            // contains.
            Ok(Some(Opener::ThoughtEnd)) => {
                self.out.retract_as_thought();
                self.thought_ended();
                self.go(c.at())
            }
            Ok(Some(Opener::Recipient)) => {
                let recipient = c.at();
                let is_everybody = take_all_header(&mut c);
                self.charge(&c);
                match is_everybody {
                    Err(_) => Step::Wait,
                    Ok(true) => {
                        self.out.drop_noise();
                        self.out.text(TextKind::Content, "\n\n");
                        self.take_all_header(c.at())
                    }
                    Ok(false) => {
                        c.go(recipient);
                        self.block(text, Opener::Recipient, c, last)
                    }
                }
            }
            Ok(Some(Opener::Channel)) => {
                let mut found = ParsedCalls::default();
                let follows = channel::read(&mut c, &self.tools, &mut found);
                self.charge(&c);
                match follows {
                    Ok(HeaderTarget::Call) => {
                        self.accept(text, found.calls, Certainty::Certain, found.end)
                    }
                    Ok(HeaderTarget::Answer) => {
                        self.out.drop_noise();
                        self.out.text(TextKind::Content, "\n\n");
                        self.go(c.at())
                    }
                    Ok(HeaderTarget::Thought) => {
                        self.out.drop_noise();
                        self.state = State::Thought(channel::THOUGHT_ENDS);
                        self.has_thought = true;
                        self.go(c.at())
                    }
                    Err(Stop::NoMatch) => {
                        if found.begun.is_some() {
                            self.could_not_read(&text[begin..], 0, Opener::Channel);
                        }
                        self.plain(text, c.seen())
                    }
                    Err(Stop::NeedsMore) if last => self.cut_off(text, found.begun),
                    Err(Stop::NeedsMore) => Step::Wait,
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

    /// Parses the calls after an opener.
    pub(super) fn block<'t>(
        &mut self,
        text: &'t str,
        opener: Opener,
        mut c: Cursor<'t>,
        last: bool,
    ) -> Step {
        let begin = self.at;
        let behind = c.at();
        let mut found = ParsedCalls::default();
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
        self.charge(&c);
        // No quote is missing where tags hold the arguments, and the contents of such a call must
        // not be searched for others.
        let closed = closed.filter(|_| !found.is_tagged);
        match result {
            Err(Stop::NeedsMore) if !last && closed.is_none() => Step::Wait,
            Err(Stop::NeedsMore) if found.calls.is_empty() => match closed {
                Some(_) if !self.is_bounded => {
                    // A missing quote makes the rest of the text look like one string.
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
            Err(Stop::NeedsMore) => {
                let end = found.end;
                let begun = found.begun.take();
                self.accept(text, found.calls, Certainty::Certain, end);
                match closed {
                    // Only its own text was examined; what follows it is still to come.
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
                    // It continued beyond its own end: a quote is missing here too.
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

    /// Records a block that could not be parsed.
    fn could_not_read(&mut self, text: &str, behind: usize, opener: Opener) {
        if self.unread.len() < MAX_UNREAD && self.state == State::Text {
            self.unread.extend(UnreadableBlock::new(
                text,
                behind,
                opener,
                self.line.is_blank(),
            ));
        }
    }
}

/// Consumes the recipient `all` after Functionary's mark, and the token that begins its text.
fn take_all_header(c: &mut Cursor) -> Read<bool> {
    c.spaces();
    Ok(untagged::skip_all_header(c, "")? && c.take(markers::CONTENT)?)
}

/// Returns whether what follows the opening token of a list of calls may still become one.
fn may_become_list(rest: &str) -> bool {
    let rest = rest.trim_ascii_start();
    rest.is_empty() || openers::is_begun(rest)
}
