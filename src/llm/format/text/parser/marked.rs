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
use crate::format::text::example::Before;
use crate::format::text::example::Quoted;
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
            Ok(None) if text.as_bytes()[begin] == b'[' && self.line.is_blank() && !self.is_closed => self.open(text, last),
            Ok(None) => self.plain(text, c.seen()),
            Ok(Some(Opener::Section)) if is_nothing_yet(&text[c.at()..]) && !last => {
                self.spent += text.len() - begin;
                self.work += (text.len() - begin) as u64;
                Step::Wait
            }
            Ok(Some(Opener::Section)) if is_nothing_yet(&text[c.at()..]) && !self.out.has_calls() => self.cut_off(text, None),
            Ok(Some(Opener::Section | Opener::Noise)) => {
                self.out.noise(&text[begin..c.at()]);
                self.has_ended = true;
                self.go(c.at())
            }
            Ok(Some(Opener::Other)) => {
                let mut c = Cursor::new(text, begin, last);
                let is_spoken_of = if self.has_ended || !self.before.is_mid_line() { Ok(false) } else { turns::is_spoken_of(&mut c) };
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
                // The end before this one was that of a thought within it: what came since is thought too.
                self.n_nested -= 1;
                self.out.rethink();
                self.thought_ended();
                self.go(c.at())
            }
            Ok(Some(Opener::ThoughtEnd)) => {
                let end = c.at();
                let ends = if self.line.is_blank() { Ok(true) } else { ends_thought(&mut c, &self.before) };
                self.pay(&c);
                let Ok(ends) = ends else { return Step::Wait };
                if self.has_thought || self.out.has_calls() || !ends || self.before.is_only_marked() {
                    return self.plain(text, end);
                }
                self.out.rethink();
                self.thought_ended();
                self.go(end)
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
                        self.within.clear();
                        self.block(text, Opener::Recipient, c, last)
                    }
                }
            }
            Ok(Some(Opener::Channel)) => {
                let mut found = Found::default();
                let follows = channel::read(&mut c, &self.tools, &mut found);
                self.pay(&c);
                if let Ok(follows) = &follows {
                    self.is_final = *follows == Follows::Final;
                }
                match follows {
                    Ok(Follows::Call) => {
                        self.within.clear();
                        self.certain(text, found, last)
                    }
                    Ok(Follows::Answer | Follows::Final) => {
                        self.within.clear();
                        self.out.drop_noise();
                        self.out.text(Place::Content, "\n\n");
                        self.before.clear();
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
            Ok(Some(Opener::Calls(closers))) if closers == openers::TOOLS && !text[c.at()..].trim_ascii_start().starts_with(['{', '[']) => {
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
    pub(super) fn block<'t>(&mut self, text: &'t str, opener: Opener, mut c: Cursor<'t>, last: bool) -> Step {
        let begin = self.at;
        let behind = c.at();
        let quoted = self.quoted();
        let mut found = Found::default();
        let closed = if last || self.is_bounded { self.end_of_block(text, behind, opener) } else { None };
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
        // No quote is missing where tags hold the arguments, and what such a call may hold is not to be looked at for others.
        let closed = closed.filter(|_| !found.is_tagged);
        match result {
            Err(Stop::More) if !last && closed.is_none() => Step::Wait,
            Err(Stop::More) if found.calls.is_empty() => match closed {
                Some(_) if !self.is_bounded => {
                    // A quote is missing somewhere, so that the text seems to be one string to its end.
                    self.is_bounded = true;
                    Step::On
                }
                Some(end) => {
                    self.without_its_end(&text[begin..end], found.begun);
                    self.plain(text, end)
                }
                None if quoted.is_some() => self.plain(text, text.len()),
                None if self.out.has_calls() && text[behind..].trim().is_empty() => {
                    self.out.noise(&text[begin..]);
                    self.go(text.len())
                }
                None => self.cut_off(text, found.begun),
            },
            Err(Stop::More) => {
                let end = found.end;
                let begun = found.begun.take();
                match quoted.or_else(|| (self.is_told() || self.is_forbidden()).then_some(Quoted::Disowned)) {
                    Some(quoted) if self.state == State::Text => self.quote(text, found, quoted),
                    Some(_) => self.forbid(text, found),
                    None => self.accept(text, found.calls, Certainty::Certain, end),
                };
                match closed {
                    // Only its own text was looked at; what is behind it is still to come.
                    Some(bound) if self.is_bounded => self.plain(text, bound.max(end)),
                    _ if text[end..].trim().is_empty() => self.go(text.len()),
                    _ if quoted.is_some() => self.plain(text, text.len()),
                    _ => self.cut_off(text, begun),
                }
            }
            _ if found.calls.is_empty() => match self.end_of_block(text, behind, opener).filter(|end| *end <= c.seen()) {
                Some(end) if !self.is_bounded => {
                    // It went on beyond its own end: a quote is missing here too.
                    self.is_bounded = true;
                    self.without_its_end(&text[begin..end], found.begun);
                    self.plain(text, end)
                }
                _ => {
                    self.could_not_read(&text[begin..], behind - begin, opener);
                    self.plain(text, c.seen())
                }
            },
            _ => self.certain(text, found, last),
        }
    }

    /// Returns where a block ends by its first closing token.
    fn end_of_block(&mut self, text: &str, behind: usize, opener: Opener) -> Option<usize> {
        let Opener::Calls(closers) = opener else { return None };
        self.ends.first(text, behind, closers, &mut self.work)
    }

    /// Takes calls that are marked as such, unless they are mentioned within a sentence about them.
    fn certain(&mut self, text: &str, found: Found, last: bool) -> Step {
        // Its own end says where it ends, whatever follows.
        let has_end = self.line.is_blank() && text[self.at..].starts_with(openers::LFM2);
        let mut next = Behind::Nothing;
        if self.state == State::Text && !has_end {
            let mut c = Cursor::new(text, found.end, last);
            let behind = behind(&mut c);
            self.pay(&c);
            let Ok(behind) = behind else { return Step::Wait };
            next = behind;
        }
        let end = found.end;
        if let Some(quoted) = self.shown() {
            let step = self.quote(text, found, quoted);
            let (Behind::Call(at) | Behind::Other(at)) = next else { return step };
            // What is joined to it is shown with it.
            let step = self.plain(text, at);
            self.before.showed();
            return step;
        }
        match next {
            Behind::Words | Behind::Other(_) => {
                let raw = &text[self.at..end];
                let is_within = self.before.is_in_sentence();
                let step = self.plain(text, end);
                if !is_within {
                    // Another one that follows may need this one.
                    self.is_in_doubt = true;
                    self.out.mention(raw, found.calls);
                }
                step
            }
            Behind::Call(at) => {
                self.accept(text, found.calls, Certainty::Certain, end);
                self.out.noise(&text[end..at]);
                self.go(at)
            }
            Behind::Nothing if self.is_forbidden() => self.forbid(text, found),
            Behind::Nothing => {
                let had_calls = self.out.has_calls();
                let step = self.accept(text, found.calls, Certainty::Certain, end);
                self.marks_ends = has_end && !had_calls;
                step
            }
        }
    }

    /// Returns how the words before calls that are marked as such show them, if they do.
    fn shown(&self) -> Option<Quoted> {
        if let Some(quoted) = self.quoted() {
            return Some(quoted);
        }
        // Behind words in the channel of gpt-oss that holds the answer.
        let is_behind_answer = self.state == State::Text && self.is_final && self.before.has_words();
        // "It looks like this:" speaks of a call, tag or no tag.
        let is_presented = self.state == State::Text && self.line.is_blank() && self.before.presents();
        let is_forbidden = self.state == State::Text && self.is_forbidden();
        (self.is_told() || is_behind_answer || is_presented || is_forbidden).then_some(Quoted::Disowned)
    }

    /// Returns whether the words right before plainly forbid what is marked as a call.
    fn is_forbidden(&self) -> bool {
        match self.state {
            State::Text => self.line.is_blank() && self.before.forbids(),
            State::Thought(_) => self.pondered.forbids(),
        }
    }

    /// Takes calls of a thought whose own words forbid them: they may be asked about where nothing else comes of it.
    fn forbid(&mut self, text: &str, found: Found) -> Step {
        self.out.forbidden(&text[self.at..found.end], found.calls);
        self.go(found.end)
    }

    /// Notes a block that could not be read, unless it stands where examples do.
    pub(super) fn could_not_read(&mut self, text: &str, behind: usize, opener: Opener) {
        let is_example = self.state != State::Text || self.before.quoted().is_some() || self.before.introduces_example();
        if self.unread.len() < MAX_UNREAD && !is_example {
            self.unread.push(Unread::new(text, behind, opener, self.line.is_blank()));
        }
    }

    /// Notes a call without its end, unless it stands where examples do.
    fn without_its_end(&mut self, rest: &str, begun: Option<String>) {
        if self.quoted().is_none() {
            self.note_incomplete(rest, begun);
        }
    }
}

/// Steps over the name of everybody, behind Functionary's mark of whom words are for, and what begins them.
fn for_everybody(c: &mut Cursor) -> Read<bool> {
    c.spaces();
    Ok(bare::everybody(c, "")? && c.take(markers::CONTENT)?)
}

/// Returns whether a closing tag behind words ends what was a thought from the beginning: nothing follows it in its line, or a call does
/// and the words quote nothing, or it stands between two sentences without a blank, where nobody speaks of it.
fn ends_thought(c: &mut Cursor, before: &Before) -> Read<bool> {
    let next = c.peek_or_end()?;
    if matches!(next, None | Some(b'\n')) || next.is_some_and(|byte| byte.is_ascii_alphanumeric()) && before.ends_sentence() {
        return Ok(true);
    }
    let quotes = before.quotes();
    loop {
        c.spaces();
        if quotes || !c.peek_or_end()?.is_some_and(openers::may_begin) {
            return Ok(false);
        }
        if c.take_any(&openers::ANSWERS)? {
            return Ok(true);
        }
        match openers::find(c)? {
            Some(Opener::Section | Opener::Noise) => {}
            // The answer ends there.
            Some(Opener::Other) => return Ok(true),
            other => return Ok(other.is_some_and(Opener::begins_call)),
        }
    }
}

/// Returns whether all there is behind the beginning of a list of calls may still become one.
fn is_nothing_yet(rest: &str) -> bool {
    let rest = rest.trim_ascii_start();
    rest.is_empty() || openers::is_begun(rest)
}

/// What stands behind a call.
enum Behind {
    Nothing,
    /// The sentence goes on in the same line.
    Words,
    /// Another call, which begins here; no more than what joins the two stands between.
    Call(usize),
    /// Another call, which begins here, in the place of the first: `or`.
    Other(usize),
}

fn behind(c: &mut Cursor) -> Read<Behind> {
    loop {
        c.run(|byte| matches!(byte, b' ' | b'\t'))?;
        let next = c.peek_or_end()?;
        if !next.is_some_and(openers::may_begin) {
            let goes_on = next.is_some_and(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii() || b",.;:!?\"')".contains(&byte));
            return if goes_on { joined(c) } else { Ok(Behind::Nothing) };
        }
        match openers::find(c)? {
            Some(Opener::Section | Opener::Noise) => {}
            other if other.is_none() && !matches!(next, Some(b'<' | b']')) => return Ok(Behind::Words),
            _ => return Ok(Behind::Nothing),
        }
    }
}

/// Steps over what joins two calls: `,` or `;`, and `and`, `then` or `or`.
fn joined(c: &mut Cursor) -> Read<Behind> {
    let is_blank = |byte: u8| byte.is_ascii_whitespace();
    let _ = c.take(",")? || c.take(";")?;
    let mut is_other = false;
    for word in ["and", "or", "then"] {
        c.run(is_blank)?;
        if c.take(word)? {
            if c.run(is_blank)?.is_empty() {
                return Ok(Behind::Words);
            }
            is_other |= word == "or";
        }
    }
    let at = c.at();
    let begins = c.peek_or_end()?.is_some_and(openers::may_begin) && openers::find(c)?.is_some_and(Opener::begins_call);
    Ok(match (begins, is_other) {
        (false, _) => Behind::Words,
        (true, true) => Behind::Other(at),
        (true, false) => Behind::Call(at),
    })
}
