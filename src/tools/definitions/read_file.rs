use serde::Deserialize;
use serde_json::Value;
use serde_json::json;

use crate::Options;
use crate::ToolSet;
use crate::arguments::bounded;
use crate::arguments::parse;
use crate::arguments::path_argument;
use crate::tool::Tool;
use crate::tool::object;
use podbay_policy::Action;
use podbay_policy::HostCall;
use podbay_wire::Call;
use podbay_wire::ReadFile;

/// Prefix of a path that names an artifact instead of a file.
const ARTIFACT: &str = "artifact:";

#[derive(Deserialize)]
struct Arguments {
    path: Option<String>,
    offset: Option<i64>,
    limit: Option<i64>,
    from_cursor: Option<String>,
    max_files: Option<i64>,
}

pub(super) fn tool(options: &Options) -> Tool {
    Tool::new(
        "read_file",
        "Read a text file. Lines are shown with their numbers.",
        object(
            &json!({
                "path": { "type": "string", "description": "File in the project" },
                "offset": { "type": "integer", "description": "First line, from 1" },
                "limit": { "type": "integer", "description": format!("Number of lines (default {})", options.read_lines) },
                "from_cursor": { "type": "string", "description": "Cursor of a grep or glob result: reads the files found" },
                "max_files": { "type": "integer", "description": "Files to read from the cursor, 1 to 20 (default 5)" },
            }),
            &[],
        ),
        make,
    )
    .renamed(&[
        ("file_path", "path"),
        ("filename", "path"),
        ("file", "path"),
        ("filepath", "path"),
        ("dir", "path"),
        ("folder", "path"),
        ("start_line", "offset"),
        ("cursor", "from_cursor"),
    ])
    .in_sets_from(ToolSet::Small)
    .small(&["path", "offset", "limit"], &["path"])
    .such_as(r#"{"path": "README.md"}"#)
}

fn make(arguments: Value, options: &Options, notes: &mut Vec<String>) -> Result<Action, String> {
    let Arguments {
        path,
        offset,
        limit,
        from_cursor,
        max_files,
    } = parse(arguments)?;
    if offset == Some(0) {
        notes.push("offset 0 was taken as 1, the first line".to_owned());
    }
    let offset = u64::from(bounded(
        "offset",
        offset.filter(|&offset| offset != 0),
        1,
        u32::MAX,
        notes,
    )?);
    let most = u32::try_from(options.read_lines).unwrap_or(u32::MAX);
    let limit = u64::from(bounded("limit", limit, most, most, notes)?);
    if path.is_some() && from_cursor.is_some() {
        return Err("give either `path` or `from_cursor`, not both".to_owned());
    }
    if let Some(id) = path.as_deref().and_then(|path| path.strip_prefix(ARTIFACT)) {
        return Ok(Action::Host(HostCall::ReadArtifact {
            id: id.to_owned(),
            offset,
            limit,
        }));
    }
    if path.is_none() && from_cursor.is_none() {
        return Err("`path` is missing".to_owned());
    }
    Ok(Action::Box(Call::ReadFile(ReadFile {
        path: path.map(path_argument).transpose()?,
        offset,
        limit,
        max_bytes: options.read_bytes.bytes(),
        cursor: from_cursor,
        max_files: bounded("max_files", max_files, 5, 20, notes)?,
        images: false,
        protected: false,
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offset_0_is_the_first_line_and_is_noted() {
        for (given, said) in [
            (json!(0), &["offset 0 was taken as 1, the first line"][..]),
            (json!(1), &[]),
            (json!(null), &[]),
        ] {
            let mut notes = Vec::new();
            let made = make(
                json!({ "path": "a", "offset": given }),
                &Options::default(),
                &mut notes,
            );
            let Ok(Action::Box(Call::ReadFile(read))) = made else {
                panic!("{made:?}")
            };
            assert_eq!(read.offset, 1);
            assert_eq!(notes, said, "{given}");
        }
    }
}
