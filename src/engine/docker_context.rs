//! Docker contexts: names for engines, which Docker's own command line keeps in `~/.docker`.
//!
//! A context that is chosen is followed or refused. Another engine in its place would get the
//! project's files, and run what the user wanted to run elsewhere.

use std::fs;
use std::io;
use std::path::Path;
use std::path::PathBuf;

use serde::Deserialize;
use sha2::Digest;

use super::Error;

/// The context that stands for the usual way to find an engine.
const DEFAULT: &str = "default";

/// Most bytes of a file of Docker's.
const LONGEST: u64 = 1 << 20;

/// The context that Docker's command line would use, and what names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DockerContext {
    pub(super) name: String,
    pub(super) named_by: String,
    folder: PathBuf,
}

/// An engine's address in a context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ContextEndpoint {
    pub(super) host: String,
    /// Folder with `ca.pem`, `cert.pem` and `key.pem`.
    pub(super) certificates: Option<PathBuf>,
}

#[derive(Deserialize)]
struct CliConfig {
    #[serde(rename = "currentContext", default)]
    current_context: String,
}

#[derive(Deserialize)]
struct Meta {
    #[serde(rename = "Endpoints", default)]
    endpoints: std::collections::BTreeMap<String, Endpoint>,
}

#[derive(Deserialize)]
struct Endpoint {
    #[serde(rename = "Host", default)]
    host: String,
    #[serde(rename = "SkipTLSVerify", default)]
    skip_tls_verify: bool,
}

impl DockerContext {
    /// Returns the chosen context; `None`: there is none, or the default one.
    pub(super) fn chosen(env: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, Error> {
        let set = |name: &str| env(name).filter(|value| !value.trim().is_empty());
        let folder = set("DOCKER_CONFIG")
            .map(PathBuf::from)
            .or_else(|| set("HOME").map(|home| Path::new(&home).join(".docker")));
        let Some(folder) = folder else {
            return Ok(None);
        };
        let (name, named_by) = if let Some(name) = set("DOCKER_CONTEXT") {
            (name, "DOCKER_CONTEXT".to_owned())
        } else {
            let file = folder.join("config.json");
            let named_by = format!("`currentContext` in {}", file.display());
            (current(&file)?, named_by)
        };
        let is_named = !name.is_empty() && name != DEFAULT;
        Ok(is_named.then_some(Self {
            name,
            named_by,
            folder,
        }))
    }

    /// Returns where its engine is.
    pub(super) fn endpoint(&self) -> Result<ContextEndpoint, Error> {
        let contexts = self.folder.join("contexts");
        // Docker names the folders by a hash of the name.
        let id: String = sha2::Sha256::digest(self.name.as_bytes())
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let file = contexts.join("meta").join(&id).join("meta.json");
        let bytes = read(&file).map_err(|error| {
            self.error(if error.kind() == io::ErrorKind::NotFound {
                format!("{} does not know it", self.folder.display())
            } else {
                format!("{}: {error}", file.display())
            })
        })?;
        let meta: Meta = serde_json::from_slice(&bytes)
            .map_err(|error| self.error(format!("{}: {error}", file.display())))?;
        let Some(endpoint) = meta
            .endpoints
            .get("docker")
            .filter(|endpoint| !endpoint.host.is_empty())
        else {
            return Err(self.error("it names no Docker engine".to_owned()));
        };
        if endpoint.skip_tls_verify {
            return Err(self.error(
                "it says that the engine's certificate is not to be verified, which Podbay always does"
                    .to_owned(),
            ));
        }
        let certificates = contexts.join("tls").join(id).join("docker");
        Ok(ContextEndpoint {
            host: endpoint.host.clone(),
            certificates: certificates.join("ca.pem").exists().then_some(certificates),
        })
    }

    /// Returns an error about this context.
    pub(super) fn error(&self, problem: String) -> Error {
        Error::Context {
            name: self.name.clone(),
            named_by: self.named_by.clone(),
            problem,
        }
    }
}

/// Returns the context that the settings of Docker's command line name; empty: none.
fn current(file: &Path) -> Result<String, Error> {
    let problem = |problem: String| Error::CliConfig {
        path: file.to_owned(),
        problem,
    };
    let bytes = match read(file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(problem(error.to_string())),
    };
    // Docker's command line reads an empty file as one without settings.
    if bytes.trim_ascii().is_empty() {
        return Ok(String::new());
    }
    let config: CliConfig =
        serde_json::from_slice(&bytes).map_err(|error| problem(error.to_string()))?;
    Ok(config.current_context)
}

fn read(file: &Path) -> io::Result<Vec<u8>> {
    if fs::metadata(file)?.len() > LONGEST {
        return Err(io::Error::other("it is larger than 1 MiB"));
    }
    fs::read(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Docker(tempfile::TempDir);

    impl Docker {
        fn new(config: &str) -> Self {
            let home = tempfile::tempdir().expect("a folder");
            fs::create_dir(home.path().join(".docker")).expect("made");
            fs::write(home.path().join(".docker/config.json"), config).expect("written");
            Self(home)
        }

        fn add(&self, name: &str, endpoints: &str, has_certificates: bool) {
            let id: String = sha2::Sha256::digest(name.as_bytes())
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            let contexts = self.0.path().join(".docker/contexts");
            let meta = contexts.join("meta").join(&id);
            fs::create_dir_all(&meta).expect("made");
            let text = format!(r#"{{"Name":"{name}","Metadata":{{}},"Endpoints":{endpoints}}}"#);
            fs::write(meta.join("meta.json"), text).expect("written");
            if has_certificates {
                let tls = contexts.join("tls").join(&id).join("docker");
                fs::create_dir_all(&tls).expect("made");
                fs::write(tls.join("ca.pem"), "").expect("written");
            }
        }

        fn chosen(&self, more: &[(&str, &str)]) -> Result<Option<DockerContext>, Error> {
            DockerContext::chosen(|name| {
                let given = more.iter().find(|(found, _)| *found == name);
                given
                    .map(|(_, value)| (*value).to_owned())
                    .or_else(|| (name == "HOME").then(|| self.0.path().display().to_string()))
            })
        }
    }

    #[test]
    fn the_context_is_that_of_the_environment_then_of_the_settings() {
        let docker = Docker::new(r#"{"auths":{},"currentContext":"colima"}"#);
        let name = |more: &[(&str, &str)]| {
            let chosen = docker.chosen(more).expect("readable");
            chosen.map(|context| context.name)
        };
        assert_eq!(name(&[]).as_deref(), Some("colima"));
        assert_eq!(name(&[("DOCKER_CONTEXT", "two")]).as_deref(), Some("two"));
        assert_eq!(name(&[("DOCKER_CONTEXT", "default")]), None);
        assert_eq!(name(&[("DOCKER_CONFIG", "/nonexistent")]), None);
        let none = Docker::new(r#"{"auths":{}}"#);
        assert_eq!(none.chosen(&[]).expect("readable"), None);
        let empty = Docker::new("\n");
        assert_eq!(empty.chosen(&[]).expect("readable"), None);
        let error = Docker::new("{").chosen(&[]).expect_err("no JSON");
        assert!(error.to_string().contains("config.json"), "{error}");
    }

    #[test]
    fn an_endpoint_has_its_address_and_its_certificates() {
        let docker = Docker::new("{}");
        let host =
            |host: &str| format!(r#"{{"docker":{{"Host":"{host}","SkipTLSVerify":false}}}}"#);
        docker.add("local", &host("unix:///run/two.sock"), false);
        docker.add("far", &host("tcp://10.0.0.7:2376"), true);
        let of = |name: &str| {
            let context = docker.chosen(&[("DOCKER_CONTEXT", name)]);
            context.expect("readable").expect("one").endpoint()
        };
        let local = of("local").expect("an endpoint");
        assert_eq!(
            (local.host.as_str(), local.certificates),
            ("unix:///run/two.sock", None)
        );
        let far = of("far").expect("an endpoint");
        let certificates = far.certificates.expect("a folder");
        assert!(certificates.ends_with("docker") && certificates.join("ca.pem").exists());

        docker.add(
            "open",
            r#"{"docker":{"Host":"tcp://h:1","SkipTLSVerify":true}}"#,
            false,
        );
        docker.add("pods", r#"{"kubernetes":{"Host":"https://h"}}"#, false);
        for (name, words) in [
            ("missing", "does not know it"),
            ("open", "not to be verified"),
            ("pods", "names no Docker engine"),
        ] {
            let error = of(name).expect_err(name);
            assert!(error.to_string().contains(words), "{error}");
            assert!(error.hint().expect("a hint").contains("docker context ls"));
        }
    }
}
