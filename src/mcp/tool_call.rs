//! One call of a tool: its progress, what the server asks the user meanwhile, its answer.

use std::time::Duration;

use async_recursion::async_recursion as boxed;
use futures::StreamExt;
use rmcp::model::CallToolRequest;
use rmcp::model::CallToolRequestParams;
use rmcp::model::CallToolResult;
use rmcp::model::CancelledNotificationParam;
use rmcp::model::ClientRequest;
use rmcp::model::RequestId;
use rmcp::model::ServerResult;
use rmcp::service::Peer;
use rmcp::service::PeerRequestOptions;
use rmcp::service::RoleClient;
use rmcp::service::ServiceError;
use serde_json::Map;
use serde_json::Value;
use tokio::time::Instant;

use super::Error;
use super::ToolDefinition;
use super::User;
use super::connection::Connection;
use super::progress::ProgressLines;

/// Most questions of a server in one call.
const MOST_QUESTIONS: usize = 5;

/// Who calls a tool: they see how far it is, and may be asked.
pub struct Caller<'a> {
    /// Receives a line at a time, without its end.
    pub on_progress: &'a mut (dyn FnMut(&str) + Send),
    /// `None`: there is no user.
    pub user: Option<&'a dyn User>,
}

impl Connection {
    /// Calls a tool; returns the result, and notes for the model. Dropping the future cancels the
    /// call at the server. The time in which the user is asked does not count.
    #[boxed]
    pub(super) async fn call(
        &self,
        definition: &ToolDefinition,
        arguments: Map<String, Value>,
        caller: &mut Caller<'_>,
        limit: Duration,
    ) -> Result<(CallToolResult, Vec<String>), Error> {
        let params = CallToolRequestParams::new(definition.tool.clone()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let peer = self.service.peer();
        let mut deadline = Instant::now() + limit;
        let timed_out = || Error::TimedOut { after: limit };
        let listening = self.told.user_requests.listen();
        let options = PeerRequestOptions::no_options();
        let sent = peer.send_request_with_option(request, options);
        let sent = tokio::time::timeout_at(deadline, sent).await;
        let sent = sent.map_err(|_elapsed| timed_out())?;
        let sent = sent.map_err(|error| self.error(error))?;
        let mut abandoned = AbandonedCall::new(peer, &sent.id);
        let mut progress = self
            .told
            .progress
            .subscribe(sent.progress_token.clone())
            .await;
        let mut lines = ProgressLines::default();
        let mut notes = Vec::new();
        let mut n_questions = 0;
        let mut answer = std::pin::pin!(sent.await_response());
        let answered = loop {
            let request = tokio::select! {
                biased;
                Some(told) = progress.next() => {
                    if let Some(line) = lines.next(&told) {
                        (caller.on_progress)(&line);
                    }
                    continue;
                }
                answered = &mut answer => break answered,
                request = listening.next() => request,
                () = tokio::time::sleep_until(deadline) => return Err(timed_out()),
            };
            n_questions += 1;
            let user = caller.user.filter(|_| n_questions <= MOST_QUESTIONS);
            let begun = Instant::now();
            let asked = tokio::select! {
                asked = request.ask(&definition.server, user) => asked,
                // It did not wait for the user.
                answered = &mut answer => break answered,
            };
            deadline += begun.elapsed();
            (caller.on_progress)(&asked.line);
            if asked.is_unasked {
                notes.push(asked.line);
            }
        };
        abandoned.has_answer();
        match answered {
            Ok(ServerResult::CallToolResult(result)) => Ok((result, notes)),
            Ok(ServerResult::InputRequiredResult(_) | ServerResult::CreateTaskResult(_)) => {
                Err(Error::Refused {
                    message: "it wants more than this client offers: a dialog or a task".to_owned(),
                })
            }
            Ok(_) => Err(self.error(ServiceError::UnexpectedResponse)),
            Err(error) => Err(self.error(error)),
        }
    }
}

/// A call whose answer is not there yet. Dropped, it is cancelled at the server.
struct AbandonedCall {
    peer: Peer<RoleClient>,
    id: Option<RequestId>,
}

impl AbandonedCall {
    fn new(peer: &Peer<RoleClient>, id: &RequestId) -> Self {
        Self {
            peer: peer.clone(),
            id: Some(id.clone()),
        }
    }

    fn has_answer(&mut self) {
        self.id = None;
    }
}

impl Drop for AbandonedCall {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        let peer = self.peer.clone();
        let reason = Some("the call was given up".to_owned());
        runtime.spawn(async move {
            let told = CancelledNotificationParam::new(Some(id), reason);
            // One that has ended need not be told.
            let _untold = peer.notify_cancelled(told).await;
        });
    }
}
