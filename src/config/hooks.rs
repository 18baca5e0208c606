//! Special handling of `[hooks]`: they have two formats, and a project may not run any on the host.

use toml::Table;
use toml::Value;

use super::IgnoredSetting;
use super::Latitude;
use super::layer::Layer;

const SECTION: &str = "hooks";
const PLACE: &str = "where";

/// Converts tables of commands by tool name to lists, so that each layer can add to the others'.
pub(super) fn to_lists(table: &mut Table) {
    let Some(Value::Table(hooks)) = table.get_mut(SECTION) else {
        return;
    };
    for (_, value) in hooks.iter_mut() {
        if let Value::Table(commands) = value
            && !commands.is_empty()
            && commands.values().all(Value::is_str)
        {
            let mut commands: Vec<(String, Value)> = std::mem::take(commands).into_iter().collect();
            commands.sort_by_key(|(tool, _)| tool == "*");
            let hook = |(tool, run)| {
                let condition = Table::from_iter([("tool".to_owned(), Value::String(tool))]);
                Value::Table(Table::from_iter([
                    ("run".to_owned(), run),
                    ("if".to_owned(), Value::Table(condition)),
                ]))
            };
            *value = Value::Array(commands.into_iter().map(hook).collect());
        }
    }
}

/// Removes host hooks from a project's layer, trusted or not, and returns them.
pub(super) fn without_host(layer: &mut Layer) -> Vec<IgnoredSetting> {
    let mut taken = Vec::new();
    if let Some(Value::Table(hooks)) = layer.table.get_mut(SECTION) {
        for (name, value) in hooks.iter_mut() {
            let Value::Array(list) = value else { continue };
            let is_of_host = |hook: &Value| {
                hook.get(PLACE)
                    .and_then(Value::as_str)
                    .is_some_and(|place| place == "host")
            };
            for hook in list.extract_if(.., |hook| is_of_host(hook)) {
                taken.push((format!("{SECTION}.{name}"), hook.to_string()));
            }
        }
    }
    let passed = |(key, value): (String, String)| IgnoredSetting {
        origin: layer.origin(&key),
        key,
        value,
        holds: "what the other settings say".to_owned(),
        latitude: Latitude::AddInSandbox,
    };
    taken.into_iter().map(passed).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn layer(text: &str) -> Layer {
        Layer::parse(Path::new("config.toml"), text.to_owned()).expect("reads")
    }

    #[test]
    fn a_table_of_hook_commands_is_converted_to_a_list() {
        let table =
            layer("[hooks.pre_tool_use]\n'*' = 'b'\nbash = 'a'\n[hooks]\ntimeout = 3").table;
        let list = layer(
            "[[hooks.pre_tool_use]]\nrun = 'a'\nif = {tool = 'bash'}\n[[hooks.pre_tool_use]]\nrun = 'b'\nif = {tool = '*'}\n[hooks]\ntimeout = 3",
        );
        assert_eq!(table, list.table);
    }

    #[test]
    fn host_hooks_of_a_project_are_removed_and_reported() {
        let mut layer =
            layer("[[hooks.stop]]\nrun = 'a'\n[[hooks.stop]]\nrun = 'b'\nwhere = 'host'\n");
        let taken = without_host(&mut layer);
        assert_eq!(
            layer.table["hooks"]["stop"].as_array().map(Vec::len),
            Some(1)
        );
        assert_eq!(taken.len(), 1);
        let says = "config.toml:1: `hooks.stop` is ignored: a project may only add to it what runs in the sandbox, and only once it is trusted, and what the other settings say holds";
        assert_eq!(
            (taken[0].value.contains('b'), taken[0].to_string().as_str()),
            (true, says)
        );
    }
}
