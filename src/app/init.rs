use std::path::Path;

use super::Error;
use super::bench::open_project_at;
use super::compose_folder;
use super::held_folder::HeldFolder;
use super::network;
use podbay_config as config;
use podbay_config::Config;

const FOLDER: &str = ".podbay";
const SETTINGS: &str = "config.toml";

/// Names of the top folder that are looked at for manifests.
const NAMES: usize = 4096;

/// What was done in and beside a project's folder, by paths from there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Initialised {
    pub made: Vec<String>,
    /// Was there already, and is as it was.
    pub kept: Vec<String>,
    /// Lines that the `.env` of compose lacks which was there.
    pub to_add: Vec<String>,
    /// Where that is.
    pub dotenv: String,
    /// What a user should know, each a sentence.
    pub notes: Vec<String>,
}

impl Initialised {
    pub(super) fn put(&mut self, name: String, is_new: bool) {
        if is_new {
            &mut self.made
        } else {
            &mut self.kept
        }
        .push(name);
    }
}

/// Puts a settings file into a project's folder and lays a folder for compose beside it; whatever
/// is there stays as it is.
///
/// The project may have come from anybody: no link in it is followed, and a name that is taken is
/// left alone.
pub fn init(path: &Path, state: &Path) -> Result<Initialised, Error> {
    let project = open_project_at(path, state)?;
    let folder = HeldFolder::open(&project)?;
    let mut done = Initialised::default();
    let inner = folder.folder(FOLDER, FOLDER)?;
    let name = format!("{FOLDER}/{SETTINGS}");
    let is_new = inner.create(SETTINGS, &name, settings().as_bytes(), 0o644)?;
    done.put(name, is_new);
    compose_folder::lay(&project, &mut done);
    done.notes.push(format!(
        "settings of a project may only make things tighter; `podbay config trust` lets all of `{}` count",
        config::PROJECT_FILE
    ));
    let names: Vec<String> = project
        .names(NAMES)
        .iter()
        .map(podbay_wire::BytesPath::to_text)
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    done.notes.extend(network::presets_note(&names));
    if project.owner().0 == 0 {
        done.notes.push("the folder belongs to root, so commands in the sandbox run as uid 0; give it to a user to avoid that".to_owned());
    }
    Ok(done)
}

/// Returns the settings file: everything there is, and nothing set.
fn settings() -> String {
    format!(
        "# Settings of Podbay for this project. Every line is a comment that shows a default: take a `#` away to change one.\n\
         #\n\
         # What makes things tighter counts: lower limits, rules that deny, fewer tools. All else counts once you have run\n\
         # `podbay config trust`, and again after each change. What should hold for all projects goes into\n\
         # ~/.config/podbay/config.toml. In the sandbox this folder is read-only.\n\n{}",
        config::template::<Config>()
    )
}
