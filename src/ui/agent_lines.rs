//! What agents do that another one started, in lines that begin with their names.

use std::collections::HashMap;

use podbay_event::AgentEnd;
use podbay_event::CallStatus;
use podbay_event::Decision;
use podbay_event::Kind;
use podbay_event::SessionId;

use super::Paint;
use super::call;
use super::note::limit_word;
use super::text;

/// Lines of what an agent says between two calls.
const SAID_LINES: usize = 2;
/// Calls that are remembered at most; one that ends later shows its name alone.
const MOST_CALLS: usize = 256;

/// Calls of agents that are under way.
#[derive(Default)]
pub(super) struct AgentLines {
    calls: HashMap<(SessionId, String), String>,
}

/// When a call is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShowCalls {
    /// When it begins, and its end if it failed.
    Beginning,
    /// When it has ended.
    Ended,
}

impl AgentLines {
    /// Returns the line for an event of agents; `None`: it is not shown.
    pub(super) fn line(&mut self, kind: &Kind, show: ShowCalls, paint: Paint) -> Option<String> {
        match kind {
            Kind::AgentStarted {
                agent,
                description,
                session,
                ..
            } => Some(paint.dim(&format!(
                "{}: {} (session {session})",
                text::line(agent),
                text::line(description)
            ))),
            Kind::AgentFinished {
                agent,
                session,
                status,
                limit,
                verdict,
                turns,
                tool_calls,
                usage,
                error,
                ..
            } => {
                self.calls.retain(|(of, _), _| of != session);
                let end = AgentEnd {
                    agent: &text::line(agent),
                    status: *status,
                    limit: *limit,
                    verdict: *verdict,
                    turns: *turns,
                    tool_calls: *tool_calls,
                    usage,
                };
                let error = error.as_ref().map_or_else(String::new, |error| {
                    format!(": {}", call::bounded(error, 1))
                });
                Some(paint.dim(&format!("{}{error}", end.words())))
            }
            Kind::AgentEvent {
                session,
                agent,
                event,
                ..
            } => {
                let line = match &event.kind {
                    inner @ (Kind::AgentStarted { .. }
                    | Kind::AgentFinished { .. }
                    | Kind::AgentEvent { .. }) => self.line(inner, show, paint),
                    inner => self.own(session, inner, show, paint),
                }?;
                Some(format!("{}: {line}", text::line(agent)))
            }
            _ => None,
        }
    }

    fn own(
        &mut self,
        session: &SessionId,
        kind: &Kind,
        show: ShowCalls,
        paint: Paint,
    ) -> Option<String> {
        match kind {
            Kind::AssistantMessage {
                text: said, calls, ..
            } if !calls.is_empty() => {
                let said = said.trim();
                (!said.is_empty()).then(|| call::bounded(said, SAID_LINES))
            }
            Kind::CallStarted {
                call,
                name,
                arguments,
            } => {
                let head = first_line(&call::head(name, arguments));
                if self.calls.len() < MOST_CALLS {
                    self.calls
                        .insert((session.clone(), call.clone()), head.clone());
                }
                (show == ShowCalls::Beginning).then_some(head)
            }
            Kind::CallFinished {
                call,
                name,
                status,
                duration_ms,
                ..
            } => {
                let known = self.calls.remove(&(session.clone(), call.clone()));
                let head = known.unwrap_or_else(|| text::line(name));
                let end = call::end(*status, *duration_ms, 0, paint);
                let is_shown = show == ShowCalls::Ended || *status != CallStatus::Ok;
                is_shown.then(|| format!("-> {head} {end}"))
            }
            Kind::CallDecided {
                name,
                decision: Decision::Deny,
                reason,
                ..
            } => Some(paint.warn(&format!(
                "denied: {}: {}",
                text::line(name),
                call::bounded(reason, 1)
            ))),
            Kind::LimitReached {
                limit,
                at_end: true,
            } => Some(paint.warn(&format!("the limit of {} is reached", limit_word(*limit)))),
            Kind::Warning { message } => {
                Some(paint.warn(&format!("warning: {}", call::warning(message))))
            }
            _ => None,
        }
    }

    /// Returns what an agent does now, for the line that moves.
    pub(super) fn now(&self, kind: &Kind) -> Option<String> {
        let Kind::AgentEvent {
            session,
            agent,
            event,
            ..
        } = kind
        else {
            return None;
        };
        let words = match &event.kind {
            Kind::CallStarted { call, .. } => self
                .calls
                .get(&(session.clone(), call.clone()))
                .cloned()
                .unwrap_or_default(),
            inner => self.now(inner)?,
        };
        Some(format!("{}: {words}", text::line(agent)))
    }
}

fn first_line(head: &str) -> String {
    head.lines().next().unwrap_or_default().to_owned()
}

/// Returns the event of an agent that is inside of this one, however deep; the event itself where
/// it is none.
pub(super) fn innermost(kind: &Kind) -> &Kind {
    match kind {
        Kind::AgentEvent { event, .. } => innermost(&event.kind),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_event::Event;

    fn of(agent: &str, kind: Kind) -> Kind {
        Kind::AgentEvent {
            call: "c1".to_owned(),
            session: "abcdefghjkmn".parse().expect("an id"),
            agent: agent.to_owned(),
            event: Box::new(Event::now(kind)),
        }
    }

    fn started() -> Kind {
        Kind::CallStarted {
            call: "c7".to_owned(),
            name: "grep".to_owned(),
            arguments: r#"{"pattern":"fn main"}"#.to_owned(),
        }
    }

    fn finished(status: CallStatus) -> Kind {
        Kind::CallFinished {
            call: "c7".to_owned(),
            name: "grep".to_owned(),
            status,
            result: String::new(),
            artifact: None,
            duration_ms: 12,
            seen: Vec::new(),
        }
    }

    #[test]
    fn a_call_of_an_agent_is_a_line_with_its_name() {
        let mut lines = AgentLines::default();
        let mut line = |kind, show| lines.line(&kind, show, Paint::NONE);
        assert_eq!(line(of("explore", started()), ShowCalls::Ended), None);
        assert_eq!(
            line(of("explore", finished(CallStatus::Ok)), ShowCalls::Ended).as_deref(),
            Some("explore: -> grep fn main (ok, 12 ms)")
        );
        let nested = of("coder", of("explore", started()));
        assert_eq!(
            line(nested, ShowCalls::Beginning).as_deref(),
            Some("coder: explore: grep fn main")
        );
        let failed = of("explore\u{1b}[2J", finished(CallStatus::Failed));
        let shown = line(failed, ShowCalls::Beginning).expect("it is shown");
        assert!(
            shown.ends_with("-> grep fn main (failed, 12 ms)"),
            "{shown}"
        );
        assert!(!shown.contains('\u{1b}'), "{shown}");
    }

    #[test]
    fn what_an_agent_does_now_is_its_call() {
        let mut lines = AgentLines::default();
        let kind = of("explore", started());
        lines.line(&kind, ShowCalls::Ended, Paint::NONE);
        assert_eq!(lines.now(&kind).as_deref(), Some("explore: grep fn main"));
        assert!(matches!(innermost(&kind), Kind::CallStarted { .. }));
    }
}
