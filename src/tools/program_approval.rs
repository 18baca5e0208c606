//! Asks the user about a program that waits for permission in the middle of a call.

use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::time::Duration;
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::Pipeline;
use podbay_event::Answer;
use podbay_event::Asked;
use podbay_event::Capability;
use podbay_event::Kind;
use podbay_event::Lasting;
use podbay_event::ToolCall;
use podbay_policy::LastingScope;
use podbay_policy::Policy;
use podbay_sandbox::link::Asks;
use podbay_wire::AskedProgram;
use podbay_wire::AskedWrite;
use podbay_wire::Because;
use podbay_wire::BytesPath;

/// Most characters shown of a command line, and of a path.
const MOST_PROGRAM: usize = 2000;
const MOST_PATH: usize = 500;

/// Asks about the programs of one call.
pub(super) struct ProgramAsker<'call> {
    pipeline: &'call Pipeline,
    call: &'call ToolCall,
    name: &'call str,
    /// Ends this call alone: a user who quits does not wait for its end.
    cancel: CancellationToken,
    /// What a yes to a write may cover that lasts longer than the call.
    scope: Option<LastingScope>,
    answers: Mutex<Answers>,
}

/// The answers so far.
#[derive(Default)]
struct Answers {
    /// Time the user took, in all.
    waited: Duration,
    /// Reasons that the user gave for a no.
    reasons: Vec<String>,
    has_quit: bool,
    /// There was no user to ask.
    no_user: bool,
}

impl<'call> ProgramAsker<'call> {
    pub(super) fn new(
        pipeline: &'call Pipeline,
        call: &'call ToolCall,
        name: &'call str,
        scope: Option<LastingScope>,
        cancel: &CancellationToken,
    ) -> Self {
        Self {
            pipeline,
            scope,
            call,
            name,
            cancel: cancel.child_token(),
            answers: Mutex::default(),
        }
    }

    /// Returns the token that cancels the call.
    pub(super) fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Returns how long the call waited for the user.
    pub(super) fn waited(&self) -> Duration {
        self.answers().waited
    }

    /// Returns whether the user wants to end the session.
    pub(super) fn has_quit(&self) -> bool {
        self.answers().has_quit
    }

    /// Returns a note for the model besides the denials.
    pub(super) fn for_model(&self) -> Option<String> {
        let answers = self.answers();
        if answers.no_user {
            return Some("no user can be asked".to_owned());
        }
        // Notes are single lines.
        let reasons = answers.reasons.join("; ").replace(['\r', '\n'], " ");
        (!reasons.is_empty()).then(|| format!("the user said no: {reasons}"))
    }

    /// Returns the addition to a denial that was made because no user could answer.
    pub(super) fn why_nobody(&self, because: &Because) -> &'static str {
        match because {
            Because::Refused { .. } if self.answers().no_user => "; no user can give it",
            Because::Write { .. } if self.answers().no_user => {
                "; no user can be asked, since mode auto never asks (`--mode auto`)"
            }
            _ => "",
        }
    }

    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers
            .lock()
            .expect("nothing panics while it holds this lock")
    }

    /// Returns whether an earlier answer covers the program.
    fn is_allowed(&self, program: &AskedProgram) -> bool {
        self.policy(|policy| policy.allows_program(program))
    }

    /// Returns what a yes may cover that lasts; a write to a protected name is allowed once only.
    fn scope_of(&self, program: &AskedProgram) -> Option<LastingScope> {
        match &program.write {
            Some(write) if write.protected => None,
            Some(_) => self.scope.clone(),
            None => self.policy(|policy| policy.lasting_scope_of_program(program)),
        }
    }

    /// Stores an answer for as long as it may hold; returns the answer that takes effect.
    fn remember(&self, scope: Option<&LastingScope>, answer: Answer) -> Answer {
        let Some(scope) = scope else {
            return Answer::Allow;
        };
        let services = &self.pipeline.services;
        let answer = match scope.project() {
            _ if answer != Answer::AllowAlways => answer,
            Some(exact) if services.keeps_answers() => match services.keep_answer(exact) {
                Ok(()) => answer,
                Err(problem) => {
                    let message = format!("the answer is valid for this session only: {problem}");
                    (self.pipeline.sink)(Kind::Warning { message }.into());
                    Answer::AllowSession
                }
            },
            _ => Answer::AllowSession,
        };
        self.policy(|policy| policy.remember_scope(scope, answer));
        answer
    }

    fn policy<T>(&self, look: impl FnOnce(&mut Policy) -> T) -> T {
        look(
            &mut self
                .pipeline
                .policy
                .lock()
                .expect("nothing panics while it holds this lock"),
        )
    }

    async fn put(&self, program: AskedProgram) -> bool {
        let pipeline = self.pipeline;
        if !pipeline.asker.can_answer() {
            self.answers().no_user = true;
            return false;
        }
        if self.is_allowed(&program) {
            return true;
        }
        let scope = self.scope_of(&program);
        let means = means(program.write.as_ref()).to_owned();
        let capabilities = vec![capability(program)];
        let arguments = pipeline
            .catalogue
            .input(&self.call.name, &self.call.arguments);
        let arguments =
            arguments.map_or_else(|| self.call.arguments.clone(), |input| input.to_string());
        let call = ToolCall {
            id: self.call.id.clone(),
            name: self.name.to_owned(),
            arguments,
        };
        (pipeline.sink)(
            Kind::PermissionAsked {
                call: call.id.clone(),
                capabilities: capabilities.clone(),
            }
            .into(),
        );
        let begun = Instant::now();
        let answered = pipeline
            .asker
            .ask(&Asked {
                agent: None,
                call,
                capabilities,
                lasting: Lasting::InCall {
                    means,
                    lasting: scope
                        .as_ref()
                        .map(|scope| scope.words(pipeline.services.keeps_answers())),
                },
            })
            .await;
        if self.cancel.is_cancelled() {
            return given_up().await;
        }
        let answer = match answered.answer {
            Answer::Quit => Answer::Quit,
            Answer::Deny | Answer::DenySession => Answer::Deny,
            Answer::Allow | Answer::AllowEdits => Answer::Allow,
            answer @ (Answer::AllowSession | Answer::AllowAlways) => {
                self.remember(scope.as_ref(), answer)
            }
        };
        let go_on = !matches!(answer, Answer::Quit | Answer::Deny);
        {
            let mut answers = self.answers();
            answers.waited += begun.elapsed();
            answers.has_quit |= answer == Answer::Quit;
            answers.reasons.extend(answered.reason.clone());
        }
        (pipeline.sink)(
            Kind::PermissionAnswered {
                call: self.call.id.clone(),
                answer,
                reason: answered.reason,
            }
            .into(),
        );
        if answer == Answer::Quit {
            self.cancel.cancel();
            return given_up().await;
        }
        go_on
    }
}

impl Asks for ProgramAsker<'_> {
    fn ask<'a>(&'a self, program: AskedProgram) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> {
        Box::pin(self.put(program))
    }
}

/// Waits until the call ends: an answer to a cancelled question is ignored, and a no would let the
/// rest of the command continue meanwhile.
async fn given_up() -> bool {
    std::future::pending().await
}

/// Returns the question for the user, bounded in length.
fn capability(asked: AskedProgram) -> Capability {
    let words: Vec<String> = asked.argv.iter().map(BytesPath::to_text).collect();
    // A backquote of the guest's must not end the quotes around it.
    let program = bounded(&words.join(" ").replace('`', "'"), MOST_PROGRAM);
    let path = |path: &BytesPath| bounded(&path.to_text(), MOST_PATH);
    let (file, directory) = (path(&asked.file), path(&asked.directory));
    match asked.write {
        Some(AskedWrite {
            path: written,
            change,
            protected,
        }) => Capability::HeldWrite {
            path: path(&written),
            change,
            protected,
            program,
            file,
            directory,
        },
        None => Capability::RunProgram {
            program,
            file,
            directory,
            rule: bounded(&asked.rule, MOST_PATH),
        },
    }
}

/// Says what a yes covers.
fn means(write: Option<&AskedWrite>) -> &'static str {
    match write {
        Some(AskedWrite {
            protected: true, ..
        }) => {
            "yes allows this one write; you are asked again for the next write to a protected name"
        }
        Some(_) => {
            "yes lets the command continue and write without further questions, except to protected names"
        }
        None => "yes lets this command run this program with these arguments",
    }
}

/// Returns the beginning and the end of a text that is too long; the end of a path says most.
fn bounded(text: &str, most: usize) -> String {
    let n_chars = text.chars().count();
    if n_chars <= most {
        return text.to_owned();
    }
    let head: String = text.chars().take(most / 2).collect();
    let tail: String = text.chars().skip(n_chars - most / 2).collect();
    // In plain ASCII, as the question warns of lookalike letters.
    format!(
        "{head}... ({} characters) ...{tail}",
        n_chars - most / 2 * 2
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_wire::WriteChange;

    fn asked(argv: &[&str], write: Option<AskedWrite>) -> AskedProgram {
        let argv = argv.iter().map(|&word| word.into()).collect();
        let (directory, file, rule) = ("/workspace".into(), "/usr/bin/make".into(), String::new());
        AskedProgram {
            argv,
            truncated: false,
            directory,
            file,
            rule,
            write,
        }
    }

    #[test]
    fn a_pending_write_names_the_file_and_the_program() {
        let write = AskedWrite {
            path: "build/x.o".into(),
            change: WriteChange::Write,
            protected: false,
        };
        let wanted = capability(asked(&["make", "test"], Some(write.clone())))
            .wanted()
            .expect("it waits");
        assert_eq!(wanted, "`make test` wants to write build/x.o");
        assert!(means(Some(&write)).contains("without further questions"));
        let protected = AskedWrite {
            protected: true,
            ..write
        };
        assert!(means(Some(&protected)).contains("this one write"));
        assert!(
            capability(asked(&["make"], Some(protected)))
                .wanted()
                .expect("it waits")
                .ends_with("a protected name")
        );
    }

    #[test]
    fn text_of_the_guest_in_a_question_is_bounded_and_sanitised() {
        let path = format!("a/\u{1b}[2J{}/end", "x".repeat(30_000));
        let write = AskedWrite {
            path: path.as_str().into(),
            change: WriteChange::Remove,
            protected: false,
        };
        let many = ["`\n".repeat(5000), "y".repeat(30_000)];
        let wanted = capability(asked(&[&many[0], &many[1]], Some(write)))
            .wanted()
            .expect("it waits");
        assert!(
            wanted.chars().count() < MOST_PROGRAM + MOST_PATH + 200,
            "{}",
            wanted.len()
        );
        assert!(
            wanted.ends_with("xxx/end") && wanted.contains("a/\\x1b[2Jxx"),
            "{wanted}"
        );
        assert!(
            !wanted.contains(char::is_control) && wanted.matches('`').count() == 2,
            "{wanted}"
        );
    }
}
