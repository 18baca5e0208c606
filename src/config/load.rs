use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::Table;
use toml::Value;

use super::Error;
use super::Origin;
use super::Origins;
use super::Sources;
use super::key::Known;
use super::layer::Layer;
use super::secret::is_secret;
use super::variable;
use super::variable::Guess;

/// The settings that hold, with their story.
#[derive(Clone, Debug)]
pub struct Loaded<C> {
    pub config: C,
    /// What is odd about the sources and does not stop anything, each a sentence.
    pub warnings: Vec<String>,
    pub origins: Origins,
}

/// Reads all layers and lays them over one another.
pub fn load<C: Default + Serialize + DeserializeOwned>(sources: &Sources) -> Result<Loaded<C>, Error> {
    let known = Known::of(&C::default());
    let mut merged = Merged { table: Table::new(), origins: Origins::default(), warnings: Vec::new(), half: None };
    for (path, needed) in [(&sources.system, false), (&sources.user, false), (&sources.file, true)] {
        if let Some(path) = path
            && let Some(layer) = Layer::read(path, needed)?
        {
            merged.add::<C>(&layer, &known)?;
        }
    }
    for layer in variable::layers::<C>(&sources.variables, &known, &merged.table, &sources.flags, &mut merged.warnings)? {
        merged.add::<C>(&layer, &known)?;
    }
    for flag in &sources.flags {
        let origin = Origin::Flag { name: flag.name.clone() };
        if is_secret(&flag.key) {
            return Err(Error::Secret { origin, key: flag.key.clone() });
        }
        let layer = match &flag.value {
            Value::String(text) => variable::text::<C>(&flag.key, text, &origin, Guess::Text)?,
            other => variable::single::<C>(&flag.key, other.clone(), &origin)?,
        };
        // A slip on the command line is at hand to be put right; in a file it may stem from another version.
        if !layer.check::<C>()?.is_empty() {
            let near = known.near(&flag.key).map(str::to_owned);
            return Err(Error::UnknownKey { origin, key: flag.key.clone(), near });
        }
        merged.add::<C>(&layer, &known)?;
    }
    let config = Value::Table(merged.table).try_into::<C>().map_err(|error| {
        let alone = Error::Value { origin: Origin::Default, key: "?".to_owned(), what: error.message().to_owned() };
        merged.half.unwrap_or(alone)
    })?;
    Ok(Loaded { config, warnings: merged.warnings, origins: merged.origins })
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
                for key in unknown {
                    let near = known.near(&key).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                    self.warnings.push(format!("{}: there is no setting `{key}`{near}", layer.origin(&key)));
                }
            }
            // Half of an entry may stand in one file and half in another; whether both make a whole shows at the end.
            Err(error @ Error::Value { .. }) if error.is_half() => self.half = self.half.take().or(Some(error)),
            Err(error) => return Err(error),
        }
        layer.over(&mut self.table, &mut self.origins);
        Ok(())
    }
}
