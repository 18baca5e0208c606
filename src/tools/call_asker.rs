use super::Asker;
use super::Later;
use podbay_event::Answered;
use podbay_event::Asked;

/// Asks the user while a call runs, and says so before.
pub(super) struct CallAsker<'a> {
    pub(super) inner: &'a dyn Asker,
    pub(super) say_asked: &'a (dyn Fn() + Send + Sync),
}

impl Asker for CallAsker<'_> {
    fn ask<'a>(&'a self, asked: &'a Asked) -> Later<'a, Answered> {
        (self.say_asked)();
        self.inner.ask(asked)
    }

    fn question<'a>(
        &'a self,
        question: &'a str,
        options: &'a [String],
    ) -> Later<'a, Option<String>> {
        (self.say_asked)();
        self.inner.question(question, options)
    }

    fn can_answer(&self) -> bool {
        self.inner.can_answer()
    }
}
