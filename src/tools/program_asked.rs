//! A program that waits in the middle of a call: the person is asked whether it goes on.

use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;
use std::time::Duration;
use std::time::Instant;

use super::Pipeline;
use podbay_event::Answer;
use podbay_event::Asked;
use podbay_event::Capability;
use podbay_event::Kind;
use podbay_event::Lasting;
use podbay_event::ToolCall;
use podbay_sandbox::link::Asks;
use podbay_wire::AskedProgram;
use podbay_wire::BytesPath;

/// Asks about programs of one call.
pub(super) struct ProgramAsker<'call> {
    pipeline: &'call Pipeline,
    call: &'call ToolCall,
    name: &'call str,
    /// How long the person took, in all.
    waited: Mutex<Duration>,
}

impl<'call> ProgramAsker<'call> {
    pub(super) fn new(pipeline: &'call Pipeline, call: &'call ToolCall, name: &'call str) -> Self {
        Self { pipeline, call, name, waited: Mutex::default() }
    }

    /// Returns how long the call waited for the person.
    pub(super) fn waited(&self) -> Duration {
        *self.waited.lock().expect("nothing panics while it holds this lock")
    }

    async fn put(&self, program: AskedProgram) -> bool {
        let pipeline = self.pipeline;
        if !pipeline.asker.is_somebody_there() {
            return false;
        }
        let words: Vec<String> = program.argv.iter().map(BytesPath::to_text).collect();
        let capabilities = vec![Capability::RunProgram {
            program: words.join(" "),
            file: program.file.to_text(),
            directory: program.directory.to_text(),
            rule: program.rule,
        }];
        let because = "it is a program of a command that runs; what it is called is the sandbox's word".to_owned();
        let arguments = pipeline.catalogue.input(&self.call.name, &self.call.arguments);
        let arguments = arguments.map_or_else(|| self.call.arguments.clone(), |input| input.to_string());
        let call = ToolCall { id: self.call.id.clone(), name: self.name.to_owned(), arguments };
        (pipeline.sink)(Kind::PermissionAsked { call: call.id.clone(), capabilities: capabilities.clone() }.into());
        let begun = Instant::now();
        let answered = pipeline.asker.ask(&Asked { call, capabilities, lasting: Lasting::Once { because } }).await;
        *self.waited.lock().expect("nothing panics while it holds this lock") += begun.elapsed();
        let go_on = matches!(answered.answer, Answer::Allow | Answer::AllowSession | Answer::AllowAlways);
        // It holds for this program in this call, whatever was meant.
        let answer = if go_on { Answer::Allow } else { Answer::Deny };
        (pipeline.sink)(Kind::PermissionAnswered { call: self.call.id.clone(), answer, reason: answered.reason }.into());
        go_on
    }
}

impl Asks for ProgramAsker<'_> {
    fn ask<'a>(&'a self, program: AskedProgram) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> {
        Box::pin(self.put(program))
    }
}
