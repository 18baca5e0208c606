//! Images that the user names in a message.

use std::sync::atomic::Ordering;

use async_recursion::async_recursion as boxed;
use tokio_util::sync::CancellationToken;

use super::Pipeline;
use super::PipelineError;
use super::approval::NotApproved;
use super::dispatch::dispatch;
use super::hook::HookStop;
use super::host::CallResult;
use super::pipeline::Caller;
use podbay_event::ToolCall;
use podbay_policy::Action;
use podbay_sandbox::link::Nobody;
use podbay_wire::BytesPath;
use podbay_wire::Call;
use podbay_wire::Fault;
use podbay_wire::Image;
use podbay_wire::Output;
use podbay_wire::ReadFile;

/// Why an image cannot be shown.
#[derive(Debug)]
pub enum ImageError {
    /// The project has no such file: the word means something else.
    Absent,
    /// The path leads out of the project.
    Outside,
    /// The model cannot read images.
    Blind,
    /// Denied by the policy or the user, for this reason.
    Denied(String),
    /// The user wants to end the session.
    Quit,
    /// The file cannot be used, for this reason.
    Fault(String),
    Sandbox(PipelineError),
}

impl Pipeline {
    /// Reads an image that the user named, like a `read_file` of the same path: the same rules deny
    /// it, hooks may block it, and the decision is an event.
    #[boxed]
    pub async fn read_image(
        &self,
        path: BytesPath,
        cancel: &CancellationToken,
    ) -> Result<Image, ImageError> {
        let sees = self.images.load(Ordering::Relaxed);
        let shown = path.to_text();
        let arguments = serde_json::json!({ "path": shown }).to_string();
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
        // The policy judges it like a call of the model: the image is sent to the model's server,
        // whoever named it.
        let call = ToolCall {
            id: format!("image:{shown}"),
            name: "read_file".to_owned(),
            arguments,
        };
        let (action, quit) = self
            .approve(&call, &call.name, action, Caller::Model, cancel)
            .await;
        if quit {
            return Err(ImageError::Quit);
        }
        let action = action.map_err(|refused| ImageError::Denied(refused.words()))?;
        match self.before_call(&call, &call.name, cancel).await {
            Ok(()) => {}
            Err(HookStop::Blocked(reason)) => {
                return Err(ImageError::Denied(
                    self.record_block(&call, &call.name, &reason),
                ));
            }
            Err(HookStop::Cancelled) => {
                return Err(ImageError::Denied(NotApproved::Withdrawn.words()));
            }
            Err(HookStop::Sandbox(error)) => return Err(ImageError::Sandbox(error)),
        }
        let output = match dispatch(
            action,
            &*self.workspace,
            &self.seen,
            self.host(&Nobody, &call.id),
            &self.options,
            |_| {},
            cancel,
        )
        .await
        {
            Ok((CallResult::Output(output), _)) => output,
            Ok((CallResult::Text(said) | CallResult::LastText(said), _)) => {
                return Err(ImageError::Fault(said.body));
            }
            Ok((CallResult::Agent(answer), _)) => return Err(ImageError::Fault(answer.text)),
            Err(error) => return Err(ImageError::Sandbox(PipelineError::Sandbox(error))),
        };
        Err(match output {
            Output::Image(image) if sees => return Ok(image),
            Output::Fault(
                Fault::NotFound { .. }
                | Fault::DanglingLink { .. }
                | Fault::IsDirectory { .. }
                | Fault::NotDirectory { .. }
                | Fault::Invalid { .. },
            ) => ImageError::Absent,
            Output::Fault(Fault::Outside { .. }) => ImageError::Outside,
            Output::Fault(_) | Output::Image(_) if !sees => ImageError::Blind,
            _ if !sees => ImageError::Absent,
            Output::Fault(fault) => ImageError::Fault(for_person(&fault)),
            _ => ImageError::Fault("it is not an image that a model can read".to_owned()),
        })
    }
}

/// Describes the problem for the user: the model's text contains advice for a model.
fn for_person(fault: &Fault) -> String {
    match fault {
        Fault::TooLarge { bytes, limit, .. } => {
            format!("it has {bytes} bytes, and the limit for images is {limit}")
        }
        Fault::Protected { name, .. } => {
            format!("it leads to {name}, which is protected by its name")
        }
        Fault::Binary { kind, .. } => format!("it is a {kind}, not an image that a model can read"),
        Fault::NotRegular { kind, .. } => format!("it is not a regular file but a {kind}"),
        Fault::PermissionDenied { .. } => "permission denied".to_owned(),
        fault => fault.to_string(),
    }
}
