use std::fmt::Write;

use super::definitions::MOST_TASKS;
use podbay_policy::Task;
use podbay_policy::TaskChange;
use podbay_policy::TaskStatus;

/// The model's task list of this session.
#[derive(Debug, Default)]
pub(super) struct Tasks(Vec<Task>);

impl Tasks {
    /// Makes a change and returns the whole list, so that the model need not remember it; or says
    /// why nothing was changed.
    pub(super) fn take(&mut self, change: TaskChange) -> Result<String, String> {
        match change {
            TaskChange::Show => {}
            TaskChange::Add { .. } if self.0.len() >= MOST_TASKS => {
                return Err(format!(
                    "the list holds {MOST_TASKS} tasks, which is the most; remove what is done"
                ));
            }
            TaskChange::Add { task } => self.0.push(Task {
                content: task,
                status: TaskStatus::Pending,
            }),
            TaskChange::Mark { id, status } => self.find(id)?.status = status,
            TaskChange::Remove { id } => {
                self.find(id)?;
                self.0.remove(id as usize - 1);
            }
            TaskChange::Replace(tasks) => self.0 = tasks,
        }
        Ok(self.show())
    }

    /// Returns the open tasks, in order.
    pub(super) fn open(&self) -> Vec<String> {
        self.0
            .iter()
            .filter(|task| task.status != TaskStatus::Completed)
            .map(|task| task.content.clone())
            .collect()
    }

    fn find(&mut self, id: u32) -> Result<&mut Task, String> {
        let n = self.0.len();
        let at = (id as usize).checked_sub(1);
        at.and_then(|at| self.0.get_mut(at)).ok_or_else(|| match n {
            0 => format!("there is no task {id}: the list is empty"),
            n => format!("there is no task {id}: they are numbered 1 to {n}; `list` shows them"),
        })
    }

    fn show(&self) -> String {
        if self.0.is_empty() {
            return "the list is empty".to_owned();
        }
        let mut text = String::new();
        for (at, task) in self.0.iter().enumerate() {
            let mark = match task.status {
                TaskStatus::Pending => "[ ]",
                TaskStatus::InProgress => "[>]",
                TaskStatus::Completed => "[x]",
            };
            let _ = writeln!(text, "{}. {mark} {}", at + 1, task.content);
        }
        let n_done = self
            .0
            .iter()
            .filter(|task| task.status == TaskStatus::Completed)
            .count();
        let _ = write!(text, "({n_done} of {} done)", self.0.len());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_task_list_is_always_shown_whole() {
        let mut tasks = Tasks::default();
        let add = |task: &str| TaskChange::Add {
            task: task.to_owned(),
        };
        assert_eq!(
            tasks.take(TaskChange::Show).as_deref(),
            Ok("the list is empty")
        );
        tasks.take(add("look")).expect("added");
        tasks.take(add("change")).expect("added");
        tasks
            .take(TaskChange::Mark {
                id: 1,
                status: TaskStatus::Completed,
            })
            .expect("is there");
        let marked = tasks.take(TaskChange::Mark {
            id: 2,
            status: TaskStatus::InProgress,
        });
        assert_eq!(
            marked.as_deref(),
            Ok("1. [x] look\n2. [>] change\n(1 of 2 done)")
        );
        assert_eq!(tasks.open(), ["change"]);
        assert_eq!(
            tasks.take(TaskChange::Remove { id: 1 }).as_deref(),
            Ok("1. [>] change\n(0 of 1 done)")
        );
        for id in [0, 2, u32::MAX] {
            let problem = tasks
                .take(TaskChange::Remove { id })
                .expect_err("is not there");
            assert_eq!(
                problem,
                format!("there is no task {id}: they are numbered 1 to 1; `list` shows them")
            );
        }
        let replaced = TaskChange::Replace(vec![Task {
            content: "all new".to_owned(),
            status: TaskStatus::Pending,
        }]);
        assert_eq!(
            tasks.take(replaced).as_deref(),
            Ok("1. [ ] all new\n(0 of 1 done)")
        );
        for _ in 1..MOST_TASKS {
            tasks.take(add("more")).expect("added");
        }
        assert!(
            tasks
                .take(add("too many"))
                .expect_err("is full")
                .contains("remove what is done")
        );
    }
}
