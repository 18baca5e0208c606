use std::sync::Arc;

use podbay_event::Answered;
use podbay_event::Asked;
use podbay_tools::Asker;
use podbay_tools::Later;

/// Asks the user in the name of an agent, so that they know whose question it is.
pub(super) struct AgentAsker {
    pub(super) inner: Arc<dyn Asker>,
    pub(super) agent: String,
}

impl Asker for AgentAsker {
    fn ask<'a>(&'a self, asked: &'a Asked) -> Later<'a, Answered> {
        Box::pin(async move {
            let agent = match &asked.agent {
                Some(inner) => format!("{}: {inner}", self.agent),
                None => self.agent.clone(),
            };
            let asked = Asked {
                agent: Some(agent),
                ..asked.clone()
            };
            self.inner.ask(&asked).await
        })
    }

    fn question<'a>(
        &'a self,
        question: &'a str,
        options: &'a [String],
    ) -> Later<'a, Option<String>> {
        Box::pin(async move {
            let question = format!("The agent {} asks: {question}", self.agent);
            self.inner.question(&question, options).await
        })
    }

    fn can_answer(&self) -> bool {
        self.inner.can_answer()
    }
}
