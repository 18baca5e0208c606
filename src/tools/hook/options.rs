//! The section `[hooks]`, in both accepted formats.

use std::fmt;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::de::MapAccess;
use serde::de::SeqAccess;
use serde::de::Visitor;
use serde::de::value::MapAccessDeserializer;

use super::placeholder;
use podbay_event::Seconds;

/// Commands of your own at certain moments of a session: the section `[hooks]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct HookOptions {
    /// Before the first task of a session, also of a resumed one; its output is added for the
    /// model.
    #[serde(deserialize_with = "hooks")]
    pub session_start: Vec<Hook>,
    /// Before a task or message of yours is sent to the model; it can block it, and its output is
    /// added for the model.
    #[serde(deserialize_with = "hooks")]
    pub user_prompt: Vec<Hook>,
    /// Before a tool call that was allowed; it can block it.
    #[serde(deserialize_with = "hooks")]
    pub pre_tool_use: Vec<Hook>,
    /// After a tool call, in the background.
    #[serde(deserialize_with = "hooks")]
    pub post_tool_use: Vec<Hook>,
    /// Before the conversation is compacted.
    #[serde(deserialize_with = "hooks")]
    pub pre_compact: Vec<Hook>,
    /// After each task or message of yours is done.
    #[serde(deserialize_with = "hooks")]
    pub stop: Vec<Hook>,
    /// Time limit of a hook without its own.
    pub timeout: Seconds,
    /// Which exit codes block a call or a message: `nonzero`, every code but 0, or `exit2`, that
    /// one alone.
    pub block_on: BlockOn,
    /// Whether a hook that timed out blocks its call (`block`) or lets it pass (`pass`).
    pub on_timeout: OnTimeout,
}

impl Default for HookOptions {
    fn default() -> Self {
        Self {
            session_start: Vec::new(),
            user_prompt: Vec::new(),
            pre_tool_use: Vec::new(),
            post_tool_use: Vec::new(),
            pre_compact: Vec::new(),
            stop: Vec::new(),
            timeout: Seconds::new(30),
            block_on: BlockOn::Nonzero,
            on_timeout: OnTimeout::Block,
        }
    }
}

impl HookOptions {
    /// Returns the keys of hooks that must not run, with the reasons: the model's text could run as
    /// a command there.
    pub fn mistakes(&self) -> Vec<(String, String)> {
        let moments = [
            ("session_start", &self.session_start),
            ("user_prompt", &self.user_prompt),
            ("pre_tool_use", &self.pre_tool_use),
            ("post_tool_use", &self.post_tool_use),
            ("pre_compact", &self.pre_compact),
            ("stop", &self.stop),
        ];
        let of = |(moment, hooks): (&str, &Vec<Hook>)| -> Vec<(String, String)> {
            let refused = hooks
                .iter()
                .filter_map(|hook| placeholder::check(&hook.run).err());
            refused
                .map(|why| (format!("hooks.{moment}"), why))
                .collect()
        };
        moments.into_iter().flat_map(of).collect()
    }
}

/// One command, and when it runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Hook {
    /// For the shell. `{{tool_name}}` and `{{tool_input}}` stand for the call's, as words outside
    /// of quotes; `"$PODBAY_TOOL_ARGS"` may stand anywhere.
    pub run: String,
    #[serde(default, rename = "if")]
    pub condition: Condition,
    /// `sandbox`, or `host`: your own machine, which no project's settings may ask for.
    #[serde(default, rename = "where")]
    pub place: HookPlace,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Seconds>,
}

/// Which calls a hook runs for. It saves processes; to forbid something, use rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Condition {
    /// A tool's name, or `*`.
    pub tool: String,
    /// Text that the call's arguments must contain: in one of them, or in their JSON.
    #[serde(alias = "inputContains")]
    pub input_contains: String,
}

impl Default for Condition {
    fn default() -> Self {
        Self {
            tool: "*".to_owned(),
            input_contains: String::new(),
        }
    }
}

/// Where a hook runs.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum HookPlace {
    #[default]
    #[serde(alias = "container")]
    Sandbox,
    Host,
}

/// Which exit codes block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BlockOn {
    Nonzero,
    Exit2,
}

/// What a hook that timed out does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    Block,
    Pass,
}

/// Parses a list of tables, or a table of commands by tool name, in which `*` comes last.
fn hooks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Hook>, D::Error> {
    struct Either;

    impl<'de> Visitor<'de> for Either {
        type Value = Vec<Hook>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of tables with `run`, or a table of commands by the tool's name")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut hooks = Vec::new();
            while let Some(hook) = list.next_element()? {
                hooks.push(hook);
            }
            Ok(hooks)
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            let commands = std::collections::BTreeMap::<String, String>::deserialize(
                MapAccessDeserializer::new(map),
            )?;
            let mut hooks: Vec<Hook> = commands
                .into_iter()
                .map(|(tool, run)| Hook {
                    run,
                    condition: Condition {
                        tool,
                        ..Condition::default()
                    },
                    place: HookPlace::default(),
                    timeout: None,
                })
                .collect();
            hooks.sort_by_key(|hook| hook.condition.tool == "*");
            Ok(hooks)
        }
    }

    deserializer.deserialize_any(Either)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<Hook> {
        toml::from_str::<HookOptions>(text)
            .expect("reads")
            .pre_tool_use
    }

    #[test]
    fn hooks_parse_from_a_list_or_a_table_of_commands() {
        let list = read(
            "[[pre_tool_use]]\nrun = 'a'\nif = { tool = 'bash' }\n[[pre_tool_use]]\nrun = 'b'\n",
        );
        let table = read("[pre_tool_use]\n'*' = 'b'\nbash = 'a'\n");
        assert_eq!(list, table);
        assert_eq!(
            (
                list[0].condition.tool.as_str(),
                list[1].condition.tool.as_str(),
                list[1].place
            ),
            ("bash", "*", HookPlace::Sandbox)
        );
        assert_eq!(
            read("[[pre_tool_use]]\nrun = 'a'\nif = { inputContains = 'x' }\n")[0]
                .condition
                .input_contains,
            "x"
        );
    }

    #[test]
    fn an_invalid_hook_is_refused_with_the_reason() {
        for (text, says) in [
            ("pre_tool_use = 'a'", "a list of tables with `run`"),
            ("[[pre_tool_use]]\nif = { tool = 'bash' }", "`run`"),
            ("[[pre_tool_use]]\nrun = 'a'\nwhere = 'moon'", "`sandbox`"),
        ] {
            let error = toml::from_str::<HookOptions>(text)
                .expect_err("must be refused")
                .to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
