//! Pages and diagnoses: a program of ours in the sandbox goes to the gateway's socket, as any
//! command could. What it reads is untrusted, so that it has a process of its own, with bounds.

use std::time::Duration;

use tokio::time::Instant;

use super::bash::cannot_prepare;
use super::bash::null;
use super::bash::pipe;
use crate::call_channel::CallChannel;
use crate::child::Stdio;
use crate::command;
use crate::command::CommandPlan;
use crate::command::Input;
use crate::network;
use crate::order::Order;
use crate::session::Session;
use crate::stdio::Pipe;
use podbay_wire::CommandEnded;
use podbay_wire::End;
use podbay_wire::Fault;
use podbay_wire::Output;
use podbay_wire::Web;
use podbay_wire::WebRequest;
use podbay_wire::message::Stream;

/// Where a sandbox has this program.
const PROGRAM: &str = "/run/podbay/bin/podbay";

/// For a gateway that a chat starts behind its sandbox.
const GATEWAY: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(50);

/// Between two requests to one host.
const PAUSE: Duration = Duration::from_millis(1500);

/// Hosts whose last request is remembered.
const MOST_HOSTS: usize = 1000;

const NO_GATEWAY: &str = "this session has no gateway to the network: say what you need and that the user allows its host with \
                          `--allow-host HOST` or `network.allow` (where `network.mode` is `open`, use curl)";

/// When a host was last asked, or will be.
#[derive(Debug, Default)]
pub(crate) struct LastRequests(Vec<(String, Instant)>);

impl LastRequests {
    /// Returns when the next request to a host may be made, and takes that moment for it.
    pub(crate) fn next(&mut self, host: &str, now: Instant) -> Instant {
        self.0.retain(|(_, at)| *at + PAUSE > now);
        let last = self.0.iter_mut().find(|(known, _)| known == host);
        if let Some((_, at)) = last {
            *at += PAUSE;
            return *at;
        }
        if self.0.len() < MOST_HOSTS {
            self.0.push((host.to_owned(), now));
        }
        now
    }
}

pub(crate) async fn run(session: &Session, web: &Web, line: &mut CallChannel) -> Output {
    match ask(session, web, line).await {
        Ok(ended) => Output::Command(ended),
        Err(fault) => Output::Fault(fault),
    }
}

async fn ask(session: &Session, web: &Web, line: &mut CallChannel) -> Result<CommandEnded, Fault> {
    wait_for_gateway().await?;
    if let WebRequest::Fetch { host, .. } = &web.request {
        let at = session.next_request(host);
        tokio::time::sleep_until(at).await;
    }
    let (source, stdout) = pipe()?;
    let order = Order {
        argv: words(&web.request)
            .into_iter()
            .map(String::into_bytes)
            .collect(),
        program: PROGRAM.into(),
        environment: session.environment(),
        ..Order::default()
    };
    let plan = CommandPlan {
        order,
        stdio: Stdio {
            stdin: null()?,
            stderr: stdout.try_clone().map_err(|error| cannot_prepare(&error))?,
            stdout,
            directory: session.directories.open_root()?,
            report: None,
        },
        sources: vec![(
            Pipe::new(source).map_err(|error| cannot_prepare(&error))?,
            Stream::Stdout,
        )],
        input: Input::Nowhere,
        timeout: Some(Duration::from_millis(web.timeout_ms)),
        grace: Duration::from_millis(web.grace_ms),
        stream_bytes: web.stream_bytes,
        tail_bytes: web.tail_bytes,
    };
    let mut ended = command::run(session, line, plan).await?;
    if ended.limit.is_none() && matches!(ended.end, End::Signaled { .. }) {
        // Its own bounds end it so.
        ended.note = Some("reading the answer took too much memory or time".to_owned());
    }
    Ok(ended)
}

async fn wait_for_gateway() -> Result<(), Fault> {
    let lacking = || Fault::NotStarted {
        problem: NO_GATEWAY.to_owned(),
    };
    if !network::has_gateway_volume() {
        return Err(lacking());
    }
    let end = Instant::now() + GATEWAY;
    while !network::has_gateway() {
        if Instant::now() > end {
            return Err(lacking());
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

fn words(request: &WebRequest) -> Vec<String> {
    let words: Vec<String> = match request {
        WebRequest::Fetch {
            url,
            max_length,
            raw,
            ..
        } => {
            let form = if *raw { "raw" } else { "markdown" };
            vec![
                "fetch".into(),
                url.clone(),
                max_length.to_string(),
                form.into(),
            ]
        }
        WebRequest::Diagnose { action, target } => vec![action.as_str().into(), target.clone()],
    };
    ["podbay".to_owned(), "web".to_owned()]
        .into_iter()
        .chain(words)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_to_one_host_are_apart_and_others_wait_for_none() {
        let mut last = LastRequests::default();
        let now = Instant::now();
        assert_eq!(last.next("a", now), now);
        assert_eq!(last.next("b", now), now);
        assert_eq!(last.next("a", now), now + PAUSE);
        assert_eq!(last.next("a", now), now + 2 * PAUSE);
        let later = now + 4 * PAUSE;
        assert_eq!(last.next("a", later), later);
        for n in 0..2 * MOST_HOSTS {
            last.next(&n.to_string(), later);
        }
        assert!(last.0.len() <= MOST_HOSTS);
    }
}
