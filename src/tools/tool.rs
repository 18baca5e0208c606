use serde_json::Value;
use serde_json::json;

use super::Options;
use super::ToolSet;
use super::schema::Schema;
use podbay_event::is_same_name;
use podbay_policy::Action;

/// Makes an action from arguments that fit the schema. The error says what is wrong with the
/// values; notes tell what was replaced.
pub(super) type Make = fn(Value, &Options, &mut Vec<String>) -> Result<Action, String>;

/// One tool as the model sees it.
pub struct Tool {
    pub name: &'static str,
    /// Names that models trained on other agents use for it.
    pub(super) aliases: &'static [&'static str],
    pub description: &'static str,
    /// The JSON schema of its arguments.
    pub parameters: Value,
    pub(super) schema: Schema,
    /// Aliases of its arguments, each with the right name.
    pub(super) renamed: &'static [(&'static str, &'static str)],
    pub(super) smallest_set: ToolSet,
    example: &'static str,
    /// What the small set lists: the arguments, and those of them that are required.
    small: Option<(&'static [&'static str], &'static [&'static str])>,
    make: Make,
}

impl Tool {
    /// Returns a tool of the full set, with the schema of its arguments.
    pub(super) fn new(
        name: &'static str,
        description: &'static str,
        parameters: Value,
        make: Make,
    ) -> Self {
        let schema = Schema::new(&parameters);
        let example = r#"{"path": "."}"#;
        Self {
            name,
            aliases: podbay_wire::tool(name).map_or(&[], |tool| tool.aliases),
            description,
            parameters,
            schema,
            renamed: &[],
            smallest_set: ToolSet::Full,
            example,
            small: None,
            make,
        }
    }

    /// Sets the names that models trained on other agents use for it; those of a tool in the
    /// sandbox are in [`podbay_wire::ToolFacts`].
    pub(super) fn known_as(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    /// Sets aliases of its arguments, each with the right name.
    pub(super) fn renamed(self, renamed: &'static [(&'static str, &'static str)]) -> Self {
        Self { renamed, ..self }
    }

    /// Sets the smallest set that lists it.
    pub(super) fn in_sets_from(self, smallest_set: ToolSet) -> Self {
        Self {
            smallest_set,
            ..self
        }
    }

    /// Sets valid arguments as an example.
    pub(super) fn such_as(self, example: &'static str) -> Self {
        Self { example, ..self }
    }

    /// Adds arguments that are accepted but not listed, since listed ones can express the same.
    pub(super) fn also_takes(mut self, properties: &Value) -> Self {
        let mut all = self.parameters.clone();
        for (name, property) in properties.as_object().into_iter().flatten() {
            all["properties"][name] = property.clone();
        }
        self.schema = Schema::new(&all);
        self
    }

    /// Sets the arguments that the small set lists, and those of them that are required.
    pub(super) fn small(
        self,
        kept: &'static [&'static str],
        required: &'static [&'static str],
    ) -> Self {
        Self {
            small: Some((kept, required)),
            ..self
        }
    }

    /// Returns whether its calls change nothing, as far as its example tells.
    pub(super) fn only_reads(&self) -> bool {
        let example = serde_json::from_str(self.example);
        example.is_ok_and(|arguments| {
            self.action(arguments, &Options::default(), &mut Vec::new())
                .is_ok_and(|action| match action {
                    // The working directory of a session is one for all its agents.
                    Action::Box(_) => action.runs_beside_others(),
                    Action::Host(_) => action.is_read_only(),
                })
        })
    }

    /// Replaces what the model is told of an argument.
    pub(super) fn describe_argument(&mut self, argument: &str, words: &str) {
        self.parameters["properties"][argument]["description"] = words.into();
    }

    /// Replaces what the model may choose from for an argument; others are still accepted here.
    pub(super) fn name_choices(&mut self, argument: &str, choices: &[&str]) {
        self.parameters["properties"][argument]["enum"] = json!(choices);
    }

    /// Makes the action of arguments that fit the schema.
    pub(super) fn action(
        &self,
        arguments: Value,
        options: &Options,
        notes: &mut Vec<String>,
    ) -> Result<Action, String> {
        (self.make)(arguments, options, notes)
    }

    /// Returns its aliases.
    pub fn aliases(&self) -> &'static [&'static str] {
        self.aliases
    }

    /// Lists only the arguments that every task needs: more would confuse a small model and fill
    /// its window. The others are still accepted.
    pub(super) fn make_small(&mut self) {
        let Some((kept, required)) = self.small else {
            return;
        };
        if let Some(properties) = self.parameters["properties"].as_object_mut() {
            properties.retain(|name, _| kept.contains(&name.as_str()));
        }
        self.parameters["required"] = json!(required);
    }

    /// Returns whether it accepts an argument of this name, listed or not.
    pub(super) fn has(&self, name: &str) -> bool {
        self.schema.has(name)
    }

    /// Returns whether it accepts an argument of this name or alias, in any spelling.
    pub(super) fn takes(&self, name: &str) -> bool {
        let own = self.schema.source()["properties"]
            .as_object()
            .into_iter()
            .flat_map(serde_json::Map::keys)
            .map(String::as_str);
        own.chain(self.renamed.iter().map(|(wrong, _)| *wrong))
            .any(|known| is_same_name(known, name))
    }

    /// Returns the aliases of an argument.
    pub(super) fn other_names(&self, right: &str) -> impl Iterator<Item = &'static str> {
        self.renamed
            .iter()
            .filter(move |(_, name)| *name == right)
            .map(|(wrong, _)| *wrong)
    }

    /// Returns valid arguments as an example.
    pub(super) fn example(&self) -> &'static str {
        self.example
    }
}

/// Returns the schema of an object with these properties and no others.
pub(super) fn object(properties: &Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}
