use super::capabilities;
use crate::Action;
use podbay_event::Capability;
use podbay_wire::Bash;
use podbay_wire::Call;
use podbay_wire::Exec;
use podbay_wire::ExecEffect;
use podbay_wire::ExecRule;
use podbay_wire::Hook;
use podbay_wire::WriteGate;

/// An action that policy allowed, by itself or by a person's answer. Only this room makes one from
/// a verdict.
#[derive(Debug)]
pub struct Approved<A> {
    action: A,
    is_by_name: bool,
    /// A person said yes to exactly this.
    is_answered: bool,
}

impl<A> Approved<A> {
    /// Hands the action to whoever carries it out; it cannot be carried out twice.
    pub fn into_inner(self) -> A {
        self.action
    }

    pub fn get(&self) -> &A {
        &self.action
    }

    /// Whether it is allowed for the paths that it names alone, and not for those that a symbolic
    /// link makes of them.
    pub fn is_by_name(&self) -> bool {
        self.is_by_name
    }
}

impl Approved<Action> {
    /// Approves an action, and notes in it whether that includes a protected name.
    ///
    /// Policy knows the path by its letters alone. Where it leads to is seen in the box, which
    /// refuses a protected name that was reached without this note: through a link, a cursor or a
    /// search. Of a call with several paths it holds for those that name what is protected.
    pub(super) fn action(mut action: Action) -> Self {
        // A command is carried out as it is; of it nothing is noted, and it was read already.
        let is_command = matches!(
            action,
            Action::Box(Call::Bash(_) | Call::Exec(_) | Call::Hook(_))
        );
        let approved = !is_command
            && capabilities(&action)
                .iter()
                .any(|capability| matches!(capability, Capability::ProtectedName { .. }));
        if let Action::Box(call) = &mut action {
            match call {
                Call::ReadFile(read) => read.protected = approved,
                Call::WriteFile(write) => write.protected = approved,
                Call::EditFile(edit) => edit.protected = approved,
                Call::MultiEdit(multi) => multi.protected = approved,
                Call::ApplyPatch(patch) => patch.protected = approved,
                Call::EditLines(edit) => edit.protected = approved,
                Call::DeleteFile(delete) => delete.protected = approved,
                Call::CopyFile(copy) => copy.protected = approved,
                Call::MoveFile(moved) => moved.protected = approved,
                Call::Mkdir(made) => made.protected = approved,
                Call::Grep(grep) => grep.protected = approved,
                Call::Git(git) => git.protected = approved,
                Call::Archive(archive) => archive.protected = approved,
                Call::ListDirectory(_)
                | Call::Tree(_)
                | Call::Glob(_)
                | Call::Cd(_)
                | Call::Env(_)
                | Call::Processes(_)
                | Call::UpdateConfig(_)
                | Call::ByName { .. }
                | Call::Bash(_)
                | Call::Exec(_)
                | Call::Hook(_) => {}
            }
        }
        Self {
            action,
            is_by_name: false,
            is_answered: false,
        }
    }

    /// The same, for the paths that it names alone. Rules and persons speak of a path by its
    /// letters, and where a link leads is seen in the box.
    pub(super) fn by_name(action: Action) -> Self {
        Self {
            is_by_name: true,
            ..Self::action(action)
        }
    }

    /// The same, to which a person said yes.
    pub(super) fn answered(self) -> Self {
        Self {
            is_answered: true,
            ..self
        }
    }

    /// Notes in a command what the programs that it starts may be. Who said yes to it as a whole is
    /// asked about none of them.
    pub(super) fn under(mut self, rules: &[ExecRule]) -> Self {
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

    /// Lets a command run for as long as it only reads: its first write is asked about then.
    pub(super) fn held_at_its_first_write(mut self, gate: WriteGate) -> Self {
        if let Action::Box(Call::Bash(bash)) = &mut self.action {
            bash.write_gate = Some(gate);
        }
        self
    }

    /// Approves a command that a person starts in their own box. No tool of the model's can make
    /// this kind of call.
    pub fn by_hand(exec: Exec) -> Self {
        Self::action(Action::Box(Call::Exec(exec)))
    }
}
