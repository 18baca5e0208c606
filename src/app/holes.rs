//! Which known holes a version has, by the dated table of `holes.toml`, and which of them a start
//! speaks of.

use std::cmp::Ordering;
use std::path::Path;
use std::sync::LazyLock;

use serde::Deserialize;

use podbay_engine as engine;
use podbay_engine::Facts;

/// The table of known holes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    /// The day it was put together: what became known later is not in it.
    pub(super) date: String,
    #[serde(rename = "hole")]
    holes: Vec<Hole>,
}

/// One hole of one component.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Hole {
    pub(super) id: String,
    component: Component,
    since: Option<String>,
    /// First good version of each line of releases.
    fixed: Vec<String>,
    /// Whether it lets a container out.
    #[serde(default)]
    out: bool,
    /// What it lets an attacker do, in a few words.
    pub(super) about: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Component {
    Engine,
    Containerd,
    Runc,
    Desktop,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    toml::from_str(include_str!("holes.toml"))
        .expect("the file is part of the program and a test reads it")
});

pub(super) fn table() -> &'static Table {
    &TABLE
}

impl Table {
    /// Returns the holes of a version, `None` where the version cannot be read.
    pub(super) fn of(&self, component: Component, version: &str) -> Option<Vec<&Hole>> {
        let version = Version::parse(version)?;
        Some(
            self.holes
                .iter()
                .filter(|hole| hole.component == component && hole.is_in(&version))
                .collect(),
        )
    }
}

impl Hole {
    fn is_in(&self, version: &Version) -> bool {
        if self
            .since
            .as_deref()
            .and_then(Version::parse)
            .is_some_and(|since| *version < since)
        {
            return false;
        }
        let fixed: Vec<Version> = self
            .fixed
            .iter()
            .filter_map(|fixed| Version::parse(fixed))
            .collect();
        match fixed.iter().find(|fixed| fixed.line() == version.line()) {
            Some(fixed) => version < fixed,
            // A line between or below those that were fixed never was.
            None => fixed.iter().max().is_some_and(|newest| version < newest),
        }
    }

    /// Returns the version to go to: the fixed one of the same line, else the next newer one.
    fn remedy(&self, version: &str) -> &str {
        let current = Version::parse(version);
        let newer = |fixed: &&String| {
            current
                .as_ref()
                .is_none_or(|current| Version::parse(fixed).is_some_and(|fixed| fixed > *current))
        };
        self.fixed
            .iter()
            .find(newer)
            .or(self.fixed.last())
            .map_or("", String::as_str)
    }
}

/// A version as these projects write them: `1.1.5+ds1`, `v1.7.27`, `1.4.0-rc.3`, `1.0.0-rc93`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Version {
    major: u32,
    minor: u32,
    patch: u32,
    stage: Stage,
}

/// A candidate comes before the release it is one for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Early,
    Candidate(u32),
    Release,
}

impl Version {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim().trim_start_matches('v');
        let end = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let (numbers, rest) = text.split_at(end);
        let mut numbers = numbers.trim_end_matches('.').split('.');
        let mut next = || numbers.next().map_or(Some(0), |number| number.parse().ok());
        let (major, minor, patch) = (next()?, next()?, next()?);
        let rest = rest.trim_start_matches(['-', '~', '.']);
        let stage = if let Some(number) = rest.strip_prefix("rc") {
            let digits: String = number
                .trim_start_matches(['.', '-'])
                .chars()
                .take_while(char::is_ascii_digit)
                .collect();
            Stage::Candidate(digits.parse().unwrap_or(0))
        } else if rest.starts_with("alpha") || rest.starts_with("beta") {
            Stage::Early
        } else {
            Stage::Release
        };
        Some(Self {
            major,
            minor,
            patch,
            stage,
        })
    }

    fn line(&self) -> (u32, u32) {
        (self.major, self.minor)
    }
}

/// Returns what of an engine the table speaks of.
pub(super) fn parts(facts: &Facts) -> Vec<(Component, engine::Component)> {
    let named = |name: &str| {
        facts
            .components
            .iter()
            .find(|component| component.name == name)
    };
    let engine = engine::Component {
        name: "Engine".to_owned(),
        version: facts.version.clone(),
        build: named("Engine")
            .map(|component| component.build.clone())
            .unwrap_or_default(),
    };
    let mut parts = vec![(Component::Engine, engine)];
    for (kind, name) in [
        (Component::Containerd, "containerd"),
        (Component::Runc, "runc"),
    ] {
        parts.extend(named(name).map(|found| (kind, found.clone())));
    }
    if let Some(version) = facts.platform.strip_prefix("Docker Desktop ") {
        let desktop = engine::Component {
            name: "Docker Desktop".to_owned(),
            version: version.to_owned(),
            build: String::new(),
        };
        parts.push((Component::Desktop, desktop));
    }
    parts
}

/// Says how to be rid of these holes of a component.
pub(super) fn remedy(kind: Component, found: &engine::Component, known: &[&Hole]) -> String {
    // The newest of all that are needed closes every one of them.
    let target = known
        .iter()
        .map(|hole| hole.remedy(&found.version))
        .max_by(|a, b| compare(a, b))
        .unwrap_or_default();
    let patched = if is_distribution(&found.version, &found.build) {
        "; your distribution may have closed them under the same number: its changelog of the package says"
    } else {
        ""
    };
    let title = match kind {
        Component::Engine => "the engine",
        Component::Desktop => "Docker Desktop",
        Component::Containerd => "containerd",
        Component::Runc => "runc",
    };
    format!("update {title} to {target} or newer{patched}")
}

/// Says in one line which holes of an engine let a container out, with the remedy; `None` where
/// none is known.
pub(super) fn ways_out(facts: &Facts) -> Option<String> {
    let of_part = |(kind, found): (Component, engine::Component)| {
        let known: Vec<&Hole> = table()
            .of(kind, &found.version)?
            .into_iter()
            .filter(|hole| hole.out)
            .collect();
        let ids: Vec<&str> = known.iter().map(|hole| hole.id.as_str()).collect();
        let (last, first) = ids.split_last()?;
        let ids = if first.is_empty() {
            (*last).to_owned()
        } else {
            format!("{} and {last}", first.join(", "))
        };
        Some(format!(
            "{} {} ({ids}): {}",
            found.name,
            found.version,
            remedy(kind, &found, &known)
        ))
    };
    let said: Vec<String> = parts(facts).into_iter().filter_map(of_part).collect();
    (!said.is_empty()).then(|| {
        format!(
            "known holes let a container out of this engine: {}",
            said.join("; ")
        )
    })
}

/// Returns the words of [`ways_out`] unless they were said before: what was said is remembered in a
/// folder, by the words themselves.
///
/// Another version and another table make other words.
pub(super) fn ways_out_once(facts: &Facts, said: &Path) -> Option<String> {
    use sha2::Digest;
    let words = ways_out(facts)?;
    let hash = sha2::Sha256::digest(words.as_bytes());
    let name: String = hash
        .iter()
        .take(12)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    match std::fs::File::create_new(said.join(name)) {
        Ok(_) => Some(words),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => None,
        Err(error) => {
            tracing::debug!(%error, "that holes of the engine were told cannot be remembered");
            Some(words)
        }
    }
}

/// Returns whether a distribution made this build: it may have closed holes without changing the
/// number.
fn is_distribution(version: &str, build: &str) -> bool {
    let marks = [
        "+ds",
        "~ds",
        "+dfsg",
        "ubuntu",
        "+deb",
        "~deb",
        ".el",
        ".fc",
        ".amzn",
        "suse",
        "+incompatible-",
    ];
    marks
        .iter()
        .any(|mark| version.contains(mark) || build.contains(mark))
}

/// Compares two versions as they are written.
fn compare(a: &str, b: &str) -> Ordering {
    Version::parse(a).cmp(&Version::parse(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(component: Component, version: &str, expected: &[&str]) {
        let found = table().of(component, version).expect("a version");
        let ids: Vec<&str> = found.iter().map(|hole| hole.id.as_str()).collect();
        assert_eq!(ids, expected, "{version}");
    }

    #[test]
    fn old_versions_have_the_holes_of_their_line_and_new_ones_have_none() {
        use Component::Containerd;
        use Component::Desktop;
        use Component::Engine;
        use Component::Runc;
        let of_2025 = [
            "CVE-2025-31133",
            "CVE-2025-52565",
            "CVE-2025-52881",
            "CVE-2026-41579",
        ];
        check(
            Runc,
            "1.1.5+ds1",
            &[&["CVE-2024-21626"], &of_2025[..]].concat(),
        );
        check(Runc, "1.1.15", &of_2025);
        check(Runc, "1.2.8", &["CVE-2026-41579"]);
        check(Runc, "1.3.2", &of_2025);
        check(Runc, "1.3.6", &[]);
        check(Runc, "1.4.0-rc.2", &of_2025);
        check(Runc, "1.4.0-rc.3", &["CVE-2026-41579"]);
        check(Runc, "1.4.3", &[]);
        check(Runc, "1.5.0-rc.3", &[]);
        check(Runc, "2.0.0", &[]);
        check(
            Containerd,
            "1.6.20~ds1",
            &["CVE-2024-40635", "CVE-2024-25621", "CVE-2026-47262"],
        );
        check(
            Containerd,
            "v2.1.0",
            &["CVE-2024-25621", "CVE-2025-47290", "CVE-2026-47262"],
        );
        check(Containerd, "v2.3.2", &[]);
        check(
            Engine,
            "20.10.24+dfsg1",
            &[
                "CVE-2024-29018",
                "CVE-2024-41110",
                "CVE-2026-34040",
                "CVE-2026-41567",
            ],
        );
        check(
            Engine,
            "28.2.2",
            &["CVE-2025-54388", "CVE-2026-34040", "CVE-2026-41567"],
        );
        check(Engine, "28.5.2", &["CVE-2026-34040", "CVE-2026-41567"]);
        check(Engine, "29.5.1", &[]);
        check(Engine, "30.0.0", &[]);
        check(Desktop, "4.44.2", &["CVE-2025-9074"]);
        check(Desktop, "4.44.3", &[]);
    }

    #[test]
    fn versions_are_read_as_they_are_written() {
        let order = [
            "1.0.0-rc3",
            "1.0.0-rc93",
            "1.0.0",
            "1.1.5+ds1",
            "1.1.12",
            "1.4.0-beta.1",
            "1.4.0-rc.3",
            "1.4.0",
            "20.10.24~3-0~debian",
        ];
        for pair in order.windows(2) {
            assert!(
                Version::parse(pair[0]) < Version::parse(pair[1]),
                "{pair:?}"
            );
        }
        for odd in ["", "unknown", "HEAD-1234", "99999999999.1", "\u{1b}[31m"] {
            assert_eq!(
                Version::parse(odd)
                    .map(|version| version.line())
                    .filter(|line| *line != (0, 0)),
                None,
                "{odd}"
            );
        }
        assert_eq!(Version::parse("v1"), Version::parse("1.0.0"));
    }

    #[test]
    fn a_way_out_is_told_in_one_line_and_once_for_each_engine() {
        let part = |name: &str, version: &str| engine::Component {
            name: name.into(),
            version: version.into(),
            build: String::new(),
        };
        let of = |runc: &str| Facts {
            components: vec![part("runc", runc)],
            ..Facts::plain()
        };
        let said = ways_out(&of("1.1.12")).expect("three are known");
        assert_eq!(
            said,
            "known holes let a container out of this engine: runc 1.1.12 (CVE-2025-31133, CVE-2025-52565 and CVE-2025-52881): update runc to \
             1.2.8 or newer"
        );
        assert!(
            ways_out(&of("1.1.5+ds1"))
                .expect("four")
                .contains("CVE-2024-21626")
                && ways_out(&of("1.1.5+ds1")) != ways_out(&of("1.1.5"))
        );
        // One that only an image with a link for its `/dev` could use, which is refused, is no way
        // out.
        assert_eq!(
            (
                ways_out(&of("1.2.8")),
                ways_out(&of("1.4.3")),
                ways_out(&Facts::plain())
            ),
            (None, None, None)
        );
        let desktop = Facts {
            platform: "Docker Desktop 4.40.0 (187762)".to_owned(),
            ..of("1.1.12")
        };
        assert!(
            ways_out(&desktop).is_some_and(|said| said.contains("runc 1.1.12")
                && said.contains("4.44.3")
                && !said.contains('\n'))
        );

        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(ways_out_once(&of("1.1.12"), folder.path()), Some(said));
        assert_eq!(ways_out_once(&of("1.1.12"), folder.path()), None);
        assert!(
            ways_out_once(&of("1.1.13"), folder.path()).is_some(),
            "another version is another engine"
        );
        assert_eq!(
            (
                ways_out_once(&of("1.4.3"), folder.path()),
                folder.path().read_dir().expect("a folder").count()
            ),
            (None, 2)
        );
        // Where it cannot be remembered it is said each time.
        assert!(ways_out_once(&of("1.1.12"), Path::new("/nonexistent")).is_some());
    }

    #[test]
    fn every_hole_of_the_table_can_be_judged() {
        let date = &table().date;
        assert!(date.len() == 10 && date.starts_with("202"), "{date}");
        for hole in &table().holes {
            assert!(
                hole.id.starts_with("CVE-") && !hole.fixed.is_empty(),
                "{hole:?}"
            );
            for version in hole.fixed.iter().chain(&hole.since) {
                assert!(
                    Version::parse(version).is_some_and(|version| version.major > 0),
                    "{}: {version}",
                    hole.id
                );
            }
            let sorted = hole
                .fixed
                .windows(2)
                .all(|pair| Version::parse(&pair[0]) < Version::parse(&pair[1]));
            assert!(sorted, "{}: the lines stand in their order", hole.id);
            for fixed in &hole.fixed {
                assert!(
                    !hole.is_in(&Version::parse(fixed).expect("read above")),
                    "{} in {fixed}",
                    hole.id
                );
            }
        }
    }

    #[test]
    fn the_remedy_stays_in_the_line_where_it_can() {
        let hole = table()
            .holes
            .iter()
            .find(|hole| hole.id == "CVE-2025-31133")
            .expect("in the table");
        assert_eq!(
            [
                hole.remedy("1.1.5"),
                hole.remedy("1.3.1"),
                hole.remedy("1.4.0-rc.1")
            ],
            ["1.2.8", "1.3.3", "1.4.0-rc.3"]
        );
    }

    #[test]
    fn builds_of_distributions_are_known_by_their_marks() {
        assert!(is_distribution("1.1.5+ds1", "1.1.5+ds1-1+deb12u1"));
        assert!(is_distribution("28.2.2-0ubuntu1", ""));
        assert!(!is_distribution("1.3.3", "v1.3.3-0-gd842d771"));
    }
}
