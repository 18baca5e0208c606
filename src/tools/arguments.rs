//! Argument parsing shared by the tool definitions. The arguments have passed the schema already;
//! each function returns an error message for the model.

use serde_json::Value;

use crate::git_quoting;
use podbay_wire::BytesPath;

/// Aliases of the argument of a tool that takes one path.
pub(super) const ONE_PATH: [(&str, &str); 7] = [
    ("file_path", "path"),
    ("filepath", "path"),
    ("filename", "path"),
    ("file", "path"),
    ("directory", "path"),
    ("dir", "path"),
    ("folder", "path"),
];

/// Aliases of the arguments of a tool that takes two paths.
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

/// Deserializes all arguments of a call.
pub(super) fn parse<T: serde::de::DeserializeOwned>(arguments: Value) -> Result<T, String> {
    serde_json::from_value(arguments).map_err(|error| error.to_string())
}

/// Returns the path of a tool that takes one.
pub(super) fn path_argument(name: String) -> Result<BytesPath, String> {
    path("path", name)
}

pub(super) fn path(field: &str, path: String) -> Result<BytesPath, String> {
    nonempty(field, path).map(|path| written(&path))
}

/// Returns the given folder, or the project's folder without one.
pub(super) fn folder(path: Option<&str>) -> BytesPath {
    written(path.filter(|path| !path.is_empty()).unwrap_or("."))
}

/// Returns a path as the model wrote it. A git-quoted name stays quoted: [`crate::git_quoting`]
/// unescapes it once.
pub(super) fn written(path: &str) -> BytesPath {
    if git_quoting::is_quoted(path) {
        BytesPath::from_bytes(path)
    } else {
        BytesPath::from_text(path)
    }
}

/// Returns the text; an error if it is empty.
pub(super) fn nonempty(field: &str, value: String) -> Result<String, String> {
    if value.trim().is_empty() {
        Err(format!("`{field}` is empty"))
    } else {
        Ok(value)
    }
}

/// Returns the value; the default for a missing one or 0; `most` for a larger one. A replaced value
/// is noted.
pub(super) fn bounded(
    field: &str,
    given: Option<i64>,
    default: u32,
    most: u32,
    notes: &mut Vec<String>,
) -> Result<u32, String> {
    match given {
        None => Ok(default.min(most)),
        // Models that must give every field a value send 0; some mean "all" by it.
        Some(0) => {
            if default != 0 {
                notes.push(format!(
                    "{field} 0 was taken as if it were left out, so as {}",
                    default.min(most)
                ));
            }
            Ok(default.min(most))
        }
        Some(value) if value < 0 => Err(format!("`{field}` cannot be negative, as {value} is")),
        Some(value) => Ok(u32::try_from(value)
            .ok()
            .filter(|&value| value <= most)
            .unwrap_or_else(|| {
                notes.push(format!(
                    "{field} {value} was taken as {most}, the most there is"
                ));
                most
            })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_out_of_range_number_is_replaced_and_noted() {
        let mut notes = Vec::new();
        let mut check = |given, default, expected: Result<u32, &str>| {
            assert_eq!(
                bounded("count", given, default, 1000, &mut notes),
                expected.map_err(str::to_owned),
                "{given:?}"
            );
        };
        check(None, 20, Ok(20));
        check(None, 2000, Ok(1000));
        check(Some(1), 20, Ok(1));
        check(Some(1001), 20, Ok(1000));
        check(Some(0), 0, Ok(0));
        check(Some(0), 20, Ok(20));
        check(Some(-1), 20, Err("`count` cannot be negative, as -1 is"));
        assert_eq!(
            notes,
            [
                "count 1001 was taken as 1000, the most there is",
                "count 0 was taken as if it were left out, so as 20"
            ]
        );
    }
}
