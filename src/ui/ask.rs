use std::borrow::Cow;
use std::fmt::Write as _;
use std::io;
use std::io::Write;

use sha2::Digest;
use sha2::Sha256;
use tokio_util::sync::CancellationToken;

use podbay_event::Answer;
use podbay_event::Answered;
use podbay_event::Asked;
use podbay_event::Capability;
use podbay_event::Lasting;

use super::Keyboard;
use super::Paint;
use super::Typed;
use super::answer::TRIES;
use super::answer::answer;
use super::arguments::Arguments;
use super::look_alike::unmask;
use super::padding;
use super::text;

/// Longest form of what an answer that lasts would be about: all of it stands above.
const WHAT_MAX: usize = 300;
/// Most characters of a reason; whoever has more to say says it in a message.
const REASON_MAX: usize = 2000;

/// A question of so many lines is shown whole at once; of a longer one so many at its beginning and
/// at its end, where all stands that is no argument.
const LINES_WHOLE: usize = 40;
const LINES_HEAD: usize = 18;
const LINES_TAIL: usize = 14;
const EXPAND: &str = "e = show all of it\n";

/// What a yes to all edits covers.
const EDITS: &str = "s holds for edit_file, multi_edit, apply_patch, edit_lines and write_file in this project, not for commands, and for no protected name";

const PADDED: &str = "Careful: it holds long runs of blanks or empty lines, shown here as ⟨how many⟩; what stands behind them belongs to it.";

/// A call that a user is asked about.
#[derive(Clone, Debug)]
pub struct Question {
    pub tool: String,
    /// JSON text, as it will be executed.
    pub arguments: String,
    pub capabilities: Vec<Capability>,
    /// For how long a yes may hold.
    pub lasting: Lasting,
    /// The agent that asks, where another one started it.
    pub agent: Option<String>,
}

impl From<&Asked> for Question {
    fn from(asked: &Asked) -> Self {
        let Asked {
            call,
            capabilities,
            lasting,
            agent,
        } = asked;
        let (tool, arguments) = (call.name.clone(), call.arguments.clone());
        Self {
            tool,
            arguments,
            capabilities: capabilities.clone(),
            lasting: lasting.clone(),
            agent: agent.clone(),
        }
    }
}

fn shown_agent(agent: &str) -> String {
    padding::line(&unmask(agent))
}

impl Question {
    /// Renders the question. Every character of the arguments is visible, or it is said how much is
    /// not.
    pub fn render(&self, paint: Paint) -> String {
        let arguments = Arguments::new(&self.arguments);
        let mut out = String::new();
        let tool = paint.bold(&padding::line(&unmask(&self.tool)));
        if self.is_in_call() {
            let of = self.agent.as_ref().map_or_else(String::new, |agent| {
                format!(" of the agent {}", shown_agent(agent))
            });
            writeln!(out, "{tool}{of} is paused and waits for your answer:").expect(TAKES_ALL);
        } else {
            let agent = self
                .agent
                .as_ref()
                .map_or_else(String::new, |agent| format!(" {}", shown_agent(agent)));
            writeln!(out, "The agent{agent} wants to use {tool}:").expect(TAKES_ALL);
        }
        arguments.show(&mut out);
        if arguments.is_large {
            let hash: String = Sha256::digest(self.arguments.as_bytes())
                .iter()
                .take(8)
                .fold(String::new(), |mut hash, byte| {
                    write!(hash, "{byte:02x}").expect(TAKES_ALL);
                    hash
                });
            writeln!(
                out,
                "  {} bytes in all, SHA-256 {hash}…",
                self.arguments.len()
            )
            .expect(TAKES_ALL);
        }
        let wanted: Vec<String> = self
            .capabilities
            .iter()
            .filter_map(Capability::wanted)
            .collect();
        let needs: Vec<String> = self
            .capabilities
            .iter()
            .filter(|one| one.wanted().is_none())
            .map(describe)
            .collect();
        if !needs.is_empty() {
            writeln!(out, "It would {}.", needs.join(", and ")).expect(TAKES_ALL);
        }
        for wanted in &wanted {
            writeln!(
                out,
                "The sandbox says: {}.",
                paint.bold(&padding::line(&unmask(wanted)))
            )
            .expect(TAKES_ALL);
        }
        let says = |is: fn(char) -> bool| wanted.iter().any(|wanted| wanted.chars().any(is));
        if arguments.hides() || self.tool.chars().any(text::is_suspect) || says(text::is_suspect) {
            writeln!(
                out,
                "{}",
                paint.warn("Careful: it holds hidden characters, shown here by number.")
            )
            .expect(TAKES_ALL);
        }
        let pretends = |text: &String| unmask(text) != *text;
        if arguments.pretends() || pretends(&self.tool) || wanted.iter().any(pretends) {
            writeln!(
                out,
                "{}",
                paint.warn(
                    "Careful: it holds letters that only look like others, shown here by number."
                )
            )
            .expect(TAKES_ALL);
        }
        if arguments.pads()
            || padding::is_padded(&self.tool)
            || wanted.iter().any(|wanted| padding::is_padded(wanted))
        {
            writeln!(out, "{}", paint.warn(PADDED)).expect(TAKES_ALL);
        }
        out
    }

    /// Returns the answers there are, each with its key.
    fn choices(&self) -> String {
        let mut out = String::from(if self.is_in_call() {
            "y = yes"
        } else {
            "y = yes, once"
        });
        if self.may_last() {
            out.push_str("  a = yes, until the session ends");
        }
        if self.may_be_kept() {
            out.push_str("  p = yes, always in this project");
        }
        if self.may_cover_edits() {
            out.push_str("\ns = yes, and all edits until the session ends");
        }
        out.push_str("\nn = no  n WHY = no, and the agent reads why");
        if !self.is_in_call() {
            out.push_str("  d = no, until the session ends");
        }
        out.push_str("  q = no, and quit\n");
        match &self.lasting {
            Lasting::Exactly { what, .. } if self.may_last() => {
                let keys = if self.may_be_kept() {
                    "a and p hold"
                } else {
                    "a holds"
                };
                writeln!(
                    out,
                    "{keys} for exactly this: {}",
                    cut_to(&padding::line(&unmask(what)), WHAT_MAX)
                )
                .expect(TAKES_ALL);
                if self.may_cover_edits() {
                    writeln!(out, "{EDITS}").expect(TAKES_ALL);
                }
            }
            Lasting::Exactly { .. } if self.is_large() => {
                out.push_str("It can only be allowed once: it is too large to be shown whole.\n");
            }
            Lasting::Once { because } => {
                writeln!(
                    out,
                    "It can only be allowed once: {}.",
                    cut_to(&padding::line(because), WHAT_MAX)
                )
                .expect(TAKES_ALL);
            }
            Lasting::InCall { means, lasting } => {
                writeln!(out, "{means}.").expect(TAKES_ALL);
                if let Some(lasting) = lasting.as_ref().filter(|_| self.may_last()) {
                    let shown = |what: &str| cut_to(&padding::line(&unmask(what)), WHAT_MAX);
                    writeln!(out, "a holds for: {}", shown(&lasting.session)).expect(TAKES_ALL);
                    if let Some(project) = &lasting.project {
                        writeln!(out, "p holds for exactly this: {}", shown(project))
                            .expect(TAKES_ALL);
                    }
                }
            }
            Lasting::Exactly { .. } => {}
        }
        out
    }

    /// Returns what each key answers where one key is enough.
    pub(super) fn keys(&self) -> String {
        let mut out = self.choices();
        out = out.replace(
            "n = no  n WHY = no, and the agent reads why",
            "n = no, and stop  w = no, and say why  e = show all",
        );
        out
    }

    /// Returns the keys alone, where there is no room for what each means.
    pub(super) fn short_keys(&self) -> String {
        let mut out = String::from("y yes");
        if self.may_last() {
            out.push_str(" · a session");
        }
        if self.may_be_kept() {
            out.push_str(" · p project");
        }
        if self.may_cover_edits() {
            out.push_str(" · s all edits");
        }
        out.push_str(" · n no · w why · e more");
        out
    }

    /// Returns whether it is about a program of a call that runs.
    pub(super) fn is_in_call(&self) -> bool {
        matches!(self.lasting, Lasting::InCall { .. })
    }

    pub(super) fn may_last(&self) -> bool {
        let may = match &self.lasting {
            Lasting::Exactly { .. } => true,
            Lasting::InCall { lasting, .. } => lasting.is_some(),
            Lasting::Once { .. } => false,
        };
        may && !self.is_large()
    }

    pub(super) fn may_be_kept(&self) -> bool {
        let may = match &self.lasting {
            Lasting::Exactly { always, .. } => *always,
            Lasting::InCall { lasting, .. } => lasting
                .as_ref()
                .is_some_and(|lasting| lasting.project.is_some()),
            Lasting::Once { .. } => false,
        };
        may && self.may_last()
    }

    /// Returns whether all edits may be allowed.
    pub(super) fn may_cover_edits(&self) -> bool {
        self.may_last() && matches!(self.lasting, Lasting::Exactly { edits: true, .. })
    }

    /// Returns whether some of it is left out: whoever did not see all of a call allows it once at
    /// the most.
    fn is_large(&self) -> bool {
        Arguments::new(&self.arguments).is_large
    }
}

/// Asks a user about one call.
///
/// Without a terminal, and at the end of input, the answer is no. `None` means that the question
/// was withdrawn. What was typed before the question could be read is thrown away.
pub async fn ask(
    question: &Question,
    keyboard: &Keyboard,
    err: &mut impl Write,
    paint: Paint,
    cancel: &CancellationToken,
) -> Option<Answered> {
    if !keyboard.is_terminal() {
        let _ = writeln!(
            err,
            "{}denied: there is no terminal to ask at",
            question.render(paint)
        );
        return Some(Answer::Deny.into());
    }
    let whole = question.render(paint);
    let (shown, mut is_folded) = folded(&whole);
    let choices = question.choices();
    let more = if is_folded { EXPAND } else { "" };
    if write!(err, "\n{shown}{choices}{more}").is_err() {
        // A question that cannot be read cannot be answered.
        return Some(Answer::Deny.into());
    }
    for _ in 0..TRIES {
        match answer("Allow it? ", keyboard, err, cancel).await {
            Typed::Line(line) if is_folded && line.trim().eq_ignore_ascii_case("e") => {
                is_folded = false;
                if write!(err, "\n{whole}{choices}").is_err() {
                    return Some(Answer::Deny.into());
                }
            }
            Typed::Line(line) => match parse(&line) {
                Some(answered) if is_folded && question.may_last() && lasts(answered.answer) => {
                    let _ = writeln!(
                        err,
                        "That holds for longer: look at all of it first, with e."
                    );
                }
                Some(Answered {
                    answer: Answer::AllowSession | Answer::AllowAlways,
                    ..
                }) if !question.may_last() => {
                    let why = if question.is_large() {
                        "This is too large to allow more than once."
                    } else {
                        "It can only be allowed once."
                    };
                    let _ = writeln!(err, "{why}");
                }
                Some(Answered {
                    answer: Answer::AllowEdits,
                    ..
                }) if !question.may_cover_edits() => {
                    let _ = writeln!(err, "It is about more than an edit; y = yes, once.");
                }
                Some(Answered {
                    answer: Answer::AllowAlways,
                    ..
                }) if !question.may_be_kept() => {
                    let _ = writeln!(
                        err,
                        "No answer can be kept for this project; a = until the session ends."
                    );
                }
                Some(answered) => return Some(answered),
                None => {
                    let _ = writeln!(err, "Please type one of the letters above, then Enter.");
                }
            },
            Typed::End => return Some(deny(err, "denied: the input ended").into()),
            Typed::Cancelled => return withdrawn(err),
        }
    }
    Some(deny(err, "denied: no answer").into())
}

const TAKES_ALL: &str = "a string takes all that is written";

fn lasts(answer: Answer) -> bool {
    matches!(
        answer,
        Answer::AllowSession | Answer::AllowEdits | Answer::AllowAlways
    )
}

/// Returns a question as it is shown first, with the middle of a long one left out, and whether it is.
fn folded(whole: &str) -> (Cow<'_, str>, bool) {
    let lines: Vec<&str> = whole.lines().collect();
    if lines.len() <= LINES_WHOLE {
        return (Cow::Borrowed(whole), false);
    }
    let n_hidden = lines.len() - LINES_HEAD - LINES_TAIL;
    let (head, tail) = (&lines[..LINES_HEAD], &lines[lines.len() - LINES_TAIL..]);
    let shown = format!(
        "{}\n  … {n_hidden} more lines; e shows them\n{}\n",
        head.join("\n"),
        tail.join("\n")
    );
    (Cow::Owned(shown), true)
}

fn withdrawn(err: &mut impl Write) -> Option<Answered> {
    let _: io::Result<()> = writeln!(err, "\n(the question is withdrawn)");
    None
}

fn deny(err: &mut impl Write, why: &str) -> Answer {
    let _: io::Result<()> = writeln!(err, "\n{why}");
    Answer::Deny
}

/// Reads an answer: a letter or a word, and behind a no the reason for it.
fn parse(line: &str) -> Option<Answered> {
    let line = line.trim();
    let end = line
        .find(|c: char| !c.is_ascii_alphabetic())
        .unwrap_or(line.len());
    let (word, rest) = line.split_at(end);
    let reason = rest.trim_start_matches([',', ':', ';', '.']).trim();
    let answer = match word.to_ascii_lowercase().as_str() {
        "n" | "no" if !reason.is_empty() => {
            let reason = reason.chars().take(REASON_MAX).collect();
            return Some(Answered {
                answer: Answer::Deny,
                reason: Some(reason),
            });
        }
        // Whoever says more than yes may mean less than that.
        _ if !reason.is_empty() => return None,
        "y" | "yes" => Answer::Allow,
        "a" => Answer::AllowSession,
        "s" => Answer::AllowEdits,
        "p" | "always" => Answer::AllowAlways,
        "n" | "no" => Answer::Deny,
        "d" => Answer::DenySession,
        "q" | "quit" => Answer::Quit,
        _ => return None,
    };
    Some(answer.into())
}

fn describe(capability: &Capability) -> String {
    match capability {
        // A name that only looks like a well-known one must not look so here.
        Capability::Network { host } => Capability::Network {
            host: text::ascii(host),
        }
        .describe(),
        other => padding::line(&other.describe()),
    }
}

fn cut_to(line: &str, most: usize) -> String {
    let cut = line
        .char_indices()
        .nth(most)
        .map(|(end, _)| format!("{}…", &line[..end]));
    cut.unwrap_or_else(|| line.to_owned())
}
