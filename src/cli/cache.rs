//! `podbay cache`: what installations have left.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use clap::Subcommand;
use serde::Serialize;

use super::args::ConfigFlags;
use super::args::FormatFlags;
use super::delivery::Delivery;
use super::delivery::deliver_json;
use super::later;
use super::run::listen;
use super::setup::Setup;
use super::setup::folder;
use podbay_app as app;
use podbay_app::CacheChoice;
use podbay_app::CacheLine;
use podbay_app::Interrupt;
use podbay_app::exit_code;
use podbay_event::ByteSize;
use podbay_ui::text;

#[derive(Debug, Subcommand)]
pub(super) enum CacheCommand {
    /// List the caches of all projects
    List {
        #[command(flatten)]
        format: FormatFlags,
        #[command(flatten)]
        config: ConfigFlags,
    },
    /// Remove caches of a project
    Rm {
        /// Package managers, such as pip or npm, or `setup`; by default all
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// Those of all projects
        #[arg(long, conflicts_with = "path")]
        all: bool,
        /// Project folder
        #[arg(long, short = 'C', value_name = "DIR")]
        path: Option<PathBuf>,
        #[command(flatten)]
        format: FormatFlags,
        #[command(flatten)]
        config: ConfigFlags,
    },
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

pub(super) async fn cache(command: CacheCommand) -> Result<u8, app::Error> {
    match command {
        CacheCommand::List { format, config } => list(format, &config).await,
        CacheCommand::Rm {
            names,
            all,
            path,
            format,
            config,
        } => {
            let project = if all {
                None
            } else {
                Some(folder(path.as_deref())?)
            };
            remove(CacheChoice { project, names }, format, &config).await
        }
        CacheCommand::Other(words) => Err(later::below("cache", &["list", "rm"], &words)),
    }
}

/// The caches, as a script reads them.
#[derive(Serialize)]
struct CacheList<'a> {
    caches: &'a [CacheLine],
}

async fn list(format: FormatFlags, config: &ConfigFlags) -> Result<u8, app::Error> {
    let setup = Setup::new(config, Vec::new())?;
    let interrupt = Interrupt::new();
    let signals = listen(&interrupt)?;
    let caches = app::list_caches(&setup.config, &setup.state, interrupt.run()).await?;
    if format.is_json() {
        deliver_json(&CacheList { caches: &caches })?;
        return Ok(signals.exit_code(exit_code::DONE));
    }
    let mut out = Delivery::default();
    for cache in &caches {
        let _ = writeln!(out, "{}", words(cache));
    }
    if caches.is_empty() {
        let _ = writeln!(out, "no caches; `podbay install` fills them");
    }
    out.end()?;
    Ok(signals.exit_code(exit_code::DONE))
}

async fn remove(
    choice: CacheChoice,
    format: FormatFlags,
    config: &ConfigFlags,
) -> Result<u8, app::Error> {
    let setup = Setup::new(config, Vec::new())?;
    let interrupt = Interrupt::new();
    let signals = listen(&interrupt)?;
    let done = app::remove_caches(&setup.config, &setup.state, &choice, interrupt.run()).await?;
    let code = if done.in_use.is_empty() {
        exit_code::DONE
    } else {
        exit_code::FAILED
    };
    if format.is_json() {
        deliver_json(&done)?;
        return Ok(signals.exit_code(code));
    }
    let mut out = Delivery::default();
    for cache in &done.removed {
        let _ = writeln!(out, "removed {}", words(cache));
    }
    for cache in &done.in_use {
        let _ = writeln!(
            out,
            "kept {}: a sandbox uses it; end that one first",
            words(cache)
        );
    }
    if done.removed.is_empty() && done.in_use.is_empty() {
        let _ = writeln!(out, "nothing to remove");
    }
    out.end()?;
    Ok(signals.exit_code(code))
}

fn words(cache: &CacheLine) -> String {
    let size = cache.bytes.map_or_else(
        || "size unknown".to_owned(),
        |bytes| ByteSize::new(bytes).rounded(),
    );
    format!(
        "{:<6} {size:>12}  {}",
        text::line(&cache.name),
        text::line(&cache.project)
    )
}
