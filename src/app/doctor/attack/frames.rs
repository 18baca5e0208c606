//! A hostile guest at the other end of the line: no sandbox is needed, only what the host makes of its
//! bytes.

use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::io::DuplexStream;
use tokio_util::sync::CancellationToken;

use podbay_guest::attack::Finding;
use podbay_sandbox::link::Error;
use podbay_sandbox::link::Link;
use podbay_sandbox::link::Reason;
use podbay_wire::Call;
use podbay_wire::CallId;
use podbay_wire::Exec;
use podbay_wire::Fault;
use podbay_wire::Output;
use podbay_wire::PROTOCOL;
use podbay_wire::frame;
use podbay_wire::message::DiskLimits;
use podbay_wire::message::Facts;
use podbay_wire::message::GuestHello;
use podbay_wire::message::ToHost;

#[cfg(test)]
pub(super) const IDS: &[&str] = &["F-01", "F-02", "F-03", "F-04", "F-05", "F-08"];

const BUILD: &str = "attack";

/// How long the host may take to see through it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Executes one of them; `None` where the id is not one of these.
pub(super) async fn attack(id: &str) -> Option<Finding> {
    let act = async {
        match id {
            "F-01" => {
                let announced = (frame::MAX_FRAME as u32 + 1).to_be_bytes();
                ends(&[announced.to_vec()], |reason| {
                    matches!(reason, Reason::Protocol(_))
                })
                .await
            }
            "F-02" => {
                ends(&[vec![0, 0, 0, 9, b'{']], |reason| {
                    matches!(reason, Reason::Broken(_))
                })
                .await
            }
            "F-03" => no_message().await,
            "F-04" => answers().await,
            "F-05" => flood().await,
            "F-08" => hello().await,
            _ => return None,
        }
        .into()
    };
    match tokio::time::timeout(PATIENCE * 3, act).await {
        Ok(None) => None,
        Ok(Some(Ok(got))) => Some(Finding { held: true, got }),
        Ok(Some(Err(got))) => Some(Finding { held: false, got }),
        Err(_) => Some(Finding {
            held: false,
            got: "the host was still waiting after 30 s".to_owned(),
        }),
    }
}

/// What happened: where it held, and where not.
type Found = Result<String, String>;

/// Sends bytes and looks at why the stream ends.
async fn ends(sent: &[Vec<u8>], is_expected: impl Fn(&Reason) -> bool) -> Found {
    let (link, mut guest) = connected().await?;
    for bytes in sent {
        // Whoever has given up reads no more.
        let _ = guest.write_all(bytes).await;
    }
    let _ = guest.shutdown().await;
    let reason = ended(&link).await?;
    let text = reason.to_string();
    if !is_expected(&reason) {
        return Err(format!("the stream ended otherwise: {text}"));
    }
    if text.chars().any(char::is_control) {
        return Err(format!("the reason holds a control character: {text}"));
    }
    Ok(text)
}

async fn no_message() -> Found {
    let messages: [Vec<u8>; 5] = [
        b"{\"type\":\"\x1b]0;owned\x07\"}".to_vec(),
        vec![0xff; 64],
        [
            b"{\"type\":\"done\",\"id\":0,\"output\":".to_vec(),
            b"[".repeat(100_000),
        ]
        .concat(),
        b"{\"type\":\"run_on_host\",\"argv\":[\"id\"]}".to_vec(),
        b"{\"type\":\"credit\",\"id\":-1,\"bytes\":1e300}".to_vec(),
    ];
    let n_messages = messages.len();
    for message in messages {
        ends(
            &[(message.len() as u32).to_be_bytes().to_vec(), message],
            |reason| matches!(reason, Reason::Protocol(_)),
        )
        .await?;
    }
    Ok(format!("{n_messages} streams were ended"))
}

async fn answers() -> Found {
    let (link, mut guest) = connected().await?;
    let mut open = link
        .open(Call::Exec(nothing()))
        .map_err(|error| error.to_string())?;
    let told = async {
        for id in [7, 4_000_000_000, 0, 0, 0] {
            say(
                &mut guest,
                &ToHost::Done {
                    id: CallId(id),
                    output: Output::Fault(Fault::Cancelled),
                },
            )
            .await;
        }
    };
    let (first, ()) = tokio::join!(tokio::time::timeout(PATIENCE, open.recv()), told);
    let second = tokio::time::timeout(PATIENCE, open.recv()).await;
    match (first, second, link.ended()) {
        (Ok(Some(_)), Ok(None), None) => Ok("one answer arrived, once".to_owned()),
        (_, _, Some(reason)) => Err(format!("a few stray frames ended the stream: {reason}")),
        _ => Err("the true answer did not arrive once".to_owned()),
    }
}

async fn flood() -> Found {
    const FRAMES: u32 = 1_000_000;
    let (link, mut guest) = connected().await?;
    let frame = framed(&ToHost::Credit {
        id: CallId(99),
        bytes: 1,
    });
    let mut n_sent = 0;
    while n_sent < FRAMES && guest.write_all(&frame).await.is_ok() {
        n_sent += 1;
    }
    if n_sent == FRAMES {
        return Err(format!("all {FRAMES} frames were taken"));
    }
    let reason = ended(&link).await?;
    Ok(format!("after {n_sent} frames: {reason}"))
}

async fn hello() -> Found {
    let connect = async |said: Option<Vec<u8>>, within: Duration| {
        let (ours, mut guest) = tokio::io::duplex(64 << 10);
        let speaking = tokio::spawn(async move {
            if let Some(said) = said {
                let _ = guest.write_all(&said).await;
            }
            // Stays open: silence is part of the attack.
            let _ = guest.read_to_end(&mut Vec::new()).await;
        });
        let outcome = Link::connect(
            ours,
            BUILD,
            DiskLimits::default(),
            within,
            &CancellationToken::new(),
        )
        .await
        .map(|_| ());
        speaking.abort();
        outcome
    };
    let soon = Duration::from_millis(200);
    let names = vec![podbay_wire::BytesPath::from_text("n"); 10_000];
    let facts = Facts {
        workspace_names: names,
        ..Facts::default()
    };
    let version = framed(&ToHost::Hello(GuestHello {
        protocol: PROTOCOL + 1,
        build: BUILD.to_owned(),
        facts: Facts::default(),
    }));
    let other = framed(&ToHost::Hello(GuestHello {
        protocol: PROTOCOL,
        build: "\u{1b}[2J".to_owned(),
        facts: Facts::default(),
    }));
    let huge = framed(&ToHost::Hello(GuestHello {
        protocol: PROTOCOL,
        build: BUILD.to_owned(),
        facts,
    }));
    let outcomes = [
        (
            "silence",
            connect(None, soon)
                .await
                .is_err_and(|error| matches!(error, Error::NoHello { .. })),
        ),
        (
            "a hello that never ends",
            connect(Some(vec![0, 0x10, 0, 0, b'{']), soon)
                .await
                .is_err(),
        ),
        (
            "another version",
            connect(Some(version), PATIENCE)
                .await
                .is_err_and(|error| matches!(error, Error::Protocol { .. })),
        ),
        (
            "another build",
            connect(Some(other), PATIENCE)
                .await
                .is_err_and(|error| !error.to_string().contains('\u{1b}')),
        ),
        (
            "ten thousand names",
            connect(Some(huge), PATIENCE).await.is_err(),
        ),
    ];
    let passed: Vec<&str> = outcomes
        .iter()
        .filter(|(_, refused)| !refused)
        .map(|(name, _)| *name)
        .collect();
    if passed.is_empty() {
        Ok(format!("{} refused", outcomes.len()))
    } else {
        Err(format!("accepted: {}", passed.join(", ")))
    }
}

async fn connected() -> Result<(Link, DuplexStream), String> {
    let (ours, mut guest) = tokio::io::duplex(64 << 10);
    say(
        &mut guest,
        &ToHost::Hello(GuestHello {
            protocol: PROTOCOL,
            build: BUILD.to_owned(),
            facts: Facts::default(),
        }),
    )
    .await;
    let (link, _) = Link::connect(
        ours,
        BUILD,
        DiskLimits::default(),
        PATIENCE,
        &CancellationToken::new(),
    )
    .await
    .map_err(|error| format!("cannot open a stream: {error}"))?;
    Ok((link, guest))
}

async fn ended(link: &Link) -> Result<Reason, String> {
    tokio::time::timeout(PATIENCE, link.wait_ended())
        .await
        .map_err(|_| "the stream continues".to_owned())
}

async fn say(guest: &mut DuplexStream, message: &ToHost) {
    let _ = guest.write_all(&framed(message)).await;
}

fn framed(message: &ToHost) -> Vec<u8> {
    let bytes = frame::encode(message).expect("these are small");
    [&(bytes.len() as u32).to_be_bytes()[..], &bytes].concat()
}

fn nothing() -> Exec {
    Exec {
        argv: Vec::new(),
        working_directory: None,
        environment: Vec::new(),
        terminal: None,
        timeout_ms: None,
        grace_ms: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_hostile_guest_gets_nowhere() {
        for id in IDS {
            let found = attack(id).await.expect("one of these");
            assert!(found.held, "{id}: {}", found.got);
        }
        assert_eq!(attack("F-99").await, None);
    }
}
