//! The types of agents that a session has: built-in, the user's, the project's.

use std::path::Path;
use std::path::PathBuf;

use serde::Serialize;

use super::definition::AgentSource;
use super::definition::parse;
use podbay_config::AGENTS_FOLDER;
use podbay_config::Config;
use podbay_config::MarkdownFile;
use podbay_config::MarkdownFiles;
use podbay_tools as tools;
use podbay_tools::AgentType;
use podbay_tools::Catalogue;
use podbay_tools::ToolSet;

/// Mistakes of files that a session warns of.
const MOST_WARNINGS: usize = 5;
/// Most bytes of one file.
const LONGEST: u64 = 32 << 10;

/// All types, and what is wrong with files among them.
#[derive(Clone, Debug, Serialize)]
pub struct AgentList {
    /// The settings let the model start agents.
    pub enabled: bool,
    pub agents: Vec<AgentLine>,
    pub problems: Vec<String>,
}

/// One type.
#[derive(Clone, Debug, Serialize)]
pub struct AgentLine {
    pub source: AgentSource,
    #[serde(flatten)]
    pub agent: AgentType,
}

/// Returns the types that sessions in a project have.
pub fn agents(config: &Config, project: &Path) -> AgentList {
    list_agents(config, user_folder().as_deref(), Some(project))
}

/// Returns where the user's files are: beside their settings.
pub(crate) fn user_folder() -> Option<PathBuf> {
    podbay_config::user_folder().map(|folder| folder.join("agents"))
}

/// Reads the types: `user` is the folder of the user's files, `project` the project's folder.
pub(crate) fn list_agents(
    config: &Config,
    user: Option<&Path>,
    project: Option<&Path>,
) -> AgentList {
    let built_in = AgentType::built_in().into_iter().map(|agent| AgentLine {
        source: AgentSource::BuiltIn,
        agent,
    });
    let mut list = AgentList {
        enabled: config.agents.enabled,
        agents: built_in.collect(),
        problems: Vec::new(),
    };
    let catalogue = Catalogue::new(&tools::Options {
        set: ToolSet::Full,
        ..tools::Options::default()
    });
    if let Some(folder) = user {
        let files = MarkdownFiles::of_user(folder, LONGEST);
        list.add(files, AgentSource::User, &catalogue);
    }
    if let Some(project) = project {
        let files = MarkdownFiles::of_project(project, AGENTS_FOLDER, LONGEST);
        list.add(files, AgentSource::Project, &catalogue);
    }
    list
}

impl AgentList {
    fn add(&mut self, files: MarkdownFiles, source: AgentSource, catalogue: &Catalogue) {
        self.problems.extend(files.problem);
        for file in &files.files {
            let added = parse(file, source, catalogue, &mut self.problems)
                .and_then(|agent| self.put(agent, source));
            if let Err(problem) = added {
                self.problems
                    .push(format!("{} is not used: {problem}", shown(file)));
            }
        }
    }

    /// Adds a type. The user's replace ours; a project's replace none.
    fn put(&mut self, agent: AgentType, source: AgentSource) -> Result<(), String> {
        let line = AgentLine { source, agent };
        let known = self
            .agents
            .iter_mut()
            .find(|known| known.agent.name == line.agent.name);
        match known {
            None => self.agents.push(line),
            Some(known) if source == AgentSource::User && known.source == AgentSource::BuiltIn => {
                *known = line;
            }
            Some(known) => {
                let whose = match known.source {
                    AgentSource::BuiltIn => "Podbay's own",
                    AgentSource::User => "another one of the user's",
                    AgentSource::Project => "another one of the project's",
                };
                return Err(format!("its name `{}` is {whose}", known.agent.name));
            }
        }
        Ok(())
    }

    /// Returns the types alone, and what a session warns of.
    pub(crate) fn into_types(self) -> (Vec<AgentType>, Vec<String>) {
        let types = self.agents.into_iter().map(|line| line.agent).collect();
        let mut warnings = self.problems;
        let n_more = warnings.len().saturating_sub(MOST_WARNINGS);
        if n_more > 0 {
            warnings.truncate(MOST_WARNINGS);
            warnings.push(format!(
                "{n_more} more files of agents have mistakes: `podbay agents list` names them"
            ));
        }
        (types, warnings)
    }
}

fn shown(file: &MarkdownFile) -> String {
    let name = file.path.display().to_string();
    name.chars()
        .map(|c| {
            if podbay_event::is_hidden(c) {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn write(folder: &Path, name: &str, description: &str) {
        fs::create_dir_all(folder).expect("made");
        let text = format!("---\nname: {name}\ndescription: {description}\n---\nDo it.\n");
        fs::write(folder.join(format!("{name}.md")), text).expect("written");
    }

    #[test]
    fn a_project_adds_agents_and_replaces_none() {
        let temp = tempfile::tempdir().expect("a folder");
        let (user, project) = (temp.path().join("user"), temp.path().join("project"));
        write(&user, "explore", "the user's");
        write(&user, "mine", "the user's");
        let folder = project.join(AGENTS_FOLDER);
        for name in ["coder", "explore", "mine", "theirs"] {
            write(&folder, name, "the project's");
        }
        fs::write(folder.join("bad.md"), "---\nsystem: obey\n---\n").expect("written");
        let list = list_agents(&Config::default(), Some(&user), Some(&project));
        let of = |name: &str| {
            let mut found = list.agents.iter().filter(|line| line.agent.name == name);
            let line = found.next().expect(name);
            assert!(found.next().is_none(), "{name}");
            (line.source, line.agent.description.as_str())
        };
        assert_eq!(of("coder").0, AgentSource::BuiltIn);
        assert_eq!(of("explore"), (AgentSource::User, "the user's"));
        assert_eq!(of("mine"), (AgentSource::User, "the user's"));
        assert_eq!(of("theirs"), (AgentSource::Project, "the project's"));
        assert_eq!(list.problems.len(), 4, "{:?}", list.problems);
        assert!(list.problems[0].contains("bad.md is not used: line 2: the keys are"));
        assert!(list.problems[1].contains("its name `coder` is Podbay's own"));
    }
}
