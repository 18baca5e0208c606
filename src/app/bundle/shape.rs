//! Reading a manifest, with words for a user about what is wrong in it: which part, and why.

use serde_json::Map;
use serde_json::Value;

use super::manifest::Image;
use super::manifest::Manifest;
use super::manifest::Model;
use super::manifest::Part;

/// Reads a manifest of the format that this version knows. The error says which part of it is not
/// as it should be.
pub(super) fn manifest(value: &Value) -> Result<Manifest, String> {
    let all = Section::of(
        value,
        "",
        &[
            "format",
            "podbay",
            "architecture",
            "images",
            "archive",
            "models",
        ],
    )?;
    let archive = Section::of(all.get("archive")?, "archive", &["size", "sha256"])?;
    Ok(Manifest {
        format: all.number("format")?,
        podbay: all.text("podbay")?,
        architecture: all.text("architecture")?,
        images: all.list("images", |value, place| {
            let image = Section::of(value, place, &["name", "config"])?;
            Ok(Image {
                name: image.text("name")?,
                config: image.text("config")?,
            })
        })?,
        archive: Part {
            size: archive.number("size")?,
            sha256: archive.text("sha256")?,
        },
        models: all.list("models", |value, place| {
            let model = Section::of(value, place, &["name", "file", "size", "sha256"])?;
            Ok(Model {
                name: model.text("name")?,
                file: model.text("file")?,
                size: model.number("size")?,
                sha256: model.text("sha256")?,
            })
        })?,
    })
}

/// Reads what every format says of itself: its number, and the version of the program that wrote
/// it.
pub(super) fn head(value: &Value) -> Result<(u64, String), String> {
    let Value::Object(fields) = value else {
        return Err(format!("it is {}, and not an object", kind(value)));
    };
    let head = Section {
        place: String::new(),
        fields,
    };
    let made_by = fields
        .get("podbay")
        .and_then(Value::as_str)
        .unwrap_or_default();
    Ok((head.number("format")?, made_by.to_owned()))
}

/// An object of the manifest.
struct Section<'a> {
    /// Where it stands; empty for the manifest itself.
    place: String,
    fields: &'a Map<String, Value>,
}

impl<'a> Section<'a> {
    /// `keys`: all that it may have.
    fn of(value: &'a Value, place: &str, keys: &[&str]) -> Result<Self, String> {
        let Value::Object(fields) = value else {
            let place = if place.is_empty() {
                "it".to_owned()
            } else {
                format!("`{place}`")
            };
            return Err(format!("{place} is {}, and not an object", kind(value)));
        };
        let section = Self {
            place: place.to_owned(),
            fields,
        };
        match fields.keys().find(|key| !keys.contains(&key.as_str())) {
            Some(key) => Err(format!(
                "it has `{}`, which no bundle of this format has",
                section.path(&key.escape_debug().to_string())
            )),
            None => Ok(section),
        }
    }

    fn path(&self, key: &str) -> String {
        if self.place.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.place)
        }
    }

    fn get(&self, key: &str) -> Result<&'a Value, String> {
        self.fields
            .get(key)
            .ok_or_else(|| format!("`{}` is missing", self.path(key)))
    }

    fn unfit(&self, key: &str, found: &Value, wanted: &str) -> String {
        format!("`{}` is {}, and not {wanted}", self.path(key), kind(found))
    }

    fn text(&self, key: &str) -> Result<String, String> {
        let value = self.get(key)?;
        value
            .as_str()
            .map(str::to_owned)
            .ok_or_else(|| self.unfit(key, value, "a text"))
    }

    fn number(&self, key: &str) -> Result<u64, String> {
        let value = self.get(key)?;
        value
            .as_u64()
            .ok_or_else(|| self.unfit(key, value, "a whole number, 0 or more"))
    }

    fn list<T>(
        &self,
        key: &str,
        read: impl Fn(&Value, &str) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        let value = self.get(key)?;
        let entries = value
            .as_array()
            .ok_or_else(|| self.unfit(key, value, "a list"))?;
        entries
            .iter()
            .enumerate()
            .map(|(at, entry)| read(entry, &format!("{}[{at}]", self.path(key))))
            .collect()
    }
}

fn kind(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(yes) => format!("`{yes}`"),
        Value::Number(number) => format!("the number {number}"),
        Value::String(_) => "a text".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn whole() -> Value {
        let hash = "0".repeat(64);
        json!({
            "format": 1, "podbay": "0.1.0", "architecture": "x86_64",
            "images": [{"name": "podbay/workspace:latest", "config": hash}],
            "archive": {"size": 1, "sha256": hash},
            "models": [{"name": "a", "file": "a.gguf", "size": 1, "sha256": hash}],
        })
    }

    #[track_caller]
    fn refused(change: impl FnOnce(&mut Value), because: &str) {
        let mut value = whole();
        change(&mut value);
        assert_eq!(manifest(&value).expect_err("must be refused"), because);
    }

    #[test]
    fn what_was_written_is_read_back() {
        let read = manifest(&whole()).expect("it is whole");
        assert_eq!(serde_json::to_value(&read).expect("JSON"), whole());
        assert_eq!(
            head(&json!({"format": 2, "all": "different"})),
            Ok((2, String::new()))
        );
    }

    #[test]
    fn the_part_that_is_wrong_is_named_with_its_reason() {
        refused(
            |m| {
                drop(
                    m["models"][0]
                        .as_object_mut()
                        .expect("an object")
                        .remove("size"),
                );
            },
            "`models[0].size` is missing",
        );
        refused(
            |m| m["models"][0]["size"] = json!(-1),
            "`models[0].size` is the number -1, and not a whole number, 0 or more",
        );
        refused(
            |m| m["models"] = json!("none"),
            "`models` is a text, and not a list",
        );
        refused(
            |m| m["archive"] = json!([]),
            "`archive` is a list, and not an object",
        );
        refused(
            |m| m["images"][0]["config"] = json!(null),
            "`images[0].config` is nothing, and not a text",
        );
        refused(
            |m| m["images"][0]["x\ny"] = json!(1),
            "it has `images[0].x\\ny`, which no bundle of this format has",
        );
        refused(|m| *m = json!(7), "it is the number 7, and not an object");
        assert_eq!(
            head(&json!({"format": true})),
            Err("`format` is `true`, and not a whole number, 0 or more".to_owned())
        );
        assert_eq!(
            head(&json!([])),
            Err("it is a list, and not an object".to_owned())
        );
    }
}
