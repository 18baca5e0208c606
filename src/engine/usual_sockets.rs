//! Where engines usually listen on a machine (`sockets.toml`).

use std::path::PathBuf;

use serde::Deserialize;

const TABLE: &str = include_str!("sockets.toml");

/// A usual place of an engine's socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UsualSocket {
    pub(super) engine: String,
    pub(super) path: PathBuf,
}

#[derive(Deserialize)]
struct Table {
    socket: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    engine: String,
    path: String,
}

/// Returns all of them for a user with this environment, the first choice first.
pub(super) fn all(env: impl Fn(&str) -> Option<String>) -> Vec<UsualSocket> {
    let set = |name: &str| env(name).filter(|value| value.starts_with('/'));
    let runtime = set("XDG_RUNTIME_DIR")
        .unwrap_or_else(|| format!("/run/user/{}", nix::unistd::getuid().as_raw()));
    let home = set("HOME");
    let place = |path: &str| match (&home, path.contains("{home}")) {
        (None, true) => None,
        (home, _) => {
            let home = home.as_deref().unwrap_or_default();
            Some(path.replace("{home}", home).replace("{runtime}", &runtime))
        }
    };
    let table: Table = toml::from_str(TABLE).expect("a test reads this file");
    table
        .socket
        .into_iter()
        .filter_map(|row| {
            Some(UsualSocket {
                path: place(&row.path)?.into(),
                engine: row.engine,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_usual_engine_has_a_place() {
        let env = |name: &str| match name {
            "HOME" => Some("/h".to_owned()),
            "XDG_RUNTIME_DIR" => Some("/r".to_owned()),
            _ => None,
        };
        let found = all(env);
        let at = |engine: &str| {
            let socket = found.iter().find(|socket| socket.engine == engine);
            socket.map(|socket| socket.path.display().to_string())
        };
        for (engine, path) in [
            ("Docker", "/var/run/docker.sock"),
            ("rootless Docker", "/r/docker.sock"),
            ("Docker Desktop", "/h/.docker/desktop/docker.sock"),
            ("Colima", "/h/.colima/default/docker.sock"),
            ("OrbStack", "/h/.orbstack/run/docker.sock"),
            ("Rancher Desktop", "/h/.rd/docker.sock"),
            ("Lima", "/h/.lima/docker/sock/docker.sock"),
            ("rootless Podman", "/r/podman/podman.sock"),
            ("Podman", "/run/podman/podman.sock"),
        ] {
            assert_eq!(at(engine).as_deref(), Some(path), "{engine}");
        }
        let without_home = all(|_| None);
        assert!(
            without_home
                .iter()
                .all(|socket| !socket.path.display().to_string().contains('{')),
            "{without_home:?}"
        );
    }
}
