use super::capabilities;
use crate::Action;
use podbay_event::Capability;
use podbay_wire::Bash;
use podbay_wire::Call;
use podbay_wire::CallKind;
use podbay_wire::Exec;
use podbay_wire::ExecEffect;
use podbay_wire::ExecRule;
use podbay_wire::Hook;
use podbay_wire::WriteGate;

/// An action that policy allowed, by itself or by the user's answer. Only this module creates one,
/// from a verdict.
#[derive(Debug)]
pub struct Approved<A> {
    action: A,
    is_by_name: bool,
    /// The user approved exactly this action.
    is_answered: bool,
}

impl<A> Approved<A> {
    /// Returns the action for execution; it cannot be executed twice.
    pub fn into_inner(self) -> A {
        self.action
    }

    pub fn get(&self) -> &A {
        &self.action
    }

    /// Whether the approval covers only the paths named in it, not the targets of symbolic links
    /// among them.
    pub fn is_by_name(&self) -> bool {
        self.is_by_name
    }
}

impl Approved<Action> {
    /// Approves an action, and records in it whether that includes a protected name.
    /// Policy compares only the path's spelling. Where the path leads is resolved in the sandbox,
    /// which refuses a protected name that was reached without this mark: through a link, a cursor
    /// or a search. For a call with several paths the mark applies to those that name what is
    /// protected.
    pub(super) fn action(mut action: Action) -> Self {
        // A command is executed as written; it carries no mark, and it was parsed already.
        let is_command =
            matches!(&action, Action::Box(call) if call.facts().kind == CallKind::Command);
        let approved = !is_command
            && capabilities(&action)
                .iter()
                .any(|capability| matches!(capability, Capability::ProtectedName { .. }));
        if let Action::Box(call) = &mut action
            && let Some(protected) = call.fields_mut().protected
        {
            *protected = approved;
        }
        Self {
            action,
            is_by_name: false,
            is_answered: false,
        }
    }

    /// Approves an action for the paths named in it only. Rules and users refer to a path by its
    /// spelling, and where a link leads is resolved in the sandbox.
    pub(super) fn by_name(action: Action) -> Self {
        Self {
            is_by_name: true,
            ..Self::action(action)
        }
    }

    /// The same, approved by the user.
    pub(super) fn answered(self) -> Self {
        Self {
            is_answered: true,
            ..self
        }
    }

    /// Attaches the rules for programs that the command starts. If the user approved the whole
    /// command, none of them asks.
    pub(super) fn with_program_rules(mut self, rules: &[ExecRule]) -> Self {
        if let Action::Box(
            Call::Bash(Bash { rules: own, .. }) | Call::Hook(Hook { rules: own, .. }),
        ) = &mut self.action
        {
            *own = rules
                .iter()
                .filter(|rule| !self.is_answered || rule.effect == ExecEffect::Deny)
                .cloned()
                .collect();
        }
        self
    }

    /// Lets a command run as long as it only reads: its first write is then asked about.
    pub(super) fn gated_at_first_write(mut self, gate: WriteGate) -> Self {
        if let Action::Box(Call::Bash(bash)) = &mut self.action {
            bash.write_gate = Some(gate);
        }
        self
    }

    /// Approves a command that the user starts in their own sandbox. No tool of the model can make
    /// this kind of call.
    pub fn by_hand(exec: Exec) -> Self {
        Self::action(Action::Box(Call::Exec(exec)))
    }
}
