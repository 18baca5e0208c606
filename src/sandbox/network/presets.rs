//! Names for hosts that belong together.

use std::sync::LazyLock;

use serde::Deserialize;

const FILE: &str = include_str!("presets.toml");

/// Hosts that belong together.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    pub name: String,
    /// What they are for.
    pub why: String,
    pub hosts: Vec<String>,
    /// Names in a project's top folder that say it may need them.
    pub files: Vec<String>,
}

#[derive(Deserialize)]
struct File {
    preset: Vec<Preset>,
}

static PRESETS: LazyLock<Vec<Preset>> = LazyLock::new(|| {
    toml::from_str::<File>(FILE)
        .expect("our own file, which a test reads")
        .preset
});

/// Returns all of them.
pub fn presets() -> &'static [Preset] {
    &PRESETS
}

/// Returns the presets that a project may need, by the names in its top folder.
pub fn presets_for(names: &[&str]) -> Vec<&'static Preset> {
    let fits = |preset: &&Preset| {
        preset
            .files
            .iter()
            .any(|file| names.contains(&file.as_str()))
    };
    presets().iter().filter(fits).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use podbay_egress::written::parse;
    use podbay_wire::EgressEffect;

    use super::*;

    #[test]
    fn every_preset_has_a_name_of_its_own_and_rules_that_hold() {
        let names: BTreeSet<&str> = presets()
            .iter()
            .map(|preset| preset.name.as_str())
            .collect();
        assert_eq!(names.len(), presets().len());
        for preset in presets() {
            assert!(!preset.why.is_empty() && !preset.hosts.is_empty());
            for host in &preset.hosts {
                parse(host, EgressEffect::Allow).expect(host);
                assert!(!host.contains('*'), "{host}: a preset names its hosts");
            }
        }
    }

    #[test]
    fn a_project_may_need_what_its_manifests_say() {
        let names = |found: &[&str]| {
            presets_for(found)
                .into_iter()
                .map(|preset| preset.name.as_str())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            names(&["Cargo.toml", "package.json", "README.md"]),
            ["npm", "crates"]
        );
        assert!(names(&["README.md"]).is_empty());
    }
}
