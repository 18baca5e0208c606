use std::collections::HashMap;
use std::time::Duration;
use std::time::Instant;
use std::time::SystemTime;

use async_recursion::async_recursion as boxed;
use bollard::query_parameters::EventsOptionsBuilder;
use futures::StreamExt;

use super::ContainerId;
use super::Engine;

/// A point in time, on the wall clock, by which the engine dates events, and on the monotonic
/// clock.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    dated: SystemTime,
    ticking: Instant,
}

impl Moment {
    pub fn now() -> Self {
        Self {
            dated: SystemTime::now(),
            ticking: Instant::now(),
        }
    }

    /// Returns the earliest possible wall-clock time of the moment, if the clock shows `now` and
    /// may have been set since.
    fn earliest(&self, now: SystemTime) -> SystemTime {
        now.checked_sub(self.ticking.elapsed())
            .unwrap_or(SystemTime::UNIX_EPOCH)
            .min(self.dated)
    }
}

impl Engine {
    /// Returns whether the engine reported that a container ran out of memory since that moment.
    /// Waits for the report at most `patience`, and not at all once the container is gone.
    ///
    /// The engine learns of it separately from the container's end, so the report may come a moment
    /// later. No report counts as no: the result explains an end and decides nothing.
    #[boxed]
    pub async fn ran_out_of_memory(
        &self,
        id: &ContainerId,
        since: Moment,
        patience: Duration,
    ) -> bool {
        let stamp = |time: SystemTime| {
            let since_epoch = time
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or_default();
            format!(
                "{}.{:09}",
                since_epoch.as_secs(),
                since_epoch.subsec_nanos()
            )
        };
        let filters = HashMap::from([
            ("container".to_owned(), vec![id.0.clone()]),
            (
                "event".to_owned(),
                vec!["oom".to_owned(), "destroy".to_owned()],
            ),
        ]);
        let now = SystemTime::now();
        let (since, until) = (stamp(since.earliest(now)), stamp(now + patience));
        // Both ends are given: with only the first, the engine would stream forever.
        let options = EventsOptionsBuilder::default()
            .since(&since)
            .until(&until)
            .filters(&filters)
            .build();
        let mut events = std::pin::pin!(self.docker.events(Some(options)));
        let first = async {
            events
                .next()
                .await
                .and_then(Result::ok)
                .and_then(|event| event.action)
        };
        // A little longer, for an engine whose clock differs from ours.
        let first = tokio::time::timeout(patience + Duration::from_millis(500), first).await;
        matches!(first, Ok(Some(action)) if action == "oom")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rel_09_a_moment_is_dated_correctly_after_the_clock_was_set() {
        let moment = Moment::now();
        let hour = Duration::from_secs(3600);
        let set_back = moment.earliest(moment.dated - hour);
        assert!(
            set_back <= moment.dated - hour,
            "what comes now is dated before it"
        );
        assert_eq!(
            moment.earliest(moment.dated + hour),
            moment.dated,
            "what came before the clock was set has its old date"
        );
    }
}
