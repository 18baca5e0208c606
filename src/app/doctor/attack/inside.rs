//! A sandbox under attack: commands of the guest's table are run in it, and calls made that a model
//! could make.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use nix::sys::signal::Signal;
use tokio_util::sync::CancellationToken;

use crate::Error;
use podbay_guest::attack::Finding;
use podbay_sandbox::Sandbox;
use podbay_wire::BytesPath;
use podbay_wire::Call;
use podbay_wire::CommandEnded;
use podbay_wire::End;
use podbay_wire::Exec;
use podbay_wire::Output;
use podbay_wire::message::Facts;

/// Where commands find the guest's program, in sandboxes of ours and of compose.
const PROGRAM: &str = "/run/podbay/bin/podbay";

/// How long one attack may take.
const TIME: Duration = Duration::from_secs(60);

/// How long a guest may take to answer beyond the time of a command.
const PATIENCE: Duration = Duration::from_secs(10);

/// Most bytes of a command's output that are kept, from its end: the finding is the last line.
const KEPT: usize = 256 << 10;

pub(super) struct Inside<'a> {
    pub(super) sandbox: &'a Sandbox,
    pub(super) facts: &'a Facts,
    /// The folder below `/workspace` that the attacks by tools go for.
    pub(super) folder: String,
    /// Set where others who use the disk may have decided how something came out.
    pub(super) is_disturbed: &'a AtomicBool,
    pub(super) cancel: &'a CancellationToken,
}

/// How a command of the guest's ended.
pub(super) struct Ran {
    pub(super) output: Output,
    pub(super) finding: Option<Finding>,
    pub(super) n_bytes: u64,
    pub(super) took: Duration,
}

impl Ran {
    pub(super) fn ended(&self) -> Option<&CommandEnded> {
        match &self.output {
            Output::Command(ended) => Some(ended),
            _ => None,
        }
    }

    /// Returns what it found; a command that did not get to say so failed.
    pub(super) fn found(self) -> Finding {
        let said = match &self.output {
            Output::Command(ended) => without_a_word(ended),
            Output::Fault(fault) => fault.to_string(),
            _ => "the guest answered with something else than a command's end".to_owned(),
        };
        self.finding.unwrap_or(Finding {
            held: false,
            got: said,
        })
    }
}

/// Says how a command ended that did not say what it had found.
fn without_a_word(ended: &CommandEnded) -> String {
    let how = match (ended.limit, ended.end) {
        (Some(limit), _) => format!("killed: {limit}"),
        (None, End::Exited { code }) => format!("exit code {code}"),
        (None, End::Signaled { signal }) => match Signal::try_from(signal) {
            Ok(signal) => format!("killed by {signal}"),
            Err(_) => format!("killed by the signal {signal}"),
        },
        (None, End::Cancelled) => "cancelled".to_owned(),
        (None, End::Running { .. }) => "left running".to_owned(),
    };
    format!("it ended without a word ({how})")
}

/// What a command is given besides its arguments.
pub(super) struct Terms<'a> {
    pub(super) folder: Option<&'a str>,
    pub(super) time: Duration,
    pub(super) grace: Duration,
    pub(super) cancel: CancellationToken,
    /// Waits after each chunk, as a slow reader would.
    pub(super) delay: Duration,
}

impl Inside<'_> {
    /// Runs an attack of the guest's table.
    pub(super) async fn attack(&self, id: &str, arguments: &[String]) -> Result<Ran, Error> {
        self.attack_with(id, arguments, &self.patient()).await
    }

    pub(super) fn terms(&self) -> Terms<'static> {
        Terms {
            folder: None,
            time: TIME,
            grace: Duration::from_secs(1),
            cancel: self.cancel.child_token(),
            delay: Duration::ZERO,
        }
    }

    /// Returns terms that leave more time where there is little of a core.
    pub(super) fn patient(&self) -> Terms<'static> {
        let terms = self.terms();
        Terms {
            time: terms.time * self.slowness(),
            ..terms
        }
    }

    /// Returns by how much more time what happens in this sandbox may take than where it has a core.
    pub(super) fn slowness(&self) -> u32 {
        let millicores = self.facts.millicores.unwrap_or(1000).clamp(1, 1000);
        (1000 / millicores).min(5) as u32
    }

    fn patience(&self) -> Duration {
        PATIENCE * self.slowness()
    }

    pub(super) async fn attack_with(
        &self,
        id: &str,
        arguments: &[String],
        terms: &Terms<'_>,
    ) -> Result<Ran, Error> {
        let words = [PROGRAM, "guest", "attack", id]
            .into_iter()
            .map(str::to_owned)
            .chain(arguments.iter().cloned());
        let call = Call::Exec(Exec {
            argv: words
                .map(|word| BytesPath::from_bytes(word.into_bytes()))
                .collect(),
            working_directory: terms.folder.map(BytesPath::from_text),
            environment: Vec::new(),
            terminal: None,
            timeout_ms: Some(terms.time.as_millis() as u64),
            grace_ms: terms.grace.as_millis() as u64,
        });
        let begun = Instant::now();
        let (mut n_bytes, mut kept) = (0, Vec::new());
        let keep = |_, bytes: &[u8]| {
            n_bytes += bytes.len() as u64;
            kept.extend_from_slice(bytes);
            if kept.len() > 2 * KEPT {
                kept.drain(..kept.len() - KEPT);
            }
            std::thread::sleep(terms.delay);
        };
        let deadline = terms.time + terms.grace + self.patience();
        let output = self
            .sandbox
            .call(call, keep, &terms.cancel, deadline)
            .await
            .map_err(Error::Sandbox)?;
        if matches!(&output, Output::Command(CommandEnded { limit: Some(limit), .. }) if limit.is_of_disk())
        {
            self.is_disturbed.store(true, Ordering::Relaxed);
        }
        let line = kept
            .split(|&byte| byte == b'\n')
            .rfind(|line| !line.is_empty())
            .unwrap_or_default();
        Ok(Ran {
            output,
            finding: serde_json::from_slice(line).ok(),
            n_bytes,
            took: begun.elapsed(),
        })
    }

    /// Makes one call that a model could make.
    pub(super) async fn call(&self, call: Call) -> Result<Output, Error> {
        self.sandbox
            .call(call, |_, _| {}, self.cancel, self.patience())
            .await
            .map_err(Error::Sandbox)
    }

    /// Runs one more command, which says whether the sandbox still does what it should.
    pub(super) async fn look_again(&self) -> Result<Finding, Error> {
        Ok(self
            .attack_with("count", &[], &self.patient())
            .await?
            .found())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_wire::Limit;

    #[test]
    fn how_a_silent_command_ended_is_said_in_words() {
        let check = |end, limit, expected: &str| {
            let ended = CommandEnded {
                limit,
                ..CommandEnded::plain(end)
            };
            assert_eq!(
                without_a_word(&ended),
                format!("it ended without a word ({expected})")
            );
        };
        check(End::Signaled { signal: 25 }, None, "killed by SIGXFSZ");
        check(
            End::Signaled { signal: 40 },
            None,
            "killed by the signal 40",
        );
        check(
            End::Signaled { signal: 9 },
            Some(Limit::Time { ms: 60_000 }),
            "killed: it ran longer than the limit of 60 s",
        );
        check(End::Exited { code: 3 }, None, "exit code 3");
    }
}
