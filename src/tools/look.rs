//! Images that a person names in a message.

use std::sync::atomic::Ordering;

use tokio_util::sync::CancellationToken;

use super::Pipeline;
use super::PipelineError;
use super::asking::Refused;
use super::dispatch::dispatch;
use super::host::Came;
use crate::event::ToolCall;
use crate::policy::Action;
use crate::policy::Verdict;
use crate::wire::BytesPath;
use crate::wire::Call;
use crate::wire::Fault;
use crate::wire::Image;
use crate::wire::Output;
use crate::wire::ReadFile;

/// Why an image cannot be shown.
#[derive(Debug)]
pub enum Unseen {
    /// The project has no such file: the word means something else.
    Absent,
    /// It leads out of the project.
    Outside,
    /// The model sees nothing.
    Blind,
    /// Why policy, or the person who was asked, does not let it be read.
    Denied(String),
    /// What is wrong with the file.
    Fault(String),
    Sandbox(PipelineError),
}

impl Pipeline {
    /// Reads an image that the person named. It is judged as a `read_file` of the same path would be: a rule that denies that denies this.
    pub async fn look(&self, path: BytesPath, cancel: &CancellationToken) -> Result<Image, Unseen> {
        let sees = self.images.load(Ordering::Relaxed);
        let arguments = serde_json::json!({ "path": path.to_text() }).to_string();
        let action = Action::Box(Call::ReadFile(ReadFile {
            path: Some(path),
            offset: 1,
            limit: 1,
            max_bytes: 1,
            cursor: None,
            max_files: 1,
            images: sees,
            protected: false,
        }));
        let verdict = self.policy.lock().expect("nothing panics while it holds this lock").judge(action);
        let action = match verdict {
            Verdict::Allow { action, .. } => action,
            Verdict::Deny { reason, .. } => return Err(Unseen::Denied(reason)),
            Verdict::Ask(question) => {
                let call = ToolCall { id: "image".to_owned(), name: "read_file".to_owned(), arguments };
                self.ask(&call, question, cancel).await.0.map_err(|refused: Refused| Unseen::Denied(refused.words()))?
            }
        };
        let output = match dispatch(action, &*self.workspace, self.host(), &self.options, |_| {}, cancel).await {
            Ok((Came::Output(output), _)) => output,
            Ok((Came::Said(said), _)) => return Err(Unseen::Fault(said.body)),
            Err(error) => return Err(Unseen::Sandbox(PipelineError::Sandbox(error))),
        };
        Err(match output {
            Output::Image(image) if sees => return Ok(image),
            Output::Fault(Fault::NotFound { .. } | Fault::IsDirectory { .. } | Fault::NotDirectory { .. } | Fault::Invalid { .. }) => {
                Unseen::Absent
            }
            Output::Fault(Fault::Outside { .. }) => Unseen::Outside,
            Output::Fault(_) | Output::Image(_) if !sees => Unseen::Blind,
            _ if !sees => Unseen::Absent,
            Output::Fault(fault) => Unseen::Fault(for_person(&fault)),
            _ => Unseen::Fault("it is no image that a model reads".to_owned()),
        })
    }
}

/// Says what is wrong with an image to whoever named it: what the model reads of it is advice for a model.
fn for_person(fault: &Fault) -> String {
    match fault {
        Fault::TooLarge { bytes, limit, .. } => format!("it has {bytes} bytes, and an image that is shown has at most {limit}"),
        Fault::Protected { name, .. } => format!("it leads to {name}, which is protected by its name"),
        Fault::Binary { kind, .. } => format!("it is no image that a model reads but a {kind}"),
        Fault::NotRegular { kind, .. } => format!("it is not a regular file but a {kind}"),
        Fault::PermissionDenied { .. } => "permission denied".to_owned(),
        fault => fault.to_string(),
    }
}
