/// An action that policy allowed, by itself or by a person's answer. Only this room makes one.
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
