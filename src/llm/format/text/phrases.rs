//! What the words around a call say of it: whether it is one, or talk of one.
//!
//! All of it in small letters, as the texts are in which it is looked for.

/// What tells a person what to do with code.
pub(super) const ADVISING: [&str; 16] = [
    "replace the",
    "replace this",
    "add this",
    "add the following",
    "use this",
    "use the following",
    "use it as",
    "put this",
    "append this",
    "paste this",
    "insert this",
    "change it to",
    "change this",
    "should be",
    "recommend that",
    "fix for",
];

/// What a sentence that tells what a program does is about.
pub(super) const PROGRAMS: [&str; 13] =
    ["class", "code", "function", "helper", "line", "lines", "loop", "method", "module", "program", "script", "snippet", "test"];

/// What introduces an example.
pub(super) const INTRODUCING: [&str; 16] = [
    "for example",
    "an example:",
    "an example of",
    "an example call",
    "as an example",
    "example:",
    "examples:",
    "example call",
    "e.g.",
    "for instance",
    "looks like",
    "look like",
    "format is",
    "hypothetical",
    "sample response",
    "sample call",
];

/// Words that say of a call that it is not to be made, or was made before.
pub(super) const DISOWNING: [&str; 30] = [
    "never",
    "don't",
    "don\u{2019}t",
    "do not",
    "must not",
    "should not",
    "shouldn't",
    "cannot",
    "for reference",
    "made earlier",
    "earlier call",
    "call earlier",
    "ran earlier",
    "used earlier",
    "would",
    "previous call",
    "refuse to",
    "once you",
    "if you confirm",
    "if you agree",
    "i won't run",
    "i won\u{2019}t run",
    "i will not run",
    "i can't run",
    "i can\u{2019}t run",
    "i am not going to",
    "i'm not going to",
    "i\u{2019}m not going to",
    "without your approval",
    "do you want me to",
];

/// Who is forbidden something.
pub(super) const PERSONS: [&str; 3] = ["i", "we", "you"];

/// Words that forbid what the next one says, also of what a tag marks as a call.
pub(super) const FORBIDDING: [&[&str]; 12] = [
    &["never"],
    &["must", "not"],
    &["must", "never"],
    &["mustn't"],
    &["do", "not"],
    &["don't"],
    &["should", "not"],
    &["should", "never"],
    &["shouldn't"],
    &["will", "not"],
    &["will", "never"],
    &["won't"],
];

/// How what is forbidden is named, which follows.
pub(super) const MEANT: [&str; 11] = ["this", "it", "that", "these", "them", "the", "following", "call", "calls", "command", "commands"];

/// What is forbidden so, where it is about a call.
pub(super) const MAKING: [&str; 9] = ["call", "do", "execute", "invoke", "issue", "make", "run", "send", "use"];

/// How a question begins that asks for leave.
pub(super) const ASKING: [&str; 5] = ["shall i ", "should i ", "may i ", "can i ", "could i "];

/// Words of a sentence that shows or reports something to whoever reads it, and does nothing.
pub(super) const SHOWING: [&str; 46] = [
    "as requested",
    "here it is:",
    "here you are:",
    "here you go:",
    "i created",
    "this form",
    "following form",
    "says",
    "said",
    "reads",
    "contains",
    "contain",
    "content of",
    "contents of",
    "code of",
    "code is",
    "text of",
    "line of",
    "lines of",
    "line is",
    "lines are",
    "i added",
    "i changed",
    "i found",
    "i inserted",
    "i put",
    "i replaced",
    "i saw",
    "i updated",
    "i wrote",
    "found in",
    "is written",
    "are written",
    "expected output",
    "fixture",
    "following content",
    "i called",
    "i made this",
    "i made these",
    "log shows",
    "output was",
    "request body",
    "save the following",
    "save this",
    "send this",
    "this content",
];

/// Words that speak of what whoever reads may do, or of how calls are written.
pub(super) const ADDRESSING: [&str; 14] = [
    "call syntax",
    "have written",
    "i've written",
    "i\u{2019}ve written",
    "now contains",
    "you asked for",
    "yourself",
    "you can",
    "you could",
    "you may",
    "you might",
    "you should",
    "you would",
    "show you how",
];

/// Words of a sentence that tells how tools are called, which a call without a mark is an example of.
pub(super) const EXPLAINING: [&str; 41] = [
    "accepts",
    "are called",
    "call has",
    "call is",
    "calls are",
    "calls have",
    "calls look",
    "each call",
    "every call",
    "expects",
    "general form",
    "given as",
    "how to call",
    "how to use",
    "i'd call",
    "i'd write",
    "i\u{2019}d call",
    "i\u{2019}d write",
    "illustration",
    "is called",
    "is invoked",
    "like so",
    "like this",
    "one calls",
    "one sends",
    "one writes",
    "sample",
    "schema",
    "takes",
    "the syntax",
    "to call it",
    "to use it",
    "typical",
    "usage",
    "used as",
    "used with",
    "you call",
    "you send",
    "you write",
    "you'd",
    "you\u{2019}d",
];

/// Words of somebody who does it.
pub(super) const DOING: [&str; 18] = [
    "here are",
    "here is",
    "here's",
    "here\u{2019}s",
    "i call",
    "i check",
    "i create",
    "i do",
    "i list",
    "i look",
    "i make",
    "i open",
    "i read",
    "i run",
    "i send",
    "i try",
    "i use",
    "i write",
];

/// Words that announce what the speaker does next: then it may be about what a file says.
pub(super) const INTENDING: [&str; 23] = [
    "i would like",
    "i\u{2019}d like",
    "so i",
    "i have",
    "next",
    "step",
    "now",
    "let me",
    "let's",
    "let\u{2019}s",
    "let us",
    "i'll",
    "i\u{2019}ll",
    "i will",
    "i am going to",
    "i'm going to",
    "i\u{2019}m going to",
    "i need",
    "i want",
    "i must",
    "i should",
    "we need",
    "i can",
];

/// Words that lead on from one call to the next.
pub(super) const LEADING_ON: [&str; 15] = [
    "after that",
    "afterwards",
    "also",
    "and then",
    "finally",
    "i also",
    "i will",
    "i'll",
    "i\u{2019}ll",
    "let me",
    "let\u{2019}s",
    "let's",
    "next",
    "now",
    "then",
];
