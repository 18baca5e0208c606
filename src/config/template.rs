use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::Setting;
use super::reference::settings;

/// Renders a settings file that sets nothing: every key is commented out, with its default and
/// documentation.
///
/// The table headers are not commented out, so that a line takes effect once its `#` is removed.
pub fn template<C: Default + Serialize + JsonSchema>() -> String {
    let mut sections: Vec<(String, Vec<Setting>)> = Vec::new();
    for setting in settings::<C>() {
        let table = setting
            .key
            .rsplit_once('.')
            .map_or("", |(table, _)| table)
            .to_owned();
        match sections.iter_mut().find(|(name, _)| *name == table) {
            Some((_, keys)) => keys.push(setting),
            None => sections.push((table, vec![setting])),
        }
    }
    // Keys below a header belong to its table, so top-level keys come first.
    sections.sort_by_key(|(table, _)| !table.is_empty());
    let mut text = String::new();
    for (table, keys) in sections {
        if !table.is_empty() {
            write!(text, "\n[{table}]\n").expect(TAKES_ALL);
        }
        for setting in keys {
            let name = setting
                .key
                .rsplit_once('.')
                .map_or(setting.key.as_str(), |(_, name)| name);
            let gap = if setting.doc.is_empty() { "" } else { " " };
            match toml_of(&setting.default) {
                Some(value) => writeln!(text, "\n#{gap}{}\n#{name} = {value}", setting.doc),
                None => writeln!(text, "\n#{gap}{}\n#{name} =", setting.doc),
            }
            .expect(TAKES_ALL);
        }
    }
    text.trim_start_matches('\n').to_owned()
}

/// Returns a value as TOML; `None` if it is not set.
fn toml_of(value: &Value) -> Option<String> {
    toml::Value::try_from(value)
        .ok()
        .map(|value| value.to_string())
}

const TAKES_ALL: &str = "a string takes all that is written";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn an_uncommented_line_of_the_template_is_the_default() {
        let text = template::<Config>();
        assert!(toml::from_str::<Config>(&text).is_ok(), "it reads as it is");
        let is_set = |line: &&str| !line.starts_with(' ') && !line.ends_with(" =");
        let all: String = text
            .lines()
            .map(|line| {
                format!(
                    "{}\n",
                    line.strip_prefix('#').filter(is_set).unwrap_or(line)
                )
            })
            .collect();
        let read: Config = toml::from_str(&all).expect("every line is a setting");
        let json =
            |config: &Config| serde_json::to_value(config).expect("settings have a JSON form");
        assert_eq!(json(&read), json(&Config::default()));
        for setting in settings::<Config>() {
            let name = setting.key.rsplit('.').next().expect("a name");
            assert!(
                text.contains(&format!("\n#{name} =")),
                "{} is missing",
                setting.key
            );
            assert!(
                text.contains(&setting.doc),
                "{} lacks its meaning",
                setting.key
            );
        }
    }
}
