//! The tools of files and commands, as a table: what the model is told of each, and what models of other systems call it.

use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;
use serde_json::json;

use super::Options;
use super::each;
use super::tool::Tool;
use super::tool::object;

/// How many tools the model is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Set {
    /// For small models and small windows.
    Small,
    Standard,
    Full,
}

fn tool(
    name: &'static str,
    aliases: &'static [&'static str],
    description: &'static str,
    parameters: Value,
    renamed: &'static [(&'static str, &'static str)],
    smallest_set: Set,
) -> Tool {
    Tool::new(name, description, parameters).known_as(aliases).renamed(renamed).in_sets_from(smallest_set).such_as(example(name))
}

/// Returns arguments of a tool that would be right.
fn example(name: &str) -> &'static str {
    match name {
        "read_file" => r#"{"path": "README.md"}"#,
        "write_file" => r#"{"path": "notes.txt", "content": "text"}"#,
        "edit_file" => r#"{"path": "a.txt", "old_string": "old", "new_string": "new"}"#,
        "glob" => r#"{"pattern": "**/*.rs"}"#,
        "grep" => r#"{"pattern": "fn main"}"#,
        "bash" => r#"{"command": "ls -l"}"#,
        "copy_file" | "move_file" => r#"{"source": "a.txt", "destination": "b.txt"}"#,
        "multi_edit" => r#"{"edits": [{"path": "a.txt", "old_string": "old", "new_string": "new"}]}"#,
        "apply_patch" => r#"{"patch": "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+new\n"}"#,
        "edit_lines" => r#"{"path": "a.txt", "operation": "replace", "start_line": 3, "new_content": "new"}"#,
        "delete_file" => r#"{"path": "old.txt"}"#,
        "mkdir" => r#"{"path": "src/new"}"#,
        _ => r#"{"path": "."}"#,
    }
}

/// Other names of the one path of a tool.
const ONE_PATH: [(&str, &str); 7] = [
    ("file_path", "path"),
    ("filepath", "path"),
    ("filename", "path"),
    ("file", "path"),
    ("directory", "path"),
    ("dir", "path"),
    ("folder", "path"),
];

const TWO_PATHS: [(&str, &str); 12] = [
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

/// Every tool there is, in the order in which a model is told of them.
pub(super) fn table(options: &Options) -> Vec<Tool> {
    let mut all = files_and_commands(options);
    all.extend(each::all());
    all
}

/// Descriptions are short: each costs room in every request.
fn files_and_commands(options: &Options) -> Vec<Tool> {
    vec![
        tool(
            "read_file",
            &["FileRead", "view_file", "Read"],
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
            &[
                ("file_path", "path"),
                ("filename", "path"),
                ("file", "path"),
                ("filepath", "path"),
                ("dir", "path"),
                ("folder", "path"),
                ("start_line", "offset"),
                ("cursor", "from_cursor"),
            ],
            Set::Small,
        ),
        tool(
            "edit_file",
            &["FileEdit", "Edit", "str_replace"],
            "Replace text in a file. old_string must be copied exactly and stand there once.",
            object(
                &json!({
                    "path": { "type": "string" },
                    "old_string": { "type": "string", "description": "Text to replace" },
                    "new_string": { "type": "string", "description": "Text to put there" },
                    "replace_all": { "type": "boolean", "description": "Replace every place" },
                    "create_if_missing": { "type": "boolean", "description": "With an empty old_string: make the file" },
                    "edits": {
                        "type": "array",
                        "description": "Instead of the above: several replacements, all or none",
                        "items": object(
                            &json!({ "old_string": { "type": "string" }, "new_string": { "type": "string" }, "replace_all": { "type": "boolean" } }),
                            &["old_string", "new_string"],
                        ),
                    },
                }),
                &["path"],
            ),
            &[
                ("file_path", "path"),
                ("filename", "path"),
                ("file", "path"),
                ("old_str", "old_string"),
                ("new_str", "new_string"),
                ("old", "old_string"),
                ("new", "new_string"),
                ("old_text", "old_string"),
                ("new_text", "new_string"),
                ("find", "old_string"),
                ("replace", "new_string"),
            ],
            Set::Small,
        ),
        tool(
            "write_file",
            &["FileWrite", "Write", "create_file"],
            "Write a whole file. Folders are made as needed.",
            object(
                &json!({
                    "path": { "type": "string" },
                    "content": { "type": "string", "description": "The whole text" },
                    "append": { "type": "boolean", "description": "Add to the end instead" },
                }),
                &["path", "content"],
            ),
            &[
                ("file_path", "path"),
                ("filename", "path"),
                ("file", "path"),
                ("filepath", "path"),
                ("text", "content"),
                ("contents", "content"),
                ("file_content", "content"),
                ("data", "content"),
            ],
            Set::Small,
        ),
        tool(
            "list_directory",
            &["ListDirectory", "ls", "list_dir", "list_files"],
            "List the files in a folder.",
            object(
                &json!({
                    "path": { "type": "string", "description": "Folder (default: the project)" },
                    "recursive": { "type": "boolean", "description": "Also what is in its folders" },
                    "show_hidden": { "type": "boolean" },
                    "show_size": { "type": "boolean" },
                    "max_entries": { "type": "integer" },
                }),
                &[],
            ),
            &[("dir", "path"), ("directory", "path"), ("folder", "path"), ("file_path", "path"), ("filepath", "path"), ("file", "path")],
            Set::Small,
        ),
        tool(
            "grep",
            &["Grep", "search_content", "search_regex", "search"],
            "Search file contents with a regular expression.",
            object(
                &json!({
                    "pattern": { "type": "string", "description": "Regular expression" },
                    "path": { "type": "string", "description": "Folder or file to search (default: the project)" },
                    "glob": { "type": "string", "description": "Only files like this, such as *.rs" },
                    "context": { "type": "integer", "description": "Lines around each match" },
                    "case_insensitive": { "type": "boolean" },
                    "output_mode": { "type": "string", "enum": ["content", "files_only", "count"] },
                    "max_results": { "type": "integer" },
                }),
                &["pattern"],
            ),
            &[
                ("query", "pattern"),
                ("regex", "pattern"),
                ("search", "pattern"),
                ("dir", "path"),
                ("directory", "path"),
                ("folder", "path"),
                ("file_path", "path"),
                ("filepath", "path"),
                ("file", "path"),
                ("include", "glob"),
                ("ignore_case", "case_insensitive"),
            ],
            Set::Small,
        ),
        tool(
            "bash",
            &["Bash", "run_command", "shell", "execute_command"],
            "Run a shell command in the project folder. The folder it ends in is kept for the next command. There is no network.",
            object(
                &json!({
                    "command": { "type": "string" },
                    "working_directory": { "type": "string", "description": "Folder to run in" },
                    "timeout_seconds": {
                        "type": "integer",
                        "description": format!("Default {}, at most {}", options.bash_timeout.get(), options.bash_timeout_max.get()),
                    },
                    "description": { "type": "string", "description": "What it is for, in a few words" },
                    "background": { "type": "boolean", "description": "Leave it running and go on" },
                }),
                &["command"],
            ),
            &[
                ("cmd", "command"),
                ("script", "command"),
                ("cwd", "working_directory"),
                ("workdir", "working_directory"),
                ("timeout", "timeout_seconds"),
            ],
            Set::Small,
        ),
        tool(
            "glob",
            &["Glob", "search_files", "find_files"],
            "Find files by name, newest first.",
            object(
                &json!({
                    "pattern": { "type": "string", "description": "Such as **/*.py" },
                    "path": { "type": "string", "description": "Folder to look in (default: the project)" },
                    "exclude": { "type": "string", "description": "Names to leave out, such as **/test_*" },
                    "max_results": { "type": "integer" },
                }),
                &["pattern"],
            ),
            &[
                ("query", "pattern"),
                ("search", "pattern"),
                ("glob", "pattern"),
                ("dir", "path"),
                ("directory", "path"),
                ("folder", "path"),
                ("file_path", "path"),
                ("filepath", "path"),
            ],
            Set::Standard,
        ),
        tool(
            "multi_edit",
            &["MultiEdit"],
            "Replace text in several files, all or nothing.",
            object(
                &json!({
                    "edits": {
                        "type": "array",
                        "description": "Made in order",
                        "items": object(
                            &json!({
                                "path": { "type": "string" },
                                "old_string": { "type": "string" },
                                "new_string": { "type": "string" },
                                "replace_all": { "type": "boolean" },
                            }),
                            &["path", "old_string", "new_string"],
                        ),
                    },
                }),
                &["edits"],
            ),
            &[("changes", "edits"), ("replacements", "edits")],
            Set::Standard,
        ),
        tool(
            "apply_patch",
            &["ApplyPatch", "patch"],
            "Apply a patch to files, all or nothing.",
            object(
                &json!({
                    "patch": { "type": "string", "description": "Unified diff, or *** Begin Patch" },
                    "dry_run": { "type": "boolean", "description": "Only check that it fits" },
                }),
                &["patch"],
            ),
            &[("diff", "patch"), ("input", "patch"), ("patch_text", "patch"), ("content", "patch")],
            Set::Standard,
        ),
        tool(
            "edit_lines",
            &["replace_lines", "insert_lines", "delete_lines"],
            "Change lines by their numbers.",
            object(
                &json!({
                    "path": { "type": "string" },
                    "operation": { "type": "string", "enum": ["insert", "replace", "delete"] },
                    "start_line": { "type": "integer", "description": "First line, from 1; insert puts text before it" },
                    "end_line": { "type": "integer", "description": "Last line (default: start_line)" },
                    "new_content": { "type": "string" },
                }),
                &["path", "operation", "start_line"],
            ),
            &[
                ("file_path", "path"),
                ("filename", "path"),
                ("file", "path"),
                ("line", "start_line"),
                ("start", "start_line"),
                ("end", "end_line"),
                ("content", "new_content"),
                ("text", "new_content"),
            ],
            Set::Full,
        ),
        tool(
            "delete_file",
            &["DeleteFile", "remove_file", "rm"],
            "Delete a file or folder.",
            object(
                &json!({
                    "path": { "type": "string" },
                    "recursive": { "type": "boolean", "description": "A folder with all in it" },
                }),
                &["path"],
            ),
            &ONE_PATH,
            Set::Full,
        ),
        tool(
            "copy_file",
            &["CopyFile", "cp"],
            "Copy a file or folder. Folders are made as needed.",
            object(
                &json!({
                    "source": { "type": "string" },
                    "destination": { "type": "string", "description": "The new path, name included" },
                    "recursive": { "type": "boolean", "description": "A folder with all in it" },
                    "overwrite": { "type": "boolean", "description": "Replace a file that is there" },
                }),
                &["source", "destination"],
            ),
            &TWO_PATHS,
            Set::Full,
        ),
        tool(
            "move_file",
            &["MoveFile", "rename_file", "mv"],
            "Move or rename a file or folder. Folders are made as needed.",
            object(
                &json!({
                    "source": { "type": "string" },
                    "destination": { "type": "string", "description": "The new path, name included" },
                    "overwrite": { "type": "boolean", "description": "Replace a file that is there" },
                }),
                &["source", "destination"],
            ),
            &TWO_PATHS,
            Set::Full,
        ),
        tool(
            "mkdir",
            &["create_directory", "make_directory"],
            "Make a folder and those above it.",
            object(&json!({ "path": { "type": "string" } }), &["path"]),
            &ONE_PATH,
            Set::Full,
        ),
        tool(
            "tree",
            &["Tree", "directory_tree"],
            "Show folders in folders, without what git ignores.",
            object(
                &json!({
                    "path": { "type": "string", "description": "Folder (default: the project)" },
                    "depth": { "type": "integer", "description": "How deep (default 4)" },
                }),
                &[],
            ),
            &ONE_PATH,
            Set::Full,
        ),
    ]
}
