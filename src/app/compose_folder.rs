//! The folder that `docker compose` is started from, laid beside a project.
//!
//! Never in it: commands in the sandbox write the project, and compose starts as root what stands
//! in its folder. `setup` looks again at each start whether the two are apart. What is written is
//! what a checkout of Podbay has, without its sources, so that compose takes it as it is.

use std::error::Error as _;
use std::fs;
use std::os::unix::fs::MetadataExt;

use super::Error;
use super::held_folder::HeldFolder;
use super::init::Initialised;
use podbay_sandbox as sandbox;
use podbay_sandbox::Project;

/// What the folder is called behind the project's name.
const SUFFIX: &str = "-podbay";
const COMPOSE: &str = "compose.yaml";
const DOTENV: &str = ".env";
/// The names of users in the sandbox; the project's owner is one of them.
const PASSWD: &str = "docker/passwd";

/// Path, content, mode. Where an image's folder is not there, compose 1.29 refuses the file that
/// names it.
const FILES: [(&str, &[u8], u32); 9] = [
    (COMPOSE, include_bytes!("../../compose.yaml"), 0o644),
    (
        "docker/compose.gpu.yaml",
        include_bytes!("../../docker/compose.gpu.yaml"),
        0o644,
    ),
    (PASSWD, include_bytes!("../../docker/passwd"), 0o644),
    ("docker/seccomp.json", sandbox::SECCOMP.as_bytes(), 0o644),
    (
        "docker/seccomp.workspace.json",
        sandbox::SECCOMP_OF_COMMANDS.as_bytes(),
        0o644,
    ),
    (
        "images/llama-server/Dockerfile",
        include_bytes!("../../images/llama-server/Dockerfile"),
        0o644,
    ),
    (
        "images/podbay/Dockerfile",
        include_bytes!("../../images/podbay/Dockerfile"),
        0o644,
    ),
    (
        "images/workspace/Dockerfile",
        include_bytes!("../../images/workspace/Dockerfile"),
        0o644,
    ),
    (
        "images/workspace/apt-install",
        include_bytes!("../../images/workspace/apt-install"),
        0o755,
    ),
];

/// Lays the folder; where that cannot be, a note says why. Nobody needs it but for compose.
pub(super) fn lay(project: &Project, done: &mut Initialised) {
    let name = format!(
        "{}{SUFFIX}",
        project
            .path()
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
    );
    if let Err(error) = lay_as(&name, project, done) {
        let cause = error
            .source()
            .map(|source| format!(": {source}"))
            .unwrap_or_default();
        let hint = error
            .hint()
            .map(|hint| format!("; {hint}"))
            .unwrap_or_default();
        done.notes.push(format!(
            "there is no whole folder for compose beside the project: {error}{cause}{hint}"
        ));
    }
}

fn lay_as(name: &str, project: &Project, done: &mut Initialised) -> Result<(), Error> {
    let shown = format!("../{name}");
    let folder = HeldFolder::around(project)?.folder(name, &shown)?;
    let (owner, gid) = project.owner();
    let uid = folder.uid()?;
    if ![0, owner, nix::unistd::geteuid().as_raw()].contains(&uid) {
        return Err(Error::usage(
            format!(
                "`{shown}` belongs to uid {uid}, who could write there what compose starts as root"
            ),
            "move it away, or the project to where only you can make folders",
        ));
    }
    if !folder.is_new() && !folder.has(COMPOSE) {
        return Err(Error::usage(
            format!("`{shown}` is there and has no {COMPOSE}, so it is something else's"),
            "move it away",
        ));
    }
    // `setup` looks into it as another user.
    folder.let_others_look()?;
    for (path, content, mode) in FILES {
        let named;
        let content = if path == PASSWD {
            named = passwd(content, owner, gid);
            named.as_slice()
        } else {
            content
        };
        let (mut at, mut shown) = (None::<HeldFolder>, shown.clone());
        let mut parts: Vec<&str> = path.split('/').collect();
        let file = parts.pop().expect("a path has a last part");
        for part in parts {
            shown = format!("{shown}/{part}");
            let below = at.as_ref().unwrap_or(&folder).folder(part, &shown)?;
            below.let_others_look()?;
            at = Some(below);
        }
        shown = format!("{shown}/{file}");
        let is_new = at
            .as_ref()
            .unwrap_or(&folder)
            .create(file, &shown, content, mode)?;
        done.put(shown, is_new);
    }
    done.dotenv = format!("{shown}/{DOTENV}");
    let line = project_line(project.text());
    if line.is_none() {
        done.notes.push(format!(
            "the project's path has characters that a `.env` cannot carry; set PODBAY_PROJECT in {} to a link that leads to the project",
            done.dotenv
        ));
    }
    let is_new = folder.create(
        DOTENV,
        &done.dotenv,
        dotenv(line.as_deref(), owner, gid).as_bytes(),
        0o644,
    )?;
    done.put(done.dotenv.clone(), is_new);
    if !is_new {
        let around = project.path().with_file_name(name);
        let is_project = |value: &str| {
            let facts = fs::metadata(around.join(value));
            facts.is_ok_and(|facts| {
                fs::metadata(project.path())
                    .is_ok_and(|own| (own.dev(), own.ino()) == (facts.dev(), facts.ino()))
            })
        };
        compare(
            folder.read(DOTENV),
            line.as_deref(),
            is_project,
            (owner, gid),
            done,
        );
    }
    Ok(())
}

/// Returns the names of users with that of a project's owner; root has a name already.
fn passwd(of_a_checkout: &[u8], uid: u32, gid: u32) -> Vec<u8> {
    let text = String::from_utf8_lossy(of_a_checkout).into_owned();
    if uid == 0 {
        text.into_bytes()
    } else {
        text.replace("1000:1000", &format!("{uid}:{gid}"))
            .into_bytes()
    }
}

/// Returns the line that names a project in a `.env`, as compose 1.29 and compose v2 both read it;
/// `None` where they do not agree.
fn project_line(path: &str) -> Option<String> {
    if path
        .chars()
        .any(|c| c.is_control() || ['\'', '\\', '$'].contains(&c))
    {
        return None;
    }
    let is_plain = path
        .chars()
        .all(|c| c.is_alphanumeric() || ['/', '.', '_', '-'].contains(&c));
    Some(if is_plain {
        format!("PODBAY_PROJECT={path}")
    } else {
        format!("PODBAY_PROJECT='{path}'")
    })
}

fn dotenv(project: Option<&str>, uid: u32, gid: u32) -> String {
    let project = project.unwrap_or("#PODBAY_PROJECT=");
    format!(
        "# Read by docker compose in this folder, not by Podbay itself.\n\
         # The project. It lies beside this folder: `setup` refuses one that holds it or lies in it.\n\
         {project}\n\
         # Whom the project belongs to: what the sandbox writes belongs to the same.\n\
         PODBAY_UID={uid}\n\
         PODBAY_GID={gid}\n\
         # A path in the project that is mounted read-only; a project without a `.git` names any file of its own.\n\
         #PODBAY_GIT=.git\n\
         # The model to serve, by its name in `podbay models list`.\n\
         #PODBAY_MODEL=smollm2-135m\n"
    )
}

/// Says what a `.env` that was there lacks. Nothing else in it is shown: such files hold secrets.
fn compare(
    text: Option<String>,
    project: Option<&str>,
    is_project: impl Fn(&str) -> bool,
    owner: (u32, u32),
    done: &mut Initialised,
) {
    let ids = [("PODBAY_UID", owner.0), ("PODBAY_GID", owner.1)];
    let Some(text) = text else {
        done.notes.push(format!(
            "{} is not a regular file of moderate size, so it was not read",
            done.dotenv
        ));
        done.to_add.extend(
            project
                .map(str::to_owned)
                .into_iter()
                .chain(ids.iter().map(|(name, id)| format!("{name}={id}"))),
        );
        return;
    };
    let set = super::dotenv::read(&text);
    // Of several the last one counts.
    let value = |name: &str| {
        set.iter()
            .rfind(|(key, _)| key == name)
            .map(|(_, value)| value)
    };
    match value("PODBAY_PROJECT") {
        None => done.to_add.extend(project.map(str::to_owned)),
        Some(value) if is_project(value) => {}
        Some(_) => done.notes.push(format!(
            "PODBAY_PROJECT in {} names another folder than this project",
            done.dotenv
        )),
    }
    for (name, id) in ids {
        match value(name) {
            None => done.to_add.push(format!("{name}={id}")),
            Some(value) if *value == id.to_string() => {}
            Some(_) => done.notes.push(format!(
                "{name} in {} is not {id}, whom the project belongs to",
                done.dotenv
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_that_compose_reads_is_laid() {
        let text = std::str::from_utf8(FILES[0].1).expect("it is text");
        let named: Vec<&str> = text
            .split("seccomp:./")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        assert!(
            named.len() > 1
                && named
                    .iter()
                    .all(|name| FILES.iter().any(|(path, ..)| path == name)),
            "{named:?}"
        );
    }

    #[track_caller]
    fn check(text: Option<&str>, to_add: &[&str], n_notes: usize) {
        let mut done = Initialised::default();
        compare(
            text.map(str::to_owned),
            Some("PODBAY_PROJECT=/p"),
            |value| value == "../p",
            (1000, 100),
            &mut done,
        );
        assert_eq!(
            (done.to_add.as_slice(), done.notes.len()),
            (
                to_add
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .as_slice(),
                n_notes
            )
        );
        assert!(
            !format!("{done:?}").contains("sesame"),
            "nothing of the file is shown"
        );
    }

    #[test]
    fn a_file_that_was_there_is_compared_and_not_shown() {
        let all = ["PODBAY_PROJECT=/p", "PODBAY_UID=1000", "PODBAY_GID=100"];
        check(Some(""), &all, 0);
        check(
            Some("PASSWORD=sesame\nPODBAY_UID=1000\nPODBAY_PROJECT=../p"),
            &["PODBAY_GID=100"],
            0,
        );
        check(
            Some("export PODBAY_UID = \"1000\"\nPODBAY_GID='100'\nPODBAY_PROJECT='../p'\n"),
            &[],
            0,
        );
        check(
            Some("PODBAY_UID=5\nPODBAY_UID=1000\nPODBAY_GID=sesame\nPODBAY_PROJECT=/sesame"),
            &[],
            2,
        );
        check(
            Some("#PODBAY_UID=1000\nXPODBAY_GID=100\n#PODBAY_PROJECT=/p"),
            &all,
            0,
        );
        check(
            Some(
                "PODBAY_UID=1000 # mine\nPODBAY_GID=\"100\"  # the group's\nPODBAY_PROJECT=../p\n",
            ),
            &[],
            0,
        );
        check(
            Some("SECRET='sesame\nPODBAY_UID=5\nPODBAY_GID=5\n'\nPODBAY_UID=1000\nPODBAY_GID=100"),
            &all[..1],
            0,
        );
        check(None, &all, 1);
    }

    #[test]
    fn the_file_for_compose_has_what_compare_asks_for() {
        for path in ["/srv/shop", "/srv/my shop #2", "/srv/größe"] {
            let line = project_line(path).expect("a line");
            let mut done = Initialised::default();
            compare(
                Some(dotenv(Some(&line), 7, 8)),
                Some(&line),
                |value| value == path,
                (7, 8),
                &mut done,
            );
            assert_eq!(done, Initialised::default());
        }
        for path in [
            "/srv/it's",
            "/srv/a\\b",
            "/srv/$HOME",
            "/srv/a\nPODBAY_UID=0",
        ] {
            assert_eq!(project_line(path), None);
        }
        assert!(dotenv(None, 7, 8).contains("\n#PODBAY_PROJECT=\n"));
    }
}
