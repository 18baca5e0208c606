//! The bundles of settings that `--preset` names.

use std::collections::BTreeMap;

use clap::builder::PossibleValue;
use clap::builder::PossibleValuesParser;
use serde::Deserialize;
use toml::Value;

const PRESETS: &str = include_str!("presets.toml");

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Preset {
    help: String,
    /// It says how much is asked.
    #[serde(default)]
    pub(super) asks: bool,
    pub(super) settings: BTreeMap<String, Value>,
}

/// Returns all presets in the order of the file.
fn all() -> Vec<(String, Preset)> {
    let mut presets: Vec<(String, Preset)> = toml::from_str::<BTreeMap<String, Preset>>(PRESETS)
        .expect("the file is part of the program, and a test reads it")
        .into_iter()
        .collect();
    presets.sort_by_key(|(name, _)| PRESETS.find(&format!("[{name}]")));
    presets
}

pub(super) fn find(name: &str) -> Option<Preset> {
    all()
        .into_iter()
        .find_map(|(known, preset)| (known == name).then_some(preset))
}

/// Returns what takes the name of a preset on the command line.
pub(super) fn parser() -> PossibleValuesParser {
    PossibleValuesParser::new(
        all()
            .into_iter()
            .map(|(name, preset)| PossibleValue::new(name).help(preset.help)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_config::Config;
    use podbay_config::Flag;
    use podbay_config::Sources;

    #[test]
    fn every_setting_of_a_preset_is_one_and_has_a_value_that_it_takes() {
        let names: Vec<String> = all().into_iter().map(|(name, _)| name).collect();
        assert_eq!((names[0].as_str(), names.len()), ("architect", 10));
        for (name, preset) in all() {
            let sources = Sources {
                flags: preset
                    .settings
                    .iter()
                    .map(|(key, value)| Flag::new("--preset", key, value.clone()))
                    .collect(),
                ..Sources::default()
            };
            let loaded = Config::load(&sources);
            let loaded = loaded.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(loaded.warnings.is_empty(), "{name}: {:?}", loaded.warnings);
        }
    }
}
