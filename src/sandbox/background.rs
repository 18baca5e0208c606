//! The commands in the background of a session: which run, and which programs they started.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Sandbox;
use super::link::Link;
use podbay_event::Kind;
use podbay_wire::Background;
use podbay_wire::BytesPath;
use podbay_wire::Call;
use podbay_wire::End;
use podbay_wire::Output;
use podbay_wire::Process;
use podbay_wire::Processes;

/// How long a sandbox may take to say what runs in it, or to end all of it.
const LOOK: Duration = Duration::from_secs(2);

impl Sandbox {
    /// Returns the commands in the background, and the folder where the next command would run.
    pub(super) async fn look_inside(
        &self,
        cancel: &CancellationToken,
    ) -> (Vec<String>, Option<BytesPath>) {
        let Some(link) = self.running_link().await else {
            return (Vec::new(), None);
        };
        match self.ask_background(&link, Processes::List, cancel).await {
            Some(background) => {
                let running = background
                    .processes
                    .into_iter()
                    .filter(|process| matches!(process.end, End::Running { .. }));
                (
                    running.map(|process| process.command).collect(),
                    background.directory,
                )
            }
            // Whether something runs there is not known, so that nothing of it is ended.
            None => (vec!["(unknown)".to_owned()], None),
        }
    }

    /// Ends the commands in the background before their sandbox ends, so that it is on record which
    /// programs they started.
    pub(super) async fn end_background(&self) {
        let _too_slow = tokio::time::timeout(LOOK, self.stop_background()).await;
    }

    async fn stop_background(&self) -> Option<()> {
        let cancel = self.inner.haste.get_or_init(CancellationToken::new);
        let link = self.running_link().await?;
        let background = self.ask_background(&link, Processes::List, cancel).await?;
        let is_running = |process: &&Process| matches!(process.end, End::Running { .. });
        for process in background.processes.iter().filter(is_running) {
            let stop = Processes::Stop {
                id: Some(process.id),
                grace_ms: 0,
            };
            self.ask_background(&link, stop, cancel).await?;
        }
        Some(())
    }

    async fn running_link(&self) -> Option<Link> {
        let state = self.inner.state.lock().await;
        state
            .running
            .as_ref()
            .filter(|running| running.link.ended().is_none())
            .map(|running| running.link.clone())
    }

    /// Asks about commands in the background, and tells what those that ended had started.
    async fn ask_background(
        &self,
        link: &Link,
        about: Processes,
        cancel: &CancellationToken,
    ) -> Option<Background> {
        match link
            .call(Call::Processes(about), |_, _| {}, cancel, LOOK)
            .await
        {
            Ok(Output::Background(background)) => {
                for ran in &background.ran {
                    (self.inner.sink)(
                        Kind::CallRan {
                            call: String::new(),
                            programs: ran.programs.listed.clone(),
                            n_more: ran.programs.n_more,
                            hook: None,
                            background: Some(ran.command.clone()),
                        }
                        .into(),
                    );
                }
                Some(background)
            }
            _ => None,
        }
    }
}
