//! The types of agents that `spawn_agent` starts, and which tools each may use.

use serde::Deserialize;
use serde::Serialize;

use super::definitions::memory_save;
use super::tool::Tool;
use podbay_policy::matches_pattern;

const BUILT_IN: &str = include_str!("agent_types.toml");

/// What no agent may use that another one started: plans are about the whole session, and notes are
/// shown to later ones.
const NEVER: [&str; 4] = [
    "enter_plan_mode",
    "create_plan",
    "implement_plan",
    memory_save::NAME,
];

/// A type of agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentType {
    /// Lower-case letters, digits and hyphens.
    pub name: String,
    /// One line.
    pub description: String,
    /// Most requests to the model.
    pub turns: u32,
    /// Names of tools, with `*` for any letters.
    pub tools: Vec<String>,
    /// Whether each call that may change something is denied.
    pub only_reads: bool,
    /// Whether it works in a sandbox of its own, in which the project is read-only.
    #[serde(default)]
    pub own_sandbox: bool,
    /// Added to the prompt of all agents.
    pub prompt: String,
    /// Another model of the same server; `None`: the session's.
    #[serde(default)]
    pub model: Option<String>,
}

#[derive(Deserialize)]
struct Table {
    agent: Vec<AgentType>,
}

impl AgentType {
    /// Returns the types that are always there.
    pub fn built_in() -> Vec<Self> {
        toml::from_str::<Table>(BUILT_IN)
            .expect("a test reads the same table")
            .agent
    }
}

/// What an agent may use at most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentScope {
    /// A tool must be in each of these lists of patterns: that of the type, that of the call, and
    /// those of the agents above.
    lists: Vec<Vec<String>>,
    /// Whether each call that may change something is denied.
    pub only_reads: bool,
}

impl AgentScope {
    /// Narrows the scope; nothing can widen it.
    #[must_use]
    pub fn within(mut self, patterns: &[String], only_reads: bool) -> Self {
        self.lists.push(patterns.to_vec());
        self.only_reads |= only_reads;
        self
    }

    /// Returns whether an agent may use the tool of this name.
    pub fn has(&self, tool: &str) -> bool {
        !NEVER.contains(&tool)
            && self
                .lists
                .iter()
                .all(|list| list.iter().any(|pattern| matches_pattern(pattern, tool)))
    }

    /// Returns whether it names tools, which are then all listed.
    pub(super) fn names_tools(&self) -> bool {
        let is_open = |list: &Vec<String>| list.iter().any(|pattern| pattern == "*");
        !self.lists.iter().all(is_open)
    }

    pub(super) fn lets(&self, tool: &Tool) -> bool {
        self.has(tool.name) && (!self.only_reads || tool.only_reads())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Catalogue;
    use crate::Options;
    use crate::ToolSet;

    fn patterns(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn the_built_in_types_have_their_limits_and_name_tools_that_exist() {
        let types = AgentType::built_in();
        let turns: Vec<(&str, u32)> = types
            .iter()
            .map(|agent| (agent.name.as_str(), agent.turns))
            .collect();
        assert_eq!(
            turns,
            [
                ("general-purpose", 25),
                ("explore", 15),
                ("plan", 10),
                ("coder", 30),
                ("verify", 20),
                ("review", 15),
                ("bash", 10)
            ]
        );
        let full = Catalogue::new(&Options {
            set: ToolSet::Full,
            ..Options::default()
        });
        for agent in types {
            for tool in agent.tools.iter().filter(|tool| *tool != "*") {
                assert!(
                    full.tools().iter().any(|known| known.name == tool),
                    "{}: {tool}",
                    agent.name
                );
            }
        }
    }

    #[test]
    fn a_scope_is_only_ever_narrowed() {
        let all = AgentScope::default().within(&patterns(&["*"]), false);
        assert!(all.has("bash") && !all.has("create_plan") && !all.has("memory_save"));
        assert!(!all.names_tools());
        let git = all.within(&patterns(&["git_*", "bash"]), true);
        assert!(git.has("git_log") && git.has("bash") && !git.has("read_file"));
        let wider = git.within(&patterns(&["*"]), false);
        assert!(wider.has("git_log") && !wider.has("read_file") && wider.only_reads);
        assert!(wider.names_tools());
        assert!(!wider.within(&[], false).has("git_log"));
    }

    #[test]
    fn an_agent_that_only_reads_has_no_tool_that_changes_anything() {
        for options in [
            Options::default(),
            Options {
                set: ToolSet::Full,
                ..Options::default()
            },
        ] {
            let scope = AgentScope::default().within(&patterns(&["*"]), true);
            let catalogue = Catalogue::new(&options).for_agent(&scope);
            let names: Vec<&str> = catalogue.tools().iter().map(|tool| tool.name).collect();
            assert!(
                names.contains(&"read_file") && names.contains(&"grep"),
                "{names:?}"
            );
            for tool in [
                "bash",
                "edit_file",
                "write_file",
                "spawn_agent",
                "git_commit",
                "cd",
            ] {
                assert!(!names.contains(&tool), "{tool}");
                assert!(catalogue.find(tool).is_none(), "{tool}");
            }
        }
    }
}
