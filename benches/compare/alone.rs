//! The host's side of a tool where there is no host: nothing is kept, and nobody is asked.

use podbay::event::Answer;
use podbay::event::Answered;
use podbay::event::Asked;
use podbay::tools::Asker;
use podbay::tools::KeptLines;
use podbay::tools::Later;
use podbay::tools::Services;

pub(crate) struct Alone;

impl Services for Alone {
    fn store_artifact(&self, _call: &str, _bytes: &[u8]) -> Option<String> {
        None
    }

    fn read_artifact(&self, id: &str, _offset: u64, _limit: u64) -> Result<KeptLines, String> {
        Err(format!("there is no artifact `{id}`"))
    }
}

impl Asker for Alone {
    fn ask<'a>(&'a self, _asked: &'a Asked) -> Later<'a, Answered> {
        Box::pin(std::future::ready(Answer::Deny.into()))
    }

    fn question<'a>(
        &'a self,
        _question: &'a str,
        _options: &'a [String],
    ) -> Later<'a, Option<String>> {
        Box::pin(std::future::ready(None))
    }

    fn can_answer(&self) -> bool {
        false
    }
}
