//! Hosts that a command was denied: the model is told, and a user who is there may allow them, for
//! the next command, for the session or for good in this project.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::Pipeline;
use podbay_event::Answer;
use podbay_event::Answered;
use podbay_event::Asked;
use podbay_event::Capability;
use podbay_event::Kind;
use podbay_event::Lasting;
use podbay_event::ToolCall;
use podbay_policy::ExactCall;
use podbay_policy::Mode;
use podbay_sandbox::DeniedHost;
use podbay_sandbox::Gateway;
use podbay_sandbox::Mark;
use podbay_wire::BLOCKED;
use podbay_wire::EgressRule;

/// The tool that an answer about a host names: none that a model could call.
pub const NETWORK: &str = "network";

/// Hosts of one command that are asked about, and that the model knows of.
const MOST_ASKED: usize = 5;
const MOST_TOLD: usize = 10;

/// What is known of a session's hosts.
#[derive(Default)]
pub(super) struct Hosts(Mutex<State>);

#[derive(Default)]
struct State {
    /// Up to where denials were told.
    mark: Mark,
    /// Rules that hold until the end of the next command.
    once: Vec<EgressRule>,
    /// What was allowed for the session or longer, with whether it is for good.
    allowed: Vec<(ExactCall, bool)>,
    /// Hosts that are not asked about again.
    refused: BTreeSet<String>,
}

/// What came of the hosts of one command.
#[derive(Default)]
pub(super) struct ToldHosts {
    pub(super) notes: Vec<String>,
    pub(super) has_quit: bool,
    /// How long the user took.
    pub(super) waited: Duration,
}

impl Hosts {
    fn state<T>(&self, with: impl FnOnce(&mut State) -> T) -> T {
        with(
            &mut self
                .0
                .lock()
                .expect("nothing panics while it holds this lock"),
        )
    }

    /// Returns the answers that hold, each with whether it is for good.
    pub(super) fn answers(&self) -> Vec<(ExactCall, bool)> {
        self.state(|state| state.allowed.clone())
    }
}

/// Returns the answer by which a host is allowed for longer than a command.
fn answer_about(rule: &EgressRule) -> ExactCall {
    ExactCall {
        tool: NETWORK.to_owned(),
        command: Some(rule.host.clone()),
        directory: String::new(),
        paths: Vec::new(),
        with: Vec::new(),
    }
}

/// Returns the rule that such an answer stands for; `None` for answers about calls.
pub fn host_allowed_by(answer: &ExactCall) -> Option<&str> {
    let host = answer.command.as_deref();
    host.filter(|_| answer.tool == NETWORK)
}

impl Pipeline {
    /// Tells of the hosts that were denied since the last command, and asks about those that could
    /// be allowed.
    pub(super) async fn tell_denied_hosts(
        &self,
        call: &ToolCall,
        name: &str,
        cancel: &CancellationToken,
    ) -> ToldHosts {
        let mut told = ToldHosts::default();
        let Some(gateway) = self.workspace.gateway() else {
            return told;
        };
        let since = self.hosts.state(|state| state.mark);
        let denied = gateway.denied_since(since).await;
        let once = self.hosts.state(|state| {
            state.mark = gateway.mark();
            std::mem::take(&mut state.once)
        });
        // While what was allowed for this command still holds: what is denied in spite of that is
        // denied for another reason, and the same question again would not help.
        let rules: Vec<_> = denied.iter().map(|host| gateway.rule_for(host)).collect();
        self.withdraw(gateway, &once);
        let mut n_asked = 0;
        for (host, rule) in denied.iter().zip(rules) {
            let words = place(host);
            let is_asked = rule.is_some()
                && n_asked < MOST_ASKED
                && !told.has_quit
                && self.asker.can_answer()
                && self.mode() != Mode::Deny
                && !self.hosts.state(|state| state.refused.contains(&words));
            let Some(rule) = rule.filter(|_| is_asked) else {
                let because = shown(&host.because);
                told.notes
                    .push(format!("network: {words} ({because}) is {BLOCKED}"));
                continue;
            };
            n_asked += 1;
            let begun = Instant::now();
            let Some(answered) = self.ask_about_host(call, name, &words, cancel).await else {
                break;
            };
            told.waited += begun.elapsed();
            told.has_quit |= answered.answer == Answer::Quit;
            let note = self
                .answer_host(gateway, call, &words, rule, answered, cancel)
                .await;
            told.notes.push(note);
        }
        let n_more = told.notes.len().saturating_sub(MOST_TOLD);
        if n_more > 0 {
            told.notes.truncate(MOST_TOLD);
            told.notes
                .push(format!("network: {n_more} more hosts are {BLOCKED}"));
        }
        told
    }

    /// Returns the answer; `None`: the call was given up before.
    async fn ask_about_host(
        &self,
        call: &ToolCall,
        name: &str,
        words: &str,
        cancel: &CancellationToken,
    ) -> Option<Answered> {
        let capabilities = vec![Capability::Network {
            host: words.to_owned(),
        }];
        (self.sink)(
            Kind::PermissionAsked {
                call: call.id.clone(),
                capabilities: capabilities.clone(),
            }
            .into(),
        );
        let arguments = self.catalogue.input(&call.name, &call.arguments);
        let asked = Asked {
            agent: None,
            call: ToolCall {
                id: call.id.clone(),
                name: name.to_owned(),
                arguments: arguments
                    .map_or_else(|| call.arguments.clone(), |input| input.to_string()),
            },
            capabilities,
            lasting: Lasting::Exactly {
                what: format!("connections to {words}"),
                always: self.services.keeps_answers(),
                edits: false,
            },
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            answered = self.asker.ask(&asked) => Some(answered),
        }
    }

    /// Does what was answered, and returns what the model knows of it.
    async fn answer_host(
        &self,
        gateway: &Gateway,
        call: &ToolCall,
        words: &str,
        rule: EgressRule,
        Answered { answer, reason }: Answered,
        cancel: &CancellationToken,
    ) -> String {
        (self.sink)(
            Kind::PermissionAnswered {
                call: call.id.clone(),
                answer,
                reason: reason.clone(),
            }
            .into(),
        );
        let exact = answer_about(&rule);
        let how_long = match answer {
            Answer::Deny | Answer::DenySession | Answer::Quit => {
                if answer == Answer::DenySession {
                    self.hosts
                        .state(|state| state.refused.insert(words.to_owned()));
                }
                let why = reason.map_or_else(String::new, |reason| format!(": {}", shown(&reason)));
                return format!(
                    "network: {words} is blocked, and the user said no{why}; do not retry"
                );
            }
            Answer::Allow | Answer::AllowEdits => "for the next command",
            Answer::AllowAlways => match self.services.keep_answer(&exact) {
                Ok(()) => "in this project",
                Err(problem) => {
                    let message = format!("the answer holds for this session alone: {problem}");
                    (self.sink)(Kind::Warning { message }.into());
                    "for this session"
                }
            },
            Answer::AllowSession => "for this session",
        };
        let rules = [gateway.rules(), vec![rule.clone()]].concat();
        if let Err(error) = gateway.set_rules(rules, cancel).await {
            return format!("network: the user allows {words}, and it is not reached: {error}");
        }
        self.hosts.state(|state| match answer {
            Answer::Allow | Answer::AllowEdits => state.once.push(rule),
            _ => state.allowed.push((exact, how_long == "in this project")),
        });
        format!("network: the user now allows {words} {how_long}: run the command again")
    }

    /// Takes a lasting answer back where it is about a host; what goes through is cut.
    pub(super) fn withdraw_host(&self, answer: &ExactCall) {
        let Some(host) = host_allowed_by(answer) else {
            return;
        };
        self.hosts
            .state(|state| state.allowed.retain(|(known, _)| known != answer));
        if let Some(gateway) = self.workspace.gateway() {
            let rule = EgressRule {
                host: host.to_owned(),
                ..EgressRule::default()
            };
            self.withdraw(gateway, &[rule]);
        }
    }

    fn withdraw(&self, gateway: &Gateway, gone: &[EgressRule]) {
        // What was allowed for longer meanwhile stays.
        let allowed: Vec<ExactCall> = self
            .hosts
            .answers()
            .into_iter()
            .map(|(exact, _)| exact)
            .collect();
        let gone: Vec<EgressRule> = gone
            .iter()
            .filter(|rule| !allowed.contains(&answer_about(rule)))
            .cloned()
            .collect();
        if !gone.is_empty() {
            gateway.withdraw(&gone);
        }
    }
}

fn place(host: &DeniedHost) -> String {
    let name = shown(&host.host);
    if host.port == 0 {
        name
    } else {
        format!("{name}:{}", host.port)
    }
}

/// Returns what a command wrote on one line.
fn shown(text: &str) -> String {
    text.replace(char::is_control, " ")
}
