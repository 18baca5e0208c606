//! Markdown files that define agents or commands: the user's, and those of a project, which is
//! untrusted.

use std::io;
use std::path::Path;
use std::path::PathBuf;

use super::project_folder::ProjectFolder;
use super::user_file;

/// Where those of agents are in a project.
pub const AGENTS_FOLDER: &str = ".podbay/agents";
/// Where those of commands are in a project.
pub const COMMANDS_FOLDER: &str = ".podbay/commands";
/// Most files of one folder.
const MOST: usize = 64;
const END: &str = ".md";

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkdownFile {
    /// The file's name without its end.
    pub stem: String,
    pub path: PathBuf,
    /// The text; the error says why it cannot be read.
    pub text: Result<String, String>,
}

/// The files of a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarkdownFiles {
    /// In the order of their names.
    pub files: Vec<MarkdownFile>,
    /// Why there are no others.
    pub problem: Option<String>,
}

impl MarkdownFiles {
    /// Reads those of the user, who may link to them; one of more than `longest` bytes is none.
    pub fn of_user(folder: &Path, longest: u64) -> Self {
        let names = match names(folder) {
            Ok(names) => names,
            Err(error) => return Self::unread(folder, &error),
        };
        let read = |path: &Path| {
            user_file::open(path)
                .and_then(|(file, _)| user_file::text(file, longest))
                .map_err(|error| error.to_string())
        };
        Self::of(names, folder, read)
    }

    /// Reads those in a folder of a project, which is untrusted.
    pub fn of_project(project: &Path, within: &str, longest: u64) -> Self {
        let folder = project.join(within);
        let opened = ProjectFolder::open(project, within)
            .and_then(|inner| Ok((names(&inner.listed())?, inner)));
        let (names, inner) = match opened {
            Ok(opened) => opened,
            Err(error) => return Self::unread(&folder, &error),
        };
        let read = |path: &Path| {
            let name = path.file_name().and_then(|name| name.to_str());
            inner
                .read(name.unwrap_or_default(), longest)
                .map_err(|error| error.to_string())
        };
        Self::of(names, &folder, read)
    }

    fn of(
        mut names: Vec<String>,
        folder: &Path,
        read: impl Fn(&Path) -> Result<String, String>,
    ) -> Self {
        let problem = (names.len() > MOST).then(|| {
            format!(
                "only the first {MOST} files of {} are read",
                folder.display()
            )
        });
        names.sort_unstable();
        names.truncate(MOST);
        let file = |name: String| {
            let path = folder.join(&name);
            MarkdownFile {
                stem: name.trim_end_matches(END).to_owned(),
                text: read(&path),
                path,
            }
        };
        Self {
            files: names.into_iter().map(file).collect(),
            problem,
        }
    }

    fn unread(folder: &Path, error: &io::Error) -> Self {
        let problem = (error.kind() != io::ErrorKind::NotFound)
            .then(|| format!("the files in {} are not read: {error}", folder.display()));
        Self {
            files: Vec::new(),
            problem,
        }
    }
}

/// Returns the names of Markdown files in a folder, a bounded number of them.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    let entries = std::fs::read_dir(folder)?.take(MOST * 16).flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    Ok(names
        .filter(|name| name.len() > END.len() && name.ends_with(END))
        .take(MOST + 1)
        .collect())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use nix::sys::stat::Mode;

    use super::*;

    const LONGEST: u64 = 32 << 10;

    #[test]
    fn only_regular_files_of_a_projects_own_folder_are_read() {
        let temp = tempfile::tempdir().expect("a folder");
        let project = temp.path().join("project");
        let folder = project.join(AGENTS_FOLDER);
        let of_project =
            |project: &Path| MarkdownFiles::of_project(project, AGENTS_FOLDER, LONGEST);
        fs::create_dir_all(&folder).expect("made");
        assert_eq!(
            of_project(&temp.path().join("none")),
            MarkdownFiles::default()
        );
        assert_eq!(of_project(&project), MarkdownFiles::default());
        fs::write(temp.path().join("secret"), "secret").expect("written");
        fs::write(folder.join("b.md"), "b").expect("written");
        fs::write(folder.join("notes.txt"), "x").expect("written");
        fs::write(folder.join("huge.md"), "x".repeat(40 << 10)).expect("written");
        symlink(temp.path().join("secret"), folder.join("a.md")).expect("linked");
        nix::unistd::mkfifo(&folder.join("c.md"), Mode::S_IRWXU).expect("made");
        fs::create_dir(folder.join("d.md")).expect("made");
        let found = of_project(&project);
        let texts: Vec<(&str, Result<&str, &str>)> = found
            .files
            .iter()
            .map(|file| {
                let text = file.text.as_ref().map(String::as_str);
                (file.stem.as_str(), text.map_err(String::as_str))
            })
            .collect();
        assert_eq!(
            texts,
            [
                ("a", Err("it is a symbolic link")),
                ("b", Ok("b")),
                ("c", Err("it is not a regular file")),
                ("d", Err("it is not a regular file")),
                ("huge", Err("it has more than 32768 bytes")),
            ]
        );
        // The user's may be links.
        assert_eq!(
            MarkdownFiles::of_user(&folder, LONGEST).files[0]
                .text
                .as_deref(),
            Ok("secret")
        );
        fs::remove_dir_all(&folder).expect("removed");
        symlink(temp.path(), &folder).expect("linked");
        let found = of_project(&project);
        assert!(found.files.is_empty() && found.problem.is_some());
    }

    #[test]
    fn the_number_of_files_is_bounded() {
        let temp = tempfile::tempdir().expect("a folder");
        for n in 0..70 {
            fs::write(temp.path().join(format!("{n:03}.md")), "x").expect("written");
        }
        let found = MarkdownFiles::of_user(temp.path(), LONGEST);
        assert_eq!(found.files.len(), MOST);
        assert!(
            found
                .problem
                .is_some_and(|problem| problem.contains("only the first 64"))
        );
    }
}
