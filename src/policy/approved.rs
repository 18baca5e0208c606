use crate::policy::Action;
use crate::wire::Call;
use crate::wire::Exec;

/// An action that policy allowed, by itself or by a person's answer. Only this room makes one from a verdict.
#[derive(Debug)]
pub struct Approved<A>(A);

impl<A> Approved<A> {
    pub(super) fn new(action: A) -> Self {
        Self(action)
    }

    /// Hands the action to whoever carries it out; it cannot be carried out twice.
    pub fn into_inner(self) -> A {
        self.0
    }

    pub fn get(&self) -> &A {
        &self.0
    }
}

impl Approved<Action> {
    /// Approves a command that a person starts in their own box. No tool of the model's can make this kind of call.
    pub fn by_hand(exec: Exec) -> Self {
        Self::new(Action::Box(Call::Exec(exec)))
    }
}
