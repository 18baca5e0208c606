//! Requests of a server for the user: they wait for a call that runs, and the user of that call
//! answers them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use rmcp::model::ElicitRequestParams;
use rmcp::model::ElicitResult;
use rmcp::model::ElicitationAction;
use serde_json::Map;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::sync::oneshot;

use super::Later;
use super::form::Form;
use super::plain_line;

/// Most requests that wait; one more is declined.
const MOST_WAITING: usize = 4;

/// How often a question is asked again after an answer that is none to it.
const TRIES: usize = 3;

/// Longest message of a server that the model reads of, in characters.
const LONGEST_NOTE: usize = 200;

/// The user for whom a tool is called. A server may ask them while the call runs.
pub trait User: Send + Sync {
    /// Returns whether a user can answer at all.
    fn can_answer(&self) -> bool;

    /// Asks; `None`: nobody answered. Answers other than the options are allowed.
    fn question<'a>(
        &'a self,
        question: &'a str,
        options: &'a [String],
    ) -> Later<'a, Option<String>>;
}

/// Requests of one server that wait to be asked.
#[derive(Clone, Default)]
pub(super) struct UserRequests(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    arrived: Notify,
}

#[derive(Default)]
struct State {
    /// Calls that run, each with a user.
    n_calls: usize,
    waiting: VecDeque<UserRequest>,
}

/// A request, and where its answer goes.
pub(super) struct UserRequest {
    params: ElicitRequestParams,
    reply: oneshot::Sender<ElicitResult>,
}

/// A call that runs, and takes requests.
pub(super) struct Listening(UserRequests);

impl UserRequests {
    /// Returns the user's answer. Without a call that runs there is no user to ask.
    pub(super) async fn put(&self, params: ElicitRequestParams) -> ElicitResult {
        let (reply, answered) = oneshot::channel();
        {
            let mut state = self.state();
            if state.n_calls == 0 || state.waiting.len() == MOST_WAITING {
                return ElicitResult::new(ElicitationAction::Decline);
            }
            state.waiting.push_back(UserRequest { params, reply });
        }
        self.0.arrived.notify_one();
        let answered = answered.await;
        answered.unwrap_or_else(|_| ElicitResult::new(ElicitationAction::Cancel))
    }

    /// Takes requests from now on.
    pub(super) fn listen(&self) -> Listening {
        self.state().n_calls += 1;
        Listening(self.clone())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listening {
    /// Returns the next request.
    pub(super) async fn next(&self) -> UserRequest {
        loop {
            let next = self.0.state().waiting.pop_front();
            if let Some(request) = next {
                return request;
            }
            self.0.0.arrived.notified().await;
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.n_calls -= 1;
        if state.n_calls == 0 {
            for request in state.waiting.drain(..) {
                request.decline();
            }
        }
    }
}

impl UserRequest {
    /// Answers that the user is not asked.
    fn decline(self) {
        let declined = ElicitResult::new(ElicitationAction::Decline);
        let _ended = self.reply.send(declined);
    }

    /// Asks the user and answers the server; returns what came of it, a line.
    pub(super) async fn ask(self, server: &str, user: Option<&dyn User>) -> Asked {
        let Self { params, reply } = self;
        let (result, asked) = dialog(server, &params, user).await;
        // A server that has ended wants no answer.
        let _ended = reply.send(result);
        asked
    }
}

/// What came of a request.
pub(super) struct Asked {
    /// For the user who watches the call.
    pub(super) line: String,
    /// Whether the model must know, since the server may not say it.
    pub(super) is_unasked: bool,
}

async fn dialog(
    server: &str,
    params: &ElicitRequestParams,
    user: Option<&dyn User>,
) -> (ElicitResult, Asked) {
    let form = match params {
        ElicitRequestParams::FormElicitationParams {
            message,
            requested_schema,
            ..
        } => Form::read(message, requested_schema),
        _ => Err("it wants a page to be opened".to_owned()),
    };
    let declined = |line: String| {
        let result = ElicitResult::new(ElicitationAction::Decline);
        let asked = Asked {
            line,
            is_unasked: true,
        };
        (result, asked)
    };
    let form = match form {
        Ok(form) => form,
        Err(why) => return declined(format!("the server asked the user, declined: {why}")),
    };
    let message = plain_line(&form.message, LONGEST_NOTE);
    let Some(user) = user.filter(|user| user.can_answer()) else {
        return declined(format!(
            "the server asked the user \"{message}\", declined: no user can answer"
        ));
    };
    let (result, how) = match filled(server, &form, user).await {
        Filled::Accepted(content) => (
            ElicitResult::new(ElicitationAction::Accept).with_content(content.into()),
            "answered",
        ),
        Filled::Declined => (ElicitResult::new(ElicitationAction::Decline), "declined"),
        Filled::Cancelled => (ElicitResult::new(ElicitationAction::Cancel), "cancelled"),
    };
    let asked = Asked {
        line: format!("the server asked the user \"{message}\": {how}"),
        is_unasked: false,
    };
    (result, asked)
}

enum Filled {
    Accepted(Map<String, Value>),
    Declined,
    Cancelled,
}

/// Asks first whether the server is to have an answer, then for each field.
async fn filled(server: &str, form: &Form, user: &dyn User) -> Filled {
    let (wants, yes) = if form.fields.is_empty() {
        (String::new(), "confirm")
    } else {
        (format!("\nIt wants: {}", form.words()), "answer")
    };
    let question = format!(
        "The MCP server `{server}` asks: {}{wants}\nWhat you answer goes to that server: give it no password and no key.",
        form.message
    );
    let options = [yes.to_owned(), "decline".to_owned()];
    let read = |answer: &str| match answer.trim().to_ascii_lowercase().as_str() {
        "decline" | "no" | "n" => Ok(false),
        word if word == yes || word == "yes" || word == "y" => Ok(true),
        _ => Err(format!("`{yes}` or `decline`, please.")),
    };
    match asked(&question, &options, user, read).await {
        Some(true) => {}
        Some(false) => return Filled::Declined,
        None => return Filled::Cancelled,
    }
    let mut content = Map::new();
    for field in &form.fields {
        let (question, options) = (field.question(server), field.options());
        let read = |answer: &str| field.value(answer);
        match asked(&question, &options, user, read).await {
            Some(Some(value)) => drop(content.insert(field.name.clone(), value)),
            Some(None) => {}
            None => return Filled::Cancelled,
        }
    }
    Filled::Accepted(content)
}

/// Asks until an answer can be read; `None`: there is none.
async fn asked<T>(
    question: &str,
    options: &[String],
    user: &dyn User,
    read: impl Fn(&str) -> Result<T, String>,
) -> Option<T> {
    let mut problem = String::new();
    for _ in 0..TRIES {
        let whole = format!("{question}{problem}");
        let answer = user.question(&whole, options).await?;
        match read(&answer) {
            Ok(value) => return Some(value),
            Err(why) => problem = format!("\n{why}"),
        }
    }
    None
}
