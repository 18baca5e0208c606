//! Filters the environment variables that the model server gets from its image.
//!
//! The server reads every setting from a variable too: where it listens, what it serves, and
//! another key. So those variables of an image are removed. Empty values do not do: the server
//! reads them, and does not start with an empty port.

use std::collections::BTreeSet;
use std::path::Path;

use podbay_engine::ImageFacts;
use podbay_sandbox::clean;
use podbay_sandbox::emptied;
use podbay_sandbox::taken_away;

/// Prefixes of variables of the server, its compute backends, its downloads and the dynamic loader.
const REMOVED: [&str; 4] = ["GGML_", "HF_", "LD_", "LLAMA_"];

/// The search path if the image sets none.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Folders that are writable in any container.
const WRITABLE: [&str; 2] = ["/dev/shm", "/tmp"];

/// The variables for the server's container, and which of the image's are removed or changed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ServerEnv {
    pub(super) env: Vec<String>,
    pub(super) lost: Vec<String>,
}

impl ServerEnv {
    /// Filters the variables of an image; `mounted` are the mount points in the container.
    pub(super) fn new(image: &ImageFacts, mounted: &[&str]) -> Self {
        let pairs = || image.env.iter().filter_map(|pair| pair.split_once('='));
        let mut lost: BTreeSet<String> = taken_away(image).into_iter().map(str::to_owned).collect();
        let mut env: Vec<String> = vec!["HOME=/".to_owned()];
        if let Some((_, path)) = pairs().find(|(name, _)| *name == "PATH") {
            let is_own = |folder: &&str| {
                let cleaned = clean(folder);
                folder.starts_with('/')
                    && !mounted
                        .iter()
                        .chain(&WRITABLE)
                        .any(|place| Path::new(&cleaned).starts_with(place))
            };
            let kept: Vec<&str> = path.split(':').filter(is_own).collect();
            let kept = if kept.is_empty() {
                PATH.to_owned()
            } else {
                kept.join(":")
            };
            if kept != path && !path.is_empty() {
                lost.insert("PATH".to_owned());
            }
            env.push(format!("PATH={kept}"));
        }
        env.extend(emptied());
        let is_emptied = |name: &str| emptied().any(|pair| pair.strip_suffix('=') == Some(name));
        let is_removed = |name: &str| {
            REMOVED.iter().any(|beginning| name.starts_with(beginning)) && !is_emptied(name)
        };
        let removed: BTreeSet<String> = pairs()
            .map(|(name, _)| name)
            .filter(|name| is_removed(name))
            .map(str::to_owned)
            .collect();
        // For an engine, a name without a value removes the variable.
        env.extend(removed.iter().cloned());
        lost.extend(removed);
        Self {
            env,
            lost: lost.into_iter().collect(),
        }
    }

    /// Returns a warning that names the variables that were removed.
    pub(super) fn warning(&self) -> Option<String> {
        (!self.lost.is_empty()).then(|| {
            let names = self.lost.join(", ");
            format!("variables of its image would change what the model server loads or runs, and are removed: {names}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(env: &[&str]) -> ServerEnv {
        let image = ImageFacts {
            id: String::new(),
            tags: vec![],
            labels: None,
            volumes: vec![],
            env: env.iter().map(|&pair| pair.to_owned()).collect(),
            architecture: String::new(),
            size: 0,
        };
        ServerEnv::new(&image, &["/run/llama", "/run/key", "/models", "/data"])
    }

    #[test]
    fn model_server_variables_of_an_image_are_removed_not_emptied() {
        let of = of(&[
            "LLAMA_API_KEY=weak",
            "LLAMA_ARG_PORT=",
            "GGML_BACKEND_PATH=/x.so",
            "HF_TOKEN=x",
            "LD_DEBUG=all",
            "LC_ALL=C",
            "LLAMA=1",
        ]);
        for name in [
            "LLAMA_API_KEY",
            "LLAMA_ARG_PORT",
            "GGML_BACKEND_PATH",
            "HF_TOKEN",
            "LD_DEBUG",
        ] {
            assert!(
                of.env.contains(&name.to_owned()) && of.lost.contains(&name.to_owned()),
                "{name}: {of:?}"
            );
        }
        assert!(
            of.env.contains(&"LD_PRELOAD=".to_owned())
                && !of.env.contains(&"LD_PRELOAD".to_owned()),
            "{of:?}"
        );
        assert!(
            !of.env.iter().any(|pair| pair.starts_with("LC_ALL")
                || pair == "LLAMA"
                || pair.starts_with("PATH")),
            "{of:?}"
        );
        assert!(
            of.warning()
                .expect("said")
                .ends_with("GGML_BACKEND_PATH, HF_TOKEN, LD_DEBUG, LLAMA_API_KEY, LLAMA_ARG_PORT")
        );
    }

    #[track_caller]
    fn check(path: &str, expected: &str, is_lost: bool) {
        let of = of(&[&format!("PATH={path}")]);
        assert!(of.env.contains(&format!("PATH={expected}")), "{of:?}");
        assert_eq!(
            (of.lost.contains(&"PATH".to_owned()), of.warning().is_some()),
            (is_lost, is_lost),
            "{of:?}"
        );
    }

    #[test]
    fn the_model_servers_path_has_no_mounted_or_writable_folder() {
        check("/app:/usr/bin", "/app:/usr/bin", false);
        check(
            "/models:/run/llama:/usr/bin:/tmp/x:/data/bin:bin:",
            "/usr/bin",
            true,
        );
        check(
            "//run/./llama:/usr/../dev/shm:/tmpl:/usr/../bin",
            "/tmpl:/usr/../bin",
            true,
        );
        check("/models:/run/llama:/tmp", PATH, true);
        check("", PATH, false);
    }

    #[test]
    fn an_image_without_such_variables_gives_no_warning() {
        let of = of(&["PATH=/usr/bin:/bin", "GOMP_SPINCOUNT=300"]);
        assert_eq!((of.lost.len(), of.warning()), (0, None));
    }
}
