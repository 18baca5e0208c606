//! Tells a call from talk of one, by the words before it.
//!
//! A file may be called an example, and reading it is a call all the same; so the words must speak of one.

use super::phrases::ADDRESSING;
use super::phrases::ADVISING;
use super::phrases::ASKING;
use super::phrases::DISOWNING;
use super::phrases::DOING;
use super::phrases::EXPLAINING;
use super::phrases::FORBIDDING;
use super::phrases::INTENDING;
use super::phrases::INTRODUCING;
use super::phrases::LEADING_ON;
use super::phrases::MAKING;
use super::phrases::MEANT;
use super::phrases::PERSONS;
use super::phrases::PROGRAMS;
use super::phrases::SHOWING;

/// How much of the text before counts, in bytes.
const MAX: usize = 240;

/// How much of a line's beginning counts, in bytes: an indent, a mark.
const HEAD: usize = 24;

/// How the line under way shows that it quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quoted {
    /// It says so: a quotation, a table, a comment, a quotation mark, words that introduce an example.
    Said,
    /// It stands in an indented block of code.
    Code,
    /// It stands in a list, where plans of what is meant stand too.
    List,
    /// The words before it say that it is not meant, was meant before, or is only shown.
    Disowned,
}

/// The last words before what may be a call: the same ones, whatever pieces they came in.
#[derive(Debug, Default)]
pub(super) struct Before {
    /// The end of what was said, and more than counts of it.
    text: String,
    /// How the line under way begins; in a long one that is no longer within the words that count.
    head: String,
    /// The lines before it are a list's: what is indented belongs to it.
    in_list: bool,
    /// A call was shown before, and not made.
    has_shown: bool,
    /// That one stands right before.
    is_shown: bool,
}

impl Before {
    pub(super) fn add(&mut self, text: &str) {
        self.is_shown &= text.trim().is_empty();
        let mut rest = text;
        while let Some(at) = memchr::memchr(b'\n', rest.as_bytes()) {
            self.keep_head(&rest[..at]);
            self.end_line();
            rest = &rest[at + 1..];
        }
        self.keep_head(rest);
        if text.len() >= MAX {
            self.text.clear();
        }
        self.text.push_str(last(text));
        if self.text.len() > 2 * MAX {
            self.text = last(&self.text).to_owned();
        }
    }

    fn keep_head(&mut self, line: &str) {
        let room = HEAD.saturating_sub(self.head.len());
        if room > 0 {
            self.head.push_str(&line[..line.ceil_char_boundary(room)]);
        }
    }

    fn end_line(&mut self) {
        let line = self.head.trim();
        if !line.is_empty() {
            self.in_list = is_item(line) || self.in_list && self.head.starts_with([' ', '\t']);
        }
        self.head.clear();
    }

    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.head.clear();
        self.in_list = false;
    }

    /// Returns whether these words before an object say, in one way or another, that it is only shown; a fence around it is passed over, unless it
    /// says that it holds something else.
    pub(super) fn only_shows(text: &str) -> bool {
        let mut words = text.trim_end();
        let last_line = words.rsplit('\n').next().unwrap_or_default().trim();
        if let Some(language) = last_line.strip_prefix("```") {
            if !matches!(language.trim(), "" | "json" | "tool_call" | "tool") {
                return true;
            }
            words = words[..words.len() - last_line.len()].trim_end();
        } else {
            words = text;
        }
        let mut before = Self::default();
        before.add(words);
        before.introduces_example() || before.quotes() || before.disowns() || before.shows()
    }

    /// Returns whether these words between two calls are one sentence that leads on to the second: it announces it, and tells nothing of what
    /// became of the first.
    pub(super) fn leads_on(text: &str) -> bool {
        let text = text.trim();
        if text.is_empty() || text.len() > MAX {
            return false;
        }
        let mut before = Self::default();
        before.add(text);
        let sentence = before.last_sentence();
        let is_next =
            LEADING_ON.iter().any(|word| sentence.strip_prefix(word).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric)));
        // A clause before the words that announce it is in their way, and so is a sentence.
        let is_all = sentence.len() == text.to_lowercase().len() && !sentence.contains(['\u{3002}', '\n']);
        is_all && is_next && !(before.introduces_example() || before.quotes() || before.disowns() || before.shows() || before.explains())
    }

    /// Returns whether the line under way is a quotation, an item or code, and nothing stands in it yet.
    pub(super) fn is_only_marked(&self) -> bool {
        let line = last(&self.text).rsplit('\n').next().unwrap_or_default();
        self.quotes() && !line.contains(char::is_alphabetic)
    }

    /// Returns whether anything was said.
    pub(super) fn has_words(&self) -> bool {
        !self.text.trim().is_empty()
    }

    /// Returns whether words stand on the line under way, and a blank or a bracket behind them: the sentence goes on.
    pub(super) fn is_mid_line(&self) -> bool {
        let line = last(&self.text).rsplit('\n').next().unwrap_or_default();
        line.ends_with([' ', '\t', '(', '"', '\'', '\u{201c}']) && !line.trim().is_empty()
    }

    /// Returns whether the line under way, or the last one with words where it has none, introduces an example.
    pub(super) fn introduces_example(&self) -> bool {
        introduces(last(&self.text).trim_end().rsplit('\n').next().unwrap_or_default())
    }

    /// Returns whether the words right before end with a colon that presents an example, and announce nothing.
    pub(super) fn presents(&self) -> bool {
        last(&self.text).trim_end().ends_with(':') && self.introduces_example() && !self.intends()
    }

    /// Returns whether the last sentence tells how tools are called, or what one takes.
    pub(super) fn explains(&self) -> bool {
        let sentence = self.last_sentence();
        let has = |words: &[&str]| words.iter().any(|word| has_word(&sentence, word));
        has(&EXPLAINING) && !has(&DOING) && !self.intends()
    }

    /// Returns whether the last sentence says that what follows is not meant: it forbids it, recalls it, or asks for leave.
    pub(super) fn disowns(&self) -> bool {
        let sentence = self.last_sentence();
        if sentence.ends_with('?') && ASKING.iter().any(|begin| sentence.starts_with(begin)) {
            return true;
        }
        let is_wish = sentence.contains("would like");
        DISOWNING.iter().any(|word| has_word(&sentence, word) && !(*word == "would" && is_wish))
    }

    /// Returns whether the last sentence says no more than that what follows is not to be made: "Never run this:", "I must not do the following:".
    pub(super) fn forbids(&self) -> bool {
        let sentence = self.last_sentence().replace('\u{2019}', "'");
        let Some(clause) = sentence.trim_end().strip_suffix(':').filter(|_| last(&self.text).trim_end().ends_with(':')) else {
            return false;
        };
        let words: Vec<&str> = clause.split_whitespace().skip_while(|word| PERSONS.contains(word)).collect();
        let behind = FORBIDDING.iter().find_map(|forbids| words.strip_prefix(*forbids));
        matches!(behind, Some([verb, rest @ ..]) if MAKING.contains(verb) && rest.iter().all(|word| MEANT.contains(word)))
    }

    /// Returns whether the last sentence shows what follows to whoever reads it, as what a file says, what was written, what they can do.
    pub(super) fn shows(&self) -> bool {
        let sentence = self.last_sentence();
        let has = |words: &[&str]| words.iter().any(|word| has_word(&sentence, word));
        has(&ADDRESSING) && !has(&INTENDING) || has(&SHOWING) && !self.intends()
    }

    /// Notes that a call was shown and not made, so that the next one is not taken for what the words before both are about.
    pub(super) fn showed(&mut self) {
        self.has_shown = true;
        self.is_shown = true;
    }

    /// Returns whether a call was shown, and nothing stands between.
    pub(super) fn is_behind_shown(&self) -> bool {
        self.is_shown
    }

    /// Returns whether a call was shown, and no words since announce another one.
    pub(super) fn goes_on_showing(&self) -> bool {
        self.has_shown && !self.intends()
    }

    /// Returns whether the last sentence tells the person what to do with code that follows.
    pub(super) fn advises(&self) -> bool {
        let sentence = self.last_sentence();
        let is_own = ["i", "i'll", "let"].contains(&sentence.split_whitespace().next().unwrap_or_default());
        ADVISING.iter().any(|word| has_word(&sentence, word)) && !is_own && !self.intends()
    }

    /// Returns whether the last sentence tells what a program does, as "the script removes its input:", and not what it needs.
    pub(super) fn describes(&self) -> bool {
        let sentence = self.last_sentence();
        let mut words = sentence.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let is_about = words.next().is_some_and(|first| ["the", "this", "that", "your", "its"].contains(&first));
        // Up to two words may stand between: "the last line of", "your main script".
        let about = words.by_ref().take(3).any(|word| PROGRAMS.contains(&word));
        let does =
            words.next().is_some_and(|word| word.ends_with('s') && !["is", "was", "needs", "has", "lacks", "misses"].contains(&word));
        is_about && about && does && !self.intends()
    }

    fn intends(&self) -> bool {
        let sentence = self.last_sentence();
        let first = sentence.split([' ', ':', ',']).next().unwrap_or_default();
        first.len() > 4 && first.ends_with("ing") || INTENDING.iter().any(|word| has_word(&sentence, word))
    }

    /// Returns whether the line right above is one of a program.
    pub(super) fn follows_code(&self) -> bool {
        let line = last(&self.text).strip_suffix('\n').and_then(|text| text.rsplit('\n').next()).unwrap_or_default();
        let is_indented = line.starts_with("    ") || line.starts_with('\t');
        !line.trim().is_empty() && (is_indented || ["def ", "class ", "import ", ">>> ", "$ "].iter().any(|word| line.starts_with(word)))
    }

    /// Returns whether the text before ends as a sentence does, with nothing behind.
    pub(super) fn ends_sentence(&self) -> bool {
        self.text.ends_with(['.', '!', '?', '\u{2026}'])
    }

    fn last_sentence(&self) -> String {
        let line = last(&self.text).trim_end().rsplit('\n').next().unwrap_or_default().to_lowercase();
        let begin = [". ", "! ", "? "].iter().filter_map(|end| Some(line.rfind(end)? + end.len())).max().unwrap_or_default();
        line[begin..].to_owned()
    }

    /// Returns whether the line under way is one that quotes.
    pub(super) fn quotes(&self) -> bool {
        self.quoted().is_some()
    }

    /// Returns how the line under way quotes, if it does.
    pub(super) fn quoted(&self) -> Option<Quoted> {
        let head = self.head.trim();
        let line = last(&self.text).rsplit('\n').next().unwrap_or_default().trim();
        let is_said = head.starts_with(['>', '|']) || line.contains("<!--") || line.ends_with(['"', '\'', '\u{201c}']) || introduces(line);
        if is_said {
            Some(Quoted::Said)
        } else if is_item(head) || self.in_list && (self.head.starts_with("  ") || self.head.starts_with('\t')) {
            Some(Quoted::List)
        } else if self.head.starts_with('\t') || self.head.starts_with("    ") {
            Some(Quoted::Code)
        } else {
            None
        }
    }

    /// Returns whether a sentence is under way in this line.
    pub(super) fn is_in_sentence(&self) -> bool {
        let line = last(&self.text).rsplit('\n').next().unwrap_or_default().trim_end();
        !line.is_empty() && !line.ends_with(['.', ':', '!', '?', '>', ']'])
    }
}

/// Returns whether a line is an item of a list: `- `, `* `, `1. `, `2) `.
fn is_item(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let after_number = if rest.len() < line.len() { rest.strip_prefix(['.', ')']) } else { None };
    let after_mark = after_number.or_else(|| line.strip_prefix(['-', '*', '+']));
    after_mark.is_some_and(|after| after.is_empty() || after.starts_with(' '))
}

/// Returns the end of a text that counts.
fn last(text: &str) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(MAX))..]
}

fn has_word(text: &str, word: &str) -> bool {
    let is_end = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    text.match_indices(word).any(|(at, _)| is_end(text[..at].chars().next_back()) && is_end(text[at + word.len()..].chars().next()))
}

fn introduces(line: &str) -> bool {
    let line = line.to_lowercase();
    INTRODUCING.iter().any(|word| line.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sentence_that_announces_the_next_call_leads_on_to_it() {
        for words in ["Then I read b:", "\n\nNow the second one:\n\n", "I also need b.", "Let me read b.txt, too."] {
            assert!(Before::leads_on(words), "{words}");
        }
        for words in [
            "",
            " \n",
            "It says yes. Now b:",
            "It is there.",
            "It printed 1, so now I delete it:",
            "The file exists, then I remove it:",
            "OK that worked, now the next one:",
            "The file says:\nNow b:",
            "and then it would look like this:",
            "Next, an example call:",
            "> Now b:",
            "I will not run b:",
        ] {
            assert!(!Before::leads_on(words), "{words}");
        }
    }

    #[test]
    fn a_question_for_leave_disowns_what_follows_and_what_did_not_run_does_not() {
        let disowns = |words: &str| {
            let mut before = Before::default();
            before.add(words);
            before.disowns()
        };
        for words in ["Shall I run the following command?", "It is ready. May I delete it?\n\n", "Should I go on?\n"] {
            assert!(disowns(words), "{words}");
        }
        for words in [
            "The hook did not run, so I check it:",
            "I already ran ls, now I read the file:",
            "Where should I look? Here:",
            "What is in it?",
        ] {
            assert!(!disowns(words), "{words}");
        }
    }

    /// Found by fuzzing: how much was remembered depended on the pieces.
    #[test]
    fn a_long_line_quotes_by_its_beginning_however_it_is_cut() {
        let long = "\u{fffd}x".repeat(200);
        for (begin, quotes) in [("    ", true), ("- ", true), ("> ", true), ("12. ", true), ("\t", true), ("", false), ("word ", false)] {
            let text = format!("before\n{begin}{long}| > - <");
            for step in [1, 3, 7, 100, 239, 240, 241, 500, text.len()] {
                let mut before = Before::default();
                let mut rest = text.as_str();
                while !rest.is_empty() {
                    let (piece, more) = rest.split_at(rest.ceil_char_boundary(step.min(rest.len())));
                    before.add(piece);
                    rest = more;
                }
                assert_eq!((before.quotes(), last(&before.text), before.head.len() >= HEAD), (quotes, last(&text), true), "{begin} {step}");
            }
        }
    }
}
