//! What the files of the tools share to read their arguments, which fit the schema by then; each says what is wrong with a value.

use serde_json::Value;

use crate::wire::BytesPath;

/// Other names of the one path of a tool.
pub(super) const ONE_PATH: [(&str, &str); 7] = [
    ("file_path", "path"),
    ("filepath", "path"),
    ("filename", "path"),
    ("file", "path"),
    ("directory", "path"),
    ("dir", "path"),
    ("folder", "path"),
];

/// Other names of two.
pub(super) const TWO_PATHS: [(&str, &str); 12] = [
    ("source_path", "source"),
    ("src", "source"),
    ("from", "source"),
    ("old_path", "source"),
    ("path", "source"),
    ("file_path", "source"),
    ("destination_path", "destination"),
    ("dest", "destination"),
    ("dst", "destination"),
    ("to", "destination"),
    ("target", "destination"),
    ("new_path", "destination"),
];

/// Returns all of them as what a tool takes.
pub(super) fn parse<T: serde::de::DeserializeOwned>(arguments: Value) -> Result<T, String> {
    serde_json::from_value(arguments).map_err(|error| error.to_string())
}

/// Returns the one path of a tool.
pub(super) fn named(name: String) -> Result<BytesPath, String> {
    path("path", name)
}

pub(super) fn path(field: &str, path: String) -> Result<BytesPath, String> {
    filled(field, path).map(|path| BytesPath::from_text(&path))
}

/// Returns the folder that is meant; without one, the project.
pub(super) fn folder(path: Option<&str>) -> BytesPath {
    BytesPath::from_text(path.filter(|path| !path.is_empty()).unwrap_or("."))
}

/// Returns a text that says something.
pub(super) fn filled(field: &str, value: String) -> Result<String, String> {
    if value.trim().is_empty() { Err(format!("`{field}` is empty")) } else { Ok(value) }
}

/// Takes the default where nothing is given and the bound where more is asked for, and says the latter.
pub(super) fn bounded(field: &str, given: Option<i64>, default: u32, most: u32, notes: &mut Vec<String>) -> Result<u32, String> {
    match given {
        // Some models count from 0, or mean "all" by it.
        None | Some(0) => Ok(default.min(most)),
        Some(value) if value < 0 => Err(format!("`{field}` cannot be negative, as {value} is")),
        Some(value) => Ok(u32::try_from(value).ok().filter(|&value| value <= most).unwrap_or_else(|| {
            notes.push(format!("{field} {value} was taken as {most}, the most there is"));
            most
        })),
    }
}
