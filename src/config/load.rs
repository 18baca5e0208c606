use std::collections::BTreeSet;

use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::Table;
use toml::Value;

use super::Error;
use super::IgnoredSetting;
use super::Origin;
use super::Origins;
use super::ProjectLayer;
use super::Sources;
use super::env_vars;
use super::env_vars::Guess;
use super::hooks::without_host;
use super::key::Known;
use super::layer::Layer;
use super::mcp_servers;
use super::secret::is_secret;
use super::untrusted_settings::narrow;

/// The effective settings, with the origin of each.
#[derive(Clone, Debug)]
pub struct Loaded<C> {
    pub config: C,
    /// Problems of the sources that stop nothing, one sentence each.
    pub warnings: Vec<String>,
    pub origins: Origins,
    /// Settings of an untrusted project that were ignored.
    pub passed_over: Vec<IgnoredSetting>,
}

/// Most unknown keys of one source that are reported: a wrong file must not flood the output.
const MOST_UNKNOWN: usize = 20;

/// Reads and merges all layers.
pub fn load<C: Default + Serialize + DeserializeOwned>(
    sources: &Sources,
) -> Result<Loaded<C>, Error> {
    let known = Known::of(&C::default());
    let mut merged = Merged {
        table: Table::new(),
        origins: Origins::default(),
        warnings: Vec::new(),
        half: None,
    };
    if let Some(path) = &sources.system
        && let Some(layer) = Layer::read(path, false)?
    {
        merged.add::<C>(&layer, &known)?;
    }
    let user = match (&sources.user, &sources.user_text) {
        (Some(path), Some(text)) => Some(Layer::parse(path, text.clone())?),
        (Some(path), None) => Layer::read(path, false)?,
        (None, _) => None,
    };
    if let Some(layer) = user {
        merged.add::<C>(&layer, &known)?;
    }
    let mut passed_over = Vec::new();
    let mut servers_of_project = BTreeSet::new();
    if let Some(ProjectLayer { file, trusted }) = &sources.project {
        let mut layer = Layer::parse(file.path(), file.text().to_owned())?;
        if !trusted {
            // Checked as a whole first, so that errors name a line even in ignored settings.
            layer
                .check::<C>()
                .map(drop)
                .or_else(|error| if error.is_half() { Ok(()) } else { Err(error) })?;
            let defaults = serde_json::to_value(C::default())
                .expect("settings are made of tables, lists, strings and numbers");
            passed_over = narrow(&mut layer, &known, &merged.table, &defaults);
        }
        passed_over.extend(without_host(&mut layer));
        passed_over.extend(mcp_servers::without_users(&mut layer, &merged.table));
        servers_of_project = mcp_servers::names(&layer);
        merged.add::<C>(&layer, &known)?;
    }
    if let Some(path) = &sources.file
        && let Some(layer) = Layer::read(path, true)?
    {
        merged.add::<C>(&layer, &known)?;
    }
    for layer in env_vars::layers::<C>(
        &sources.variables,
        &known,
        &merged.table,
        &sources.flags,
        &mut merged.warnings,
    )? {
        merged.add::<C>(&layer, &known)?;
    }
    for flag in &sources.flags {
        let origin = Origin::Flag {
            name: flag.name.clone(),
        };
        if is_secret(&flag.key) {
            return Err(Error::Secret {
                origin,
                key: flag.key.clone(),
            });
        }
        let layer = match &flag.value {
            Value::String(text) => env_vars::text::<C>(&flag.key, text, &origin, Guess::Text)?,
            other => env_vars::single::<C>(&flag.key, other.clone(), &origin)?,
        };
        // An unknown key on the command line is an error, since it is easy to correct; in a file it
        // may be of another version, so it is a warning.
        if !layer.check::<C>()?.is_empty() {
            let near = known.near(&flag.key).map(str::to_owned);
            return Err(Error::UnknownKey {
                origin,
                key: flag.key.clone(),
                near,
            });
        }
        merged.add::<C>(&layer, &known)?;
    }
    mcp_servers::refuse_shared(&merged.table, &servers_of_project, &merged.origins)?;
    let config = Value::Table(merged.table)
        .try_into::<C>()
        .map_err(|error| {
            let alone = Error::Value {
                origin: Origin::Default,
                key: "?".to_owned(),
                what: error.message().to_owned(),
            };
            merged.half.unwrap_or(alone)
        })?;
    Ok(Loaded {
        config,
        warnings: merged.warnings,
        origins: merged.origins,
        passed_over,
    })
}

struct Merged {
    table: Table,
    origins: Origins,
    warnings: Vec<String>,
    half: Option<Error>,
}

impl Merged {
    fn add<C: DeserializeOwned>(&mut self, layer: &Layer, known: &Known) -> Result<(), Error> {
        match layer.check::<C>() {
            Ok(mut unknown) => {
                unknown.sort_by_key(|key| layer.line(key));
                let n_more = unknown.len().saturating_sub(MOST_UNKNOWN);
                let place = unknown.first().map(|key| layer.origin(key));
                for key in unknown.into_iter().take(MOST_UNKNOWN) {
                    let near = known
                        .near(&key)
                        .map(|near| format!("; did you mean `{near}`?"))
                        .unwrap_or_default();
                    self.warnings.push(format!(
                        "{}: there is no setting `{key}`{near}",
                        layer.origin(&key)
                    ));
                }
                if let Some(place) = place.filter(|_| n_more > 0) {
                    self.warnings.push(format!("{place}: {n_more} more keys of this source are unknown; is it meant for Podbay?"));
                }
            }
            // An entry may be split over two files; whether it is complete shows after merging.
            Err(error @ Error::Value { .. }) if error.is_half() => {
                self.half = self.half.take().or(Some(error));
            }
            Err(error) => return Err(error),
        }
        layer.over(&mut self.table, &mut self.origins);
        Ok(())
    }
}
