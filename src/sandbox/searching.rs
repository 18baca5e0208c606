//! Searches what there was no time for before a session's first command.
//!
//! Runs once beside the session, through the whole project. If it finds something to mask, the next
//! call gets another sandbox: the running one is not ended under a command. In the sandbox of
//! `podbay up` the guest that joins searches beside the calls, and what it finds is told.

use std::sync::PoisonError;
use std::time::Duration;

use super::Sandbox;
use super::covering::Searched;
use super::docker::SearchBeside;
use super::kept::Way;
use super::turns::with_causes;
use podbay_event::Kind;

/// How many paths are listed.
const MOST_TOLD: usize = 20;

impl Sandbox {
    /// Starts the search, if something was not searched yet.
    pub(super) fn search_on(&self) {
        if !matches!(self.inner.way, Way::Engine(_)) {
            return;
        }
        let sandbox = self.clone();
        tokio::spawn(async move {
            let Way::Engine(made) = &sandbox.inner.way else {
                return;
            };
            if !made.covering.is_to_be_searched().await {
                return;
            }
            let (within, stop) = (
                sandbox.inner.options.start_timeout.duration(),
                &sandbox.inner.searching,
            );
            match Box::pin(made.covering.search(made, within, stop)).await {
                Ok(searched) => sandbox.take_up(searched).await,
                Err(_) if stop.is_cancelled() => {}
                Err(error) => sandbox.warn(format!(
                    "the rest of the project could not be looked through for secrets, and commands can read those that were not found: {}",
                    with_causes(&error)
                )),
            }
        });
    }

    /// Tells what the search of a guest that joined the sandbox of `podbay up` finds.
    pub(super) fn tell_beside(&self, search: SearchBeside) {
        let sandbox = self.clone();
        let telling = tokio::spawn(async move {
            let (SearchBeside { shared, found }, Way::Engine(made)) = (search, &sandbox.inner.way)
            else {
                return;
            };
            if let Ok(found) = found.await {
                let told = made.covering.told_of_shared(&made.spec, &shared, found);
                for message in told {
                    sandbox.warn(message);
                }
            }
        });
        *self
            .inner
            .telling
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(telling);
    }

    /// Waits until what came after the sandbox of `podbay up` was made is told, at most so long.
    pub async fn has_told(&self, within: Duration) {
        let telling = self
            .inner
            .telling
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(telling) = telling {
            let _ = tokio::time::timeout(within, telling).await;
        }
    }

    /// Gives the next call a sandbox with the new masks, and reports it.
    async fn take_up(&self, searched: Searched) {
        let Searched {
            hidden,
            read_only,
            warnings,
            is_whole,
        } = searched;
        if let Some(words) = found_late(&hidden, &read_only) {
            self.warn(format!(
                "{words}; the next call gets a sandbox in which that is so"
            ));
            self.inner.state.lock().await.found_late = Some(words);
        }
        for warning in warnings {
            self.warn(warning);
        }
        if !is_whole {
            self.warn(
                "the project could not be looked through to its end for secrets: those that were not found can be read by commands; name what \
                 is not to be looked through in `.gitignore`"
                    .to_owned(),
            );
        }
    }

    fn warn(&self, message: String) {
        (self.inner.sink)(Kind::Warning { message }.into());
    }
}

/// Describes what is masked only from now on, and why; `None` if nothing is.
fn found_late(hidden: &[String], read_only: &[String]) -> Option<String> {
    const WHY: &str =
        "there was no time to look through the whole project before the first command";
    let named = |paths: &[String]| {
        let mut named: Vec<String> = paths.iter().take(MOST_TOLD).cloned().collect();
        let n_more = paths.len() - named.len();
        named.extend((n_more > 0).then(|| format!("{n_more} more")));
        named.join(", ")
    };
    match (hidden.is_empty(), read_only.is_empty()) {
        (true, true) => None,
        (false, true) => Some(format!(
            "{WHY}: commands could read {} until now, which is to be hidden",
            named(hidden)
        )),
        (true, false) => Some(format!(
            "{WHY}: commands could change {} until now, which is to be read-only",
            named(read_only)
        )),
        (false, false) => Some(format!(
            "{WHY}: commands could read {} until now, which is to be hidden, and change {}, which is to be read-only",
            named(hidden),
            named(read_only)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_masks_are_reported_with_the_reason() {
        let paths = |n: usize| {
            (0..n)
                .map(|number| format!("{number}/.env"))
                .collect::<Vec<_>>()
        };
        assert_eq!(found_late(&[], &[]), None);
        let said = found_late(&paths(22), &paths(1)).expect("said");
        assert!(
            said.starts_with("there was no time to look through the whole project before the first command: commands could read 0/.env, ")
        );
        assert!(said.contains("19/.env, 2 more until now, which is to be hidden, and change 0/.env, which is to be read-only"), "{said}");
        assert!(
            found_late(&[], &paths(1))
                .expect("said")
                .contains("could change 0/.env until now, which is to be read-only")
        );
    }
}
