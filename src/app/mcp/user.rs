use podbay_mcp::Later;
use podbay_mcp::User;
use podbay_tools::Asker;

/// The user of a session, as MCP servers may ask them.
pub(crate) struct SessionUser<'a>(pub(crate) &'a dyn Asker);

impl User for SessionUser<'_> {
    fn can_answer(&self) -> bool {
        self.0.can_answer()
    }

    fn question<'a>(
        &'a self,
        question: &'a str,
        options: &'a [String],
    ) -> Later<'a, Option<String>> {
        self.0.question(question, options)
    }
}
