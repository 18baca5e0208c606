//! What a command wants of the network: `podbay network learn`.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::Mutex;

use clap::Subcommand;

use super::args::NetworkFlag;
use super::args::ShArgs;
use super::later;
use super::sh::sh_hearing;
use podbay_app as app;
use podbay_app::exit_code;
use podbay_event::Kind;
use podbay_event::NetworkAttempt;
use podbay_ui::text;

#[derive(Debug, Subcommand)]
pub(super) enum NetworkCommand {
    /// Run a command that reaches nothing new, and propose rules for what it asks for
    Learn(Box<ShArgs>),
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

pub(super) async fn network(command: NetworkCommand) -> Result<u8, app::Error> {
    match command {
        NetworkCommand::Learn(args) => learn(*args).await,
        NetworkCommand::Other(words) => Err(later::below("network", &["learn"], &words)),
    }
}

/// The command's output and exit code are its own; what is proposed goes to standard error.
async fn learn(mut args: ShArgs) -> Result<u8, app::Error> {
    if args.command.is_empty() {
        return Err(app::Error::usage(
            "there is no command to learn from",
            "write it behind `--`: podbay network learn -- npm install",
        ));
    }
    match args.place.network {
        None | Some(NetworkFlag::Allowlist) => args.place.network = Some(NetworkFlag::Allowlist),
        Some(_) => {
            return Err(app::Error::usage(
                "learning needs the gateway, which an allow-list alone has",
                "leave --network out",
            ));
        }
    }
    let heard: Arc<Mutex<Vec<NetworkAttempt>>> = Arc::default();
    let hear = {
        let heard = Arc::clone(&heard);
        Arc::new(move |kind: &Kind| {
            if let Kind::NetworkAttempted(attempt) = kind {
                heard
                    .lock()
                    .expect("nothing panics while it holds this lock")
                    .push(attempt.clone());
            }
        })
    };
    let code = Box::pin(sh_hearing(args, hear)).await?;
    let heard = std::mem::take(
        &mut *heard
            .lock()
            .expect("nothing panics while it holds this lock"),
    );
    super::say(&proposal(&heard));
    Ok(if code == exit_code::SHELL_FAILED {
        code
    } else {
        exit_code::DONE
    })
}

fn proposal(heard: &[NetworkAttempt]) -> String {
    let denied: Vec<(String, u16)> = heard
        .iter()
        .filter(|attempt| !attempt.allowed)
        .map(|attempt| (attempt.host.clone(), attempt.port))
        .collect();
    let app::NetworkProposal { rules, left } = app::propose_network_rules(&denied);
    let mut out = String::new();
    if rules.is_empty() && left.is_empty() {
        out.push_str("\nnothing was asked for that is not allowed already\n");
    }
    for place in left {
        out.push_str(&format!(
            "\n{} was asked for, which no rule can allow\n",
            text::line(&place)
        ));
    }
    if !rules.is_empty() {
        let flags: Vec<String> = rules
            .iter()
            .map(|rule| format!("--allow-host {}", text::line(rule)))
            .collect();
        let list: Vec<String> = rules
            .iter()
            .map(|rule| format!("\"{}\"", text::line(rule)))
            .collect();
        out.push_str(&format!(
            "\nto allow what it asked for: {}\nor in ~/.config/podbay/config.toml:\n\n[network]\nallow = [{}]\n\n\
             What a host answers may lead to others: learn again with these.\n",
            flags.join(" "),
            list.join(", ")
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_denied_is_proposed_once_and_as_a_preset_where_it_is_one() {
        let attempt = |host: &str, port: u16, allowed: bool| -> NetworkAttempt {
            let attempt = serde_json::json!({
                "host": host, "port": port, "access": "tls", "allowed": allowed, "because": "",
                "bytes_sent": 0, "bytes_received": 0, "duration_ms": 0, "times": 1,
            });
            serde_json::from_value(attempt).expect("an attempt")
        };
        let said = proposal(&[
            attempt("registry.npmjs.org", 443, false),
            attempt("registry.npmjs.org", 443, false),
            attempt("git.example.com", 8443, false),
            attempt("known.example.com", 443, true),
            attempt("10.0.0.1", 80, false),
            // Of which the address was asked for.
            attempt("registry.npmjs.org", 0, false),
            attempt("api.example.com", 0, false),
        ]);
        assert!(
            said.contains(
                "--allow-host @npm --allow-host git.example.com:8443 --allow-host api.example.com\n"
            ) && said.contains("allow = [\"@npm\", \"git.example.com:8443\", \"api.example.com\"]")
                && said.contains("10.0.0.1:80 was asked for, which no rule can allow")
                && !said.contains("known"),
            "{said}"
        );
        assert!(proposal(&[]).contains("nothing was asked for"));
    }
}
