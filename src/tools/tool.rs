use serde_json::Value;
use serde_json::json;

use super::Options;
use super::Set;
use super::schema::Schema;
use podbay_event::is_same_name;
use podbay_policy::Action;

/// Makes an action from arguments that fit the schema. Says what is wrong with their values, and
/// notes what was taken otherwise.
pub(super) type Make = fn(Value, &Options, &mut Vec<String>) -> Result<Action, String>;

/// One tool as the model sees it.
pub struct Tool {
    pub name: &'static str,
    /// Names that models trained on other systems use for it.
    pub(super) aliases: &'static [&'static str],
    pub description: &'static str,
    /// The JSON schema of its arguments.
    pub parameters: Value,
    pub(super) schema: Schema,
    /// Other names of its arguments, and the right ones.
    pub(super) renamed: &'static [(&'static str, &'static str)],
    pub(super) smallest_set: Set,
    example: &'static str,
    /// What the small set tells of it: the arguments that are left, and those of them that must be
    /// there.
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
            aliases: &[],
            description,
            parameters,
            schema,
            renamed: &[],
            smallest_set: Set::Full,
            example,
            small: None,
            make,
        }
    }

    /// Names that models trained on other systems use for it.
    pub(super) fn known_as(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    /// Other names of its arguments, each with the right one.
    pub(super) fn renamed(self, renamed: &'static [(&'static str, &'static str)]) -> Self {
        Self { renamed, ..self }
    }

    /// The smallest set that it is told in.
    pub(super) fn in_sets_from(self, smallest_set: Set) -> Self {
        Self {
            smallest_set,
            ..self
        }
    }

    /// Arguments that would be right, to learn from.
    pub(super) fn such_as(self, example: &'static str) -> Self {
        Self { example, ..self }
    }

    /// Arguments that are understood and not told: what they do can be said by those that are.
    pub(super) fn also_takes(mut self, properties: &Value) -> Self {
        let mut all = self.parameters.clone();
        for (name, property) in properties.as_object().into_iter().flatten() {
            all["properties"][name] = property.clone();
        }
        self.schema = Schema::new(&all);
        self
    }

    /// Only these arguments are told in the small set, the latter of them as those that must be
    /// there.
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

    /// Makes the action of arguments that fit the schema.
    pub(super) fn action(
        &self,
        arguments: Value,
        options: &Options,
        notes: &mut Vec<String>,
    ) -> Result<Action, String> {
        (self.make)(arguments, options, notes)
    }

    /// Returns the names that it is known by elsewhere.
    pub fn aliases(&self) -> &'static [&'static str] {
        self.aliases
    }

    /// Tells only of the arguments that every task needs: a small model loses itself among the
    /// others, and its window is small too. Who knows the others all the same may use them.
    pub(super) fn make_small(&mut self) {
        let Some((kept, required)) = self.small else {
            return;
        };
        if let Some(properties) = self.parameters["properties"].as_object_mut() {
            properties.retain(|name, _| kept.contains(&name.as_str()));
        }
        self.parameters["required"] = json!(required);
    }

    /// Returns whether an argument is called so here, also one that is not told.
    pub(super) fn has(&self, name: &str) -> bool {
        self.schema.has(name)
    }

    /// Returns whether an argument is called so, here or elsewhere, however it is spelled.
    pub(super) fn takes(&self, name: &str) -> bool {
        let own = self.schema.source()["properties"]
            .as_object()
            .into_iter()
            .flat_map(serde_json::Map::keys)
            .map(String::as_str);
        own.chain(self.renamed.iter().map(|(wrong, _)| *wrong))
            .any(|known| is_same_name(known, name))
    }

    /// Returns the other names of an argument.
    pub(super) fn other_names(&self, right: &str) -> impl Iterator<Item = &'static str> {
        self.renamed
            .iter()
            .filter(move |(_, name)| *name == right)
            .map(|(wrong, _)| *wrong)
    }

    /// Returns arguments that would be right, to learn from.
    pub(super) fn example(&self) -> &'static str {
        self.example
    }
}

/// Returns the schema of an object that has these properties and no others.
pub(super) fn object(properties: &Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}
