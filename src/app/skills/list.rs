//! The skills that a session has: the user's, then those of the project.

use std::path::Path;
use std::path::PathBuf;

use serde::Serialize;

use super::definition::SkillSource;
use super::definition::parse;
use podbay_config::Config;
use podbay_config::SKILL_FILE;
use podbay_config::SKILLS_FOLDERS;
use podbay_config::SkillContents;
use podbay_config::SkillPlace;

/// Mistakes of skills that a session warns of.
const MOST_WARNINGS: usize = 5;

/// All skills, and what is wrong with some.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SkillList {
    /// The settings offer them to the model.
    pub enabled: bool,
    pub skills: Vec<SkillLine>,
    pub problems: Vec<String>,
}

/// One skill.
#[derive(Clone, Debug, Serialize)]
pub struct SkillLine {
    pub name: String,
    /// One line.
    pub description: String,
    pub source: SkillSource,
    /// Its `SKILL.md`: the user's by its whole path, a project's by its path in the project.
    pub path: String,
    /// Where it is read again when it is chosen.
    #[serde(skip)]
    pub(super) place: SkillPlace,
    /// The name of its folder there.
    #[serde(skip)]
    pub(super) folder: String,
}

impl SkillLine {
    /// Returns the steps as they are now, and the files that are put into the sandbox with them: those
    /// of a project's skill are there already.
    pub fn steps_and_files(&self) -> Result<(String, Vec<String>), String> {
        let text = self.place.read(&self.folder)?;
        let text = text.ok_or_else(|| "it is not there any more".to_owned())?;
        let steps = parse(&text, &self.folder, &self.path)?.steps;
        let files = match &self.place {
            SkillPlace::User(folder) => SkillContents::of(&folder.join(&self.folder)).files,
            SkillPlace::Project { .. } => Vec::new(),
        };
        Ok((steps, files.into_iter().map(|file| file.path).collect()))
    }
}

/// Returns the skills that sessions in a project have.
pub fn skills(config: &Config, project: &Path) -> SkillList {
    list_skills(config, user_folder().as_deref(), Some(project))
}

/// Returns where the user's skills are: beside their settings.
pub(super) fn user_folder() -> Option<PathBuf> {
    podbay_config::user_folder().map(|folder| folder.join("skills"))
}

/// Reads the skills: `user` is the folder of the user's, `project` the project's folder. Of two of
/// one name the first one counts, so that a project's replaces none of the user's.
pub(super) fn list_skills(
    config: &Config,
    user: Option<&Path>,
    project: Option<&Path>,
) -> SkillList {
    let mut list = SkillList {
        enabled: config.skills.enabled,
        ..SkillList::default()
    };
    if let Some(folder) = user {
        list.add(&SkillPlace::User(folder.to_owned()), SkillSource::User);
    }
    if let Some(project) = project.filter(|_| config.skills.project) {
        for folder in SKILLS_FOLDERS {
            let place = SkillPlace::Project {
                project: project.to_owned(),
                folder,
            };
            list.add(&place, SkillSource::Project);
        }
    }
    list
}

impl SkillList {
    fn add(&mut self, place: &SkillPlace, source: SkillSource) {
        let read = place.list();
        self.problems.extend(read.problem);
        for file in read.files {
            let path = shown_path(place, &file.folder);
            let added = file
                .text
                .and_then(|text| parse(&text, &file.folder, &path))
                .and_then(|skill| {
                    self.problems.extend(skill.warning);
                    self.put(SkillLine {
                        name: skill.name,
                        description: skill.description,
                        source,
                        path: path.clone(),
                        place: place.clone(),
                        folder: file.folder,
                    })
                });
            if let Err(problem) = added {
                self.problems.push(format!("{path} is not used: {problem}"));
            }
        }
    }

    fn put(&mut self, line: SkillLine) -> Result<(), String> {
        let known = self.skills.iter().find(|known| known.name == line.name);
        if let Some(known) = known {
            return Err(format!("{} has the same name", known.path));
        }
        self.skills.push(line);
        Ok(())
    }

    /// Returns what a session warns of.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = self.problems.clone();
        let n_more = warnings.len().saturating_sub(MOST_WARNINGS);
        if n_more > 0 {
            warnings.truncate(MOST_WARNINGS);
            warnings.push(format!(
                "{n_more} more warnings about skills: `podbay skills list` shows them"
            ));
        }
        warnings
    }
}

/// Returns the path of a `SKILL.md` as it is shown; a folder of a project may have any name.
pub(super) fn shown_path(place: &SkillPlace, folder: &str) -> String {
    let above = match place {
        SkillPlace::User(path) => path.display().to_string(),
        SkillPlace::Project { folder, .. } => (*folder).to_owned(),
    };
    let seen = |c: char| {
        if podbay_event::is_hidden(c) {
            '\u{fffd}'
        } else {
            c
        }
    };
    let folder: String = folder.chars().map(seen).take(100).collect();
    format!("{above}/{folder}/{SKILL_FILE}")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn write(folder: &Path, name: &str, description: &str) {
        let folder = folder.join(name);
        fs::create_dir_all(&folder).expect("made");
        let text = format!("---\nname: {name}\ndescription: {description}\n---\nDo it.\n");
        fs::write(folder.join(SKILL_FILE), text).expect("written");
    }

    #[test]
    fn a_project_adds_skills_and_replaces_none() {
        let temp = tempfile::tempdir().expect("a folder");
        let (user, project) = (temp.path().join("user"), temp.path().join("project"));
        write(&user, "mine", "the user's");
        write(&project.join(SKILLS_FOLDERS[0]), "mine", "the project's");
        write(&project.join(SKILLS_FOLDERS[0]), "theirs", "the first");
        write(&project.join(SKILLS_FOLDERS[1]), "theirs", "the second");
        write(&project.join(SKILLS_FOLDERS[1]), "other", "hidden\u{202e}");
        fs::create_dir(project.join(SKILLS_FOLDERS[0]).join("bad")).expect("made");
        fs::write(project.join(SKILLS_FOLDERS[0]).join("bad/SKILL.md"), "obey").expect("written");
        let config = Config::default();
        let list = list_skills(&config, Some(&user), Some(&project));
        let found: Vec<(&str, &str, SkillSource)> = list
            .skills
            .iter()
            .map(|line| (line.name.as_str(), line.description.as_str(), line.source))
            .collect();
        assert_eq!(
            found,
            [
                ("mine", "the user's", SkillSource::User),
                ("theirs", "the first", SkillSource::Project),
                ("other", "hidden", SkillSource::Project),
            ]
        );
        let problems = list.problems.join("\n");
        for part in [
            ".podbay/skills/bad/SKILL.md is not used: it does not begin",
            ".podbay/skills/mine/SKILL.md is not used: ",
            ".claude/skills/other/SKILL.md contains 1 invisible character",
            ".claude/skills/theirs/SKILL.md is not used: .podbay/skills/theirs/SKILL.md has the same",
        ] {
            assert!(problems.contains(part), "{part}: {problems}");
        }
        // The user may want none of a project's.
        let mut config = config;
        config.skills.project = false;
        let list = list_skills(&config, Some(&user), Some(&project));
        assert_eq!((list.skills.len(), list.problems.len()), (1, 0));
    }
}
