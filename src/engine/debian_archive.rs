//! How this machine reaches Debian's archive; image builds use the same mirror and options.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use sha2::Digest;
use sha2::Sha256;

use super::Error;
use super::Options;
use super::host_program;
use super::host_program::HostProgram;

const PUBLIC: &str = "http://deb.debian.org/debian";
const PUBLIC_SECURITY: [&str; 2] = [
    "http://deb.debian.org/debian-security",
    "http://security.debian.org/debian-security",
];

/// The build arguments that the user chose, by settings or by environment variables of the
/// arguments' names.
///
/// They decide what an image is made from (another mirror, a frozen archive), so they are part of
/// its hash. Arguments detected on this machine are not: they only say how the archive is reached,
/// and detecting them takes longer than inspecting an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ChosenBuildArgs(BTreeMap<&'static str, String>);

impl ChosenBuildArgs {
    pub(super) fn new(
        options: &Options,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Error> {
        let mut chosen = BTreeMap::new();
        let settings = [
            (
                "DEBIAN_MIRROR",
                "engine.debian_mirror",
                &options.debian_mirror,
            ),
            (
                "DEBIAN_SECURITY_MIRROR",
                "engine.debian_security_mirror",
                &options.debian_security_mirror,
            ),
            ("APT_OPTIONS", "engine.apt_options", &options.apt_options),
        ];
        for (argument, key, setting) in settings {
            let value = setting
                .clone()
                .or_else(|| env(argument))
                .map(|value| value.trim().trim_end_matches('/').to_owned());
            let Some(value) = value.filter(|value| !value.is_empty()) else {
                continue;
            };
            let is_mirror = argument != "APT_OPTIONS";
            // The value becomes part of a shell command in the build.
            let is_odd = |c: char| !c.is_ascii_graphic() || "\"'`$\\|&;<>()*?!#".contains(c);
            if is_mirror && (!is_usable(&value) || value.contains(is_odd)) {
                let problem = format!(
                    "`{value}` is no `http://` address of an archive that a build could reach"
                );
                return Err(Error::Setting { key, problem });
            }
            chosen.insert(argument, value);
        }
        Ok(Self(chosen))
    }

    pub(super) fn mirror(&self) -> Option<&str> {
        self.0.get("DEBIAN_MIRROR").map(String::as_str)
    }

    /// Adds the chosen arguments to a hash; without any, the hash stays as it is.
    pub(super) fn hash_into(&self, hasher: &mut Sha256) {
        for (name, value) in &self.0 {
            hasher.update(name);
            hasher.update(value.len().to_le_bytes());
            hasher.update(value);
        }
    }
}

/// Returns the build arguments of all our images. Options that this machine's apt does not set are
/// not set.
pub(super) async fn build_args(chosen: &ChosenBuildArgs) -> HashMap<String, String> {
    let mut args = args(
        &apt_config().await,
        &sources(Path::new("/etc/apt")),
        |name| std::env::var(name).ok(),
    );
    args.extend(
        chosen
            .0
            .iter()
            .map(|(&name, value)| (name.to_owned(), value.clone())),
    );
    args
}

fn args(
    config: &str,
    sources: &[String],
    env: impl Fn(&str) -> Option<String>,
) -> HashMap<String, String> {
    let setting = |wanted: &str| {
        config.lines().find_map(|line| {
            let (name, value) = line.split_once(' ')?;
            name.eq_ignore_ascii_case(wanted).then(|| {
                value
                    .trim()
                    .trim_end_matches(';')
                    .trim_matches('"')
                    .to_owned()
            })
        })
    };
    let mut args = HashMap::new();
    // A machine with a frozen archive sets these two; an image built without them could install
    // nothing there.
    let options: Vec<String> = ["Acquire::Check-Valid-Until", "Acquire::Check-Date"]
        .into_iter()
        .filter(|name| setting(name).is_some_and(|value| value == "false"))
        .map(|name| format!("-o {name}=false"))
        .collect();
    if !options.is_empty() {
        args.insert("APT_OPTIONS".to_owned(), options.join(" "));
    }
    if let Some(mirror) = sources
        .iter()
        .find(|url| url.ends_with("/debian"))
        .filter(|url| *url != PUBLIC && is_usable(url))
    {
        args.insert("DEBIAN_MIRROR".to_owned(), mirror.clone());
    }
    let security = sources.iter().find(|url| url.ends_with("/debian-security"));
    if let Some(mirror) =
        security.filter(|url| !PUBLIC_SECURITY.contains(&url.as_str()) && is_usable(url))
    {
        args.insert("DEBIAN_SECURITY_MIRROR".to_owned(), mirror.clone());
    }
    let from_env = |names: [&str; 2]| {
        names
            .into_iter()
            .find_map(&env)
            .filter(|value| !value.is_empty())
    };
    let from_apt = |name: &str| setting(name).filter(|value| value.contains("://"));
    let http = from_apt("Acquire::http::Proxy").or_else(|| from_env(["http_proxy", "HTTP_PROXY"]));
    let https =
        from_apt("Acquire::https::Proxy").or_else(|| from_env(["https_proxy", "HTTPS_PROXY"]));
    for (name, proxy) in [("http_proxy", http), ("https_proxy", https)] {
        if let Some(proxy) = proxy.filter(|proxy| !is_loopback(proxy)) {
            args.insert(name.to_owned(), proxy);
        }
    }
    args
}

/// Returns whether a build can download from this URL: small bases have no certificates, and this
/// machine's loopback is not the build's.
fn is_usable(url: &str) -> bool {
    url.starts_with("http://") && !is_loopback(url)
}

fn is_loopback(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    host.starts_with("localhost") || host.starts_with("127.") || host.starts_with("[::1]")
}

async fn apt_config() -> String {
    // Machines without apt have no such options.
    let Ok(mut program) = HostProgram::start(&["apt-config", "dump"]) else {
        return String::new();
    };
    let mut text = String::new();
    let stdout = program.stdout();
    let read = host_program::read(stdout, |line| {
        text.push_str(line);
        text.push('\n');
    });
    if tokio::time::timeout(Duration::from_secs(10), read)
        .await
        .is_err()
    {
        tracing::debug!("apt-config did not answer");
    }
    program.end().await;
    text
}

/// Returns the URLs of all apt sources, in both formats.
fn sources(folder: &Path) -> Vec<String> {
    let parts = fs::read_dir(folder.join("sources.list.d"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let mut files: Vec<_> = parts
        .filter(|path| {
            path.extension()
                .is_some_and(|end| end == "list" || end == "sources")
        })
        .collect();
    files.sort();
    files.insert(0, folder.join("sources.list"));
    let mut found = Vec::new();
    for text in files
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok())
    {
        let words = text
            .lines()
            .filter(|line| !line.trim_start().starts_with('#'))
            .flat_map(str::split_whitespace);
        found.extend(
            words
                .filter(|word| word.contains("://"))
                .map(|word| word.trim_end_matches('/').to_owned()),
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(config: &str, sources: &[&str], env: &[(&str, &str)], expected: &[(&str, &str)]) {
        let sources: Vec<String> = sources.iter().map(|&url| url.to_owned()).collect();
        let env = |name: &str| {
            env.iter()
                .find(|pair| pair.0 == name)
                .map(|pair| pair.1.to_owned())
        };
        let expected: HashMap<_, _> = expected
            .iter()
            .map(|&(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        assert_eq!(args(config, &sources, env), expected);
    }

    #[test]
    fn chosen_build_arguments_are_hashed_and_detected_ones_are_not() {
        let chosen = |mirror: Option<&str>, env: &[(&str, &str)]| {
            let options = Options {
                debian_mirror: mirror.map(str::to_owned),
                ..Options::default()
            };
            ChosenBuildArgs::new(&options, |name| {
                env.iter()
                    .find(|pair| pair.0 == name)
                    .map(|pair| pair.1.to_owned())
            })
        };
        let hash = |chosen: &ChosenBuildArgs| {
            let mut hasher = Sha256::new();
            chosen.hash_into(&mut hasher);
            hasher.finalize()
        };
        let none = chosen(
            None,
            &[("http_proxy", "http://p.example:1"), ("APT_OPTIONS", " ")],
        )
        .expect("nothing chosen");
        assert_eq!(
            (&none, hash(&none)),
            (&ChosenBuildArgs::default(), Sha256::digest(""))
        );
        let set = chosen(
            Some("http://a.example/debian/"),
            &[("DEBIAN_MIRROR", "http://b.example/debian")],
        )
        .expect("good");
        assert_eq!(
            set.mirror(),
            Some("http://a.example/debian"),
            "a setting is stronger than the variable"
        );
        let from_env = chosen(None, &[("DEBIAN_MIRROR", "http://b.example/debian")]).expect("good");
        assert_eq!(from_env.mirror(), Some("http://b.example/debian"));
        assert!(hash(&set) != hash(&from_env) && hash(&set) != hash(&none));
        for bad in [
            "mirror",
            "https://a.example/debian",
            "http://localhost/debian",
            "http://a.example/x|y",
            "http://a.example/$(id)",
        ] {
            assert!(
                matches!(
                    chosen(Some(bad), &[]),
                    Err(Error::Setting {
                        key: "engine.debian_mirror",
                        ..
                    })
                ),
                "{bad}"
            );
        }
    }

    #[test]
    fn an_ordinary_machine_needs_no_build_arguments() {
        check(
            "APT \"\";\nAPT::Architecture \"amd64\";\n",
            &[PUBLIC, PUBLIC_SECURITY[0]],
            &[],
            &[],
        );
        check("", &["http://archive.ubuntu.com/ubuntu"], &[], &[]);
        check("Acquire::Check-Valid-Until \"true\";", &[], &[], &[]);
        check("Acquire::http::Proxy \"DIRECT\";", &[], &[], &[]);
    }

    #[test]
    fn apt_settings_of_this_machine_apply_in_the_build() {
        let frozen = "Acquire::Check-Valid-Until \"false\";\nAcquire::Check-Date \"false\";\n";
        let both = "-o Acquire::Check-Valid-Until=false -o Acquire::Check-Date=false";
        check(frozen, &[], &[], &[("APT_OPTIONS", both)]);
        let near = [
            "http://mirror.example/debian",
            "http://mirror.example/debian-security",
        ];
        check(
            "",
            &near,
            &[],
            &[
                ("DEBIAN_MIRROR", near[0]),
                ("DEBIAN_SECURITY_MIRROR", near[1]),
            ],
        );
        check(
            "Acquire::http::Proxy \"http://cache.example:3142\";",
            &[],
            &[],
            &[("http_proxy", "http://cache.example:3142")],
        );
        check(
            "",
            &[],
            &[("HTTPS_PROXY", "http://p.example:1")],
            &[("https_proxy", "http://p.example:1")],
        );
    }

    #[test]
    fn unreachable_mirrors_are_not_passed_to_the_build() {
        check(
            "",
            &[
                "https://mirror.example/debian",
                "http://localhost:9999/debian",
            ],
            &[],
            &[],
        );
        check(
            "",
            &["http://127.0.0.1/debian"],
            &[("http_proxy", "http://u@127.0.0.1:8080")],
            &[],
        );
    }

    #[test]
    fn both_formats_of_apt_sources_are_parsed() {
        let folder = tempfile::tempdir().expect("a folder");
        let parts = folder.path().join("sources.list.d");
        fs::create_dir(&parts).expect("made");
        fs::write(
            folder.path().join("sources.list"),
            "# deb http://old/debian x main\ndeb [trusted=no] http://a/debian/ x main\n",
        )
        .expect("written");
        fs::write(
            parts.join("b.sources"),
            "Types: deb\nURIs: http://b/debian\n",
        )
        .expect("written");
        fs::write(parts.join("c.save"), "deb http://c/debian x main\n").expect("written");
        assert_eq!(
            sources(folder.path()),
            ["http://a/debian", "http://b/debian"]
        );
    }
}
