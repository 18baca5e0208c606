use serde::Deserialize;
use serde_json::json;

use crate::ToolSet;
use crate::arguments::nonempty;
use crate::arguments::parse;
use crate::tool::Tool;
use crate::tool::object;
use podbay_policy::Action;
use podbay_policy::HostCall;
use podbay_policy::Task;
use podbay_policy::TaskChange;
use podbay_policy::TaskStatus;

pub(crate) const NAME: &str = "task_list";
/// Most tasks of a list.
pub(crate) const MOST: usize = 50;
/// Most characters of one task.
const LONGEST: usize = 500;

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Operation {
    #[default]
    List,
    Add,
    Start,
    Complete,
    Remove,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    #[default]
    Pending,
    InProgress,
    Completed,
}

#[derive(Deserialize)]
struct Arguments {
    action: Option<Operation>,
    task: Option<String>,
    id: Option<i64>,
    todos: Option<Vec<Todo>>,
}

#[derive(Deserialize)]
struct Todo {
    content: String,
    #[serde(default)]
    status: Status,
}

/// The model's task list. Each call returns the whole list, so that the model need not remember it.
pub(super) fn tool() -> Tool {
    let todo = object(
        &json!({
            "content": { "type": "string" },
            "status": { "type": "string", "enum": ["pending", "in_progress", "completed"] },
            // Claude Code shows this while the task is in progress; ignored here.
            "active_form": { "type": "string" },
            "id": {},
            "priority": {},
        }),
        &["content"],
    );
    Tool::new(
        NAME,
        "Keep a list of the steps of a long task.",
        object(
            &json!({
                "action": { "type": "string", "enum": ["list", "add", "start", "complete", "remove"] },
                "task": { "type": "string", "description": "Text to add" },
                "id": { "type": "integer", "description": "Number of the task" },
            }),
            &[],
        ),
        |arguments, _, _| Ok(Action::Host(HostCall::Tasks(change(parse(arguments)?)?))),
    )
    .known_as(&["TodoWrite", "todo_write", "todo", "update_plan"])
    .renamed(&[("operation", "action"), ("content", "task"), ("task_id", "id"), ("tasks", "todos"), ("items", "todos"), ("plan", "todos")])
    .also_takes(&json!({ "todos": { "type": "array", "items": todo } }))
    .in_sets_from(ToolSet::Standard)
    .such_as(r#"{"action": "add", "task": "write the test"}"#)
}

fn change(arguments: Arguments) -> Result<TaskChange, String> {
    let Arguments {
        action,
        task,
        id,
        todos,
    } = arguments;
    if let Some(todos) = todos {
        return match (action, task, id) {
            (None, None, None) => replace(todos),
            _ => Err(
                "give either `todos`, which is the whole list, or `action`, not both".to_owned(),
            ),
        };
    }
    let named = || match id {
        Some(id) => u32::try_from(id)
            .ok()
            .filter(|id| *id > 0)
            .ok_or(format!("`id` is {id}; tasks are counted from 1")),
        None => Err("`id` is missing: the number of the task, as `list` shows it".to_owned()),
    };
    let action = action.unwrap_or(if task.is_some() {
        Operation::Add
    } else {
        Operation::List
    });
    if task.as_ref().is_some_and(|task| !task.trim().is_empty())
        && !matches!(action, Operation::Add)
    {
        return Err(
            "`task` is for add alone; the others name a task by its `id`, and list takes neither"
                .to_owned(),
        );
    }
    match action {
        Operation::List if id.is_some() => {
            Err("`id` is not for list, which shows all tasks".to_owned())
        }
        Operation::List => Ok(TaskChange::Show),
        Operation::Add if id.is_some() => {
            Err("`id` is not for add: a new task comes last".to_owned())
        }
        Operation::Add => Ok(TaskChange::Add {
            task: content("task", task.ok_or("`task` is missing: what is to be done")?)?,
        }),
        Operation::Start => Ok(TaskChange::Mark {
            id: named()?,
            status: TaskStatus::InProgress,
        }),
        Operation::Complete => Ok(TaskChange::Mark {
            id: named()?,
            status: TaskStatus::Completed,
        }),
        Operation::Remove => Ok(TaskChange::Remove { id: named()? }),
    }
}

fn replace(todos: Vec<Todo>) -> Result<TaskChange, String> {
    if todos.len() > MOST {
        return Err(format!(
            "`todos` has {} tasks, and a list holds at most {MOST}; put some together",
            todos.len()
        ));
    }
    let task = |Todo {
                    content: text,
                    status,
                }| {
        let status = match status {
            Status::Pending => TaskStatus::Pending,
            Status::InProgress => TaskStatus::InProgress,
            Status::Completed => TaskStatus::Completed,
        };
        Ok(Task {
            content: content("content", text)?,
            status,
        })
    };
    Ok(TaskChange::Replace(
        todos.into_iter().map(task).collect::<Result<_, String>>()?,
    ))
}

fn content(field: &str, text: String) -> Result<String, String> {
    let text = nonempty(field, text)?;
    match text.chars().count() {
        n if n > LONGEST => Err(format!(
            "`{field}` has {n} characters, and a task at most {LONGEST}; say it shorter"
        )),
        _ => Ok(text.split_whitespace().collect::<Vec<_>>().join(" ")),
    }
}
