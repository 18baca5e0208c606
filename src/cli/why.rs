//! What was denied, by what, and what would allow it: `podbay why`, `podbay logs --network`.

use clap::Args;

use super::args::ConfigFlags;
use super::delivery::deliver;
use podbay_app as app;
use podbay_app::Layer;
use podbay_app::exit_code;
use podbay_ui::text;

/// Denials that are shown where no call is named.
const MOST: usize = 10;

#[derive(Debug, Args)]
pub(super) struct WhyArgs {
    /// Id of a call; without one the last denials are explained
    call: Option<String>,
    /// Session to look at: an id, the beginning of one, or `last`; default: the last one in the
    /// project
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Project folder
    #[arg(long, short = 'C', value_name = "DIR")]
    path: Option<std::path::PathBuf>,
    #[command(flatten)]
    config: ConfigFlags,
}

pub(super) fn why(args: &WhyArgs) -> Result<u8, app::Error> {
    let (state, project) = place(args.path.as_deref())?;
    let session = args.session.as_deref();
    let mut found = app::denials(&state, session, &project, args.call.as_deref())?;
    if args.call.is_none() {
        found.truncate(MOST);
    }
    if found.is_empty() {
        deliver("nothing was denied\n")?;
        return Ok(exit_code::DONE);
    }
    let mut out = String::new();
    for denial in found {
        let layer = match denial.layer {
            Layer::Permissions => "permissions",
            Layer::Hook => "a hook",
            Layer::Network => "the network",
        };
        let call = denial
            .call
            .map_or_else(String::new, |call| format!(", call {}", text::line(&call)));
        out.push_str(&format!(
            "{}{call}: {}\n  denied by {layer}: {}\n  allowed by {}\n",
            denial.at.strftime("%Y-%m-%d %H:%M:%S"),
            text::line(&denial.what),
            text::line(&denial.reason),
            text::line(&denial.remedy)
        ));
    }
    deliver(&out)?;
    Ok(exit_code::DONE)
}

/// Prints what a session tried of the network.
pub(super) fn network_log(
    path: Option<&std::path::Path>,
    session: Option<&str>,
) -> Result<u8, app::Error> {
    let (state, project) = place(path)?;
    let found = app::network_log(&state, session, &project)?;
    let mut out = String::new();
    for (at, attempt) in &found {
        out.push_str(&format!(
            "{}  {}\n",
            at.strftime("%Y-%m-%d %H:%M:%S"),
            text::line(&attempt.words())
        ));
    }
    if found.is_empty() {
        out.push_str("the session asked for no host\n");
    }
    deliver(&out)?;
    Ok(exit_code::DONE)
}

/// Returns where sessions are kept, and what they call the project.
fn place(path: Option<&std::path::Path>) -> Result<(app::State, String), app::Error> {
    let state = app::State::from_env(|name| std::env::var_os(name)).map_err(app::Error::Session)?;
    let folder = super::setup::folder(path)?;
    let project = folder.canonicalize().unwrap_or(folder);
    Ok((state, project.to_string_lossy().into_owned()))
}
