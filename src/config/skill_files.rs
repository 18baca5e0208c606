//! Where skills are: folders with a file `SKILL.md`, the user's and those of a project, which is
//! untrusted.

use std::fs::DirEntry;
use std::io;
use std::path::Path;
use std::path::PathBuf;

use super::project_folder::ProjectFolder;
use super::user_file;

/// Where they are in a project; of two of the same name the first one counts.
pub const SKILLS_FOLDERS: [&str; 2] = [".podbay/skills", ".claude/skills"];
/// The file that says what a skill is for and what its steps are.
pub const SKILL_FILE: &str = "SKILL.md";
/// Most skills of one folder, and most bytes of one `SKILL.md`.
const MOST: usize = 64;
const LONGEST: u64 = 48 << 10;

/// A folder of skills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkillPlace {
    /// A folder of the user's, who may link to files.
    User(PathBuf),
    /// A folder of a project, by its path in it. No symlink is followed in it.
    Project {
        project: PathBuf,
        folder: &'static str,
    },
}

/// One skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillFile {
    /// The name of its folder.
    pub folder: String,
    /// The text of its `SKILL.md`; the error says why it cannot be read.
    pub text: Result<String, String>,
}

/// The skills of a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkillFiles {
    /// In the order of their names.
    pub files: Vec<SkillFile>,
    /// Why there are no others.
    pub problem: Option<String>,
}

impl SkillPlace {
    /// Returns the path of the folder.
    pub fn path(&self) -> PathBuf {
        match self {
            Self::User(folder) => folder.clone(),
            Self::Project { project, folder } => project.join(folder),
        }
    }

    /// Reads all skills of the folder. What is no skill is left out without a word.
    pub fn list(&self) -> SkillFiles {
        let listed = match self {
            Self::User(folder) => names(folder, true),
            Self::Project { project, folder } => ProjectFolder::open(project, folder)
                .and_then(|opened| names(&opened.listed(), false)),
        };
        let mut names = match listed {
            Ok(names) => names,
            Err(error) => return self.unread(&error),
        };
        let problem = (names.len() > MOST).then(|| {
            let path = self.path();
            format!(
                "only the first {MOST} skills of {} are read",
                path.display()
            )
        });
        names.sort_unstable();
        names.truncate(MOST);
        let file = |folder: String| {
            let text = self.read(&folder).transpose()?;
            Some(SkillFile { folder, text })
        };
        SkillFiles {
            files: names.into_iter().filter_map(file).collect(),
            problem,
        }
    }

    /// Reads the `SKILL.md` of the skill in the folder of this name; `None`: there is none.
    pub fn read(&self, name: &str) -> Result<Option<String>, String> {
        let read = match self {
            Self::User(folder) => user_file::open(&folder.join(name).join(SKILL_FILE))
                .and_then(|(file, _)| user_file::text(file, LONGEST)),
            Self::Project { project, folder } => ProjectFolder::open(project, folder)
                .and_then(|opened| opened.folder(name)?.read(SKILL_FILE, LONGEST)),
        };
        match read {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    fn unread(&self, error: &io::Error) -> SkillFiles {
        let problem = (error.kind() != io::ErrorKind::NotFound).then(|| {
            let path = self.path();
            format!("the skills in {} are not read: {error}", path.display())
        });
        SkillFiles {
            files: Vec::new(),
            problem,
        }
    }
}

/// Returns the names of folders in a folder, a bounded number of them. A symlink in a project is
/// named, so that it can be said why it is not used.
fn names(folder: &Path, follow: bool) -> io::Result<Vec<String>> {
    let is_wanted = |entry: &DirEntry| {
        let kind = entry.file_type();
        kind.is_ok_and(|kind| {
            kind.is_dir() || kind.is_symlink() && (!follow || entry.path().is_dir())
        })
    };
    let entries = std::fs::read_dir(folder)?.take(MOST * 16).flatten();
    let names = entries.filter(is_wanted);
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    Ok(names
        .filter(|name| !name.starts_with('.'))
        .take(MOST + 1)
        .collect())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use nix::sys::stat::Mode;

    use super::*;

    fn write(folder: &Path, text: &str) {
        fs::create_dir_all(folder).expect("made");
        fs::write(folder.join(SKILL_FILE), text).expect("written");
    }

    #[test]
    fn only_regular_files_of_a_projects_own_folders_are_skills() {
        let temp = tempfile::tempdir().expect("a folder");
        let project = temp.path().join("project");
        let place = SkillPlace::Project {
            project: project.clone(),
            folder: SKILLS_FOLDERS[0],
        };
        assert_eq!(place.list(), SkillFiles::default());
        let folder = project.join(SKILLS_FOLDERS[0]);
        let outside = temp.path().join("outside");
        write(&outside, "outside");
        write(&folder.join("b"), "b");
        write(&folder.join("huge"), &"x".repeat(50 << 10));
        write(&folder.join(".hidden"), "x");
        fs::create_dir(folder.join("empty")).expect("made");
        fs::write(folder.join("file.md"), "x").expect("written");
        symlink(&outside, folder.join("a")).expect("linked");
        fs::create_dir(folder.join("c")).expect("made");
        symlink(outside.join(SKILL_FILE), folder.join("c").join(SKILL_FILE)).expect("linked");
        fs::create_dir(folder.join("d")).expect("made");
        nix::unistd::mkfifo(&folder.join("d").join(SKILL_FILE), Mode::S_IRWXU).expect("made");
        let found = place.list();
        let texts: Vec<(&str, Result<&str, &str>)> = found
            .files
            .iter()
            .map(|file| {
                let text = file.text.as_ref().map(String::as_str);
                (file.folder.as_str(), text.map_err(String::as_str))
            })
            .collect();
        let no_folder = "it is, or is reached through, no folder but a link or a file";
        assert_eq!(
            texts,
            [
                ("a", Err(no_folder)),
                ("b", Ok("b")),
                ("c", Err("it is a symbolic link")),
                ("d", Err("it is not a regular file")),
                ("huge", Err("it has more than 49152 bytes")),
            ]
        );
        // The user's may be links.
        let of_user = SkillPlace::User(folder.clone()).list();
        assert_eq!(of_user.files[0].text.as_deref(), Ok("outside"));
        fs::remove_dir_all(&folder).expect("removed");
        symlink(&outside, &folder).expect("linked");
        let found = place.list();
        assert!(
            found.files.is_empty() && found.problem.is_some(),
            "{found:?}"
        );
    }

    #[test]
    fn the_number_of_skills_is_bounded() {
        let temp = tempfile::tempdir().expect("a folder");
        for n in 0..70 {
            write(&temp.path().join(format!("s{n:03}")), "x");
        }
        let found = SkillPlace::User(temp.path().to_owned()).list();
        assert_eq!(found.files.len(), MOST);
        let problem = found.problem.expect("it is said");
        assert!(problem.contains("only the first 64"), "{problem}");
    }
}
