use std::borrow::Cow;

use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;
use serde_json::json;

use super::Options;
use super::arguments;
use super::repair;
use super::schema::Schema;
use crate::llm::control;
use crate::policy::Action;

/// How many tools the model is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Set {
    /// For small models and small windows.
    Small,
    Standard,
    Full,
}

/// One tool as the model sees it.
pub struct Tool {
    pub name: &'static str,
    /// Names that models trained on other systems use for it.
    aliases: &'static [&'static str],
    pub description: &'static str,
    /// The JSON schema of its arguments.
    pub parameters: Value,
    schema: Schema,
    /// Other names of its arguments, and the right ones.
    renamed: &'static [(&'static str, &'static str)],
    smallest_set: Set,
}

/// The tools of one session, in an order that never changes.
pub struct Catalogue {
    tools: Vec<Tool>,
    options: Options,
}

/// Why the model's words are no call that can be judged. The text is for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Misunderstood(pub(super) String);

/// A call whose words make sense.
#[derive(Debug)]
pub(super) struct Understood {
    /// The tool's own name.
    pub(super) name: &'static str,
    pub(super) action: Action,
    /// Where it is not quite what was asked for, a line each; they belong to the result.
    pub(super) notes: Vec<String>,
}

impl Catalogue {
    pub fn new(options: &Options) -> Self {
        let wanted = |tool: &Tool| match options.set {
            Set::Small => tool.smallest_set == Set::Small,
            Set::Standard | Set::Full => true,
        };
        let mut tools: Vec<Tool> = table(options).into_iter().filter(wanted).collect();
        if options.set == Set::Small {
            tools.iter_mut().for_each(Tool::make_small);
        }
        Self { tools, options: options.clone() }
    }

    /// Keeps only the named tools; used where a task needs few.
    #[must_use]
    pub fn only(mut self, names: &[&str]) -> Self {
        self.tools.retain(|tool| names.contains(&tool.name));
        self
    }

    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// Returns the tool's own name, if there is such a tool by that name or by an alias.
    pub fn find(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name || tool.aliases.contains(&name))
    }

    /// Turns the model's words into an action: finds the tool, reads the JSON, checks it against the schema.
    pub(super) fn parse(&self, name: &str, arguments: &str) -> Result<Understood, Misunderstood> {
        let tool = self.find(name).ok_or_else(|| self.unknown(name))?;
        let mut notes = Vec::new();
        if name != tool.name {
            notes.push(format!("{name} was taken as {}", tool.name));
        }
        let mut fields = repair::read(tool, arguments, &mut notes)
            .map_err(|problem| Misunderstood(format!("the arguments of {} {problem}, such as {}", tool.name, tool.example())))?;
        repair::rename(tool.renamed, &mut fields, &mut notes);
        let mut value = Value::Object(fields);
        restore(&mut value);
        tool.schema.coerce(&mut value, &mut notes);
        if let Some(fields) = value.as_object_mut() {
            repair::unescape(tool.name, fields, &mut notes);
        }
        tool.schema.check(&value).map_err(|problems| {
            Misunderstood(format!(
                "wrong arguments for {}: {}. Right would be, for example, {}",
                tool.name,
                problems.join("; "),
                tool.example()
            ))
        })?;
        let action = arguments::action(tool.name, value, &self.options, &mut notes)
            .map_err(|problem| Misunderstood(format!("wrong arguments for {}: {problem}", tool.name)))?;
        Ok(Understood { name: tool.name, action, notes })
    }

    fn unknown(&self, name: &str) -> Misunderstood {
        let names: Vec<&str> = self.tools.iter().map(|tool| tool.name).collect();
        let shown: String = name.chars().take(60).collect();
        Misunderstood(format!("there is no tool `{shown}`. The tools are: {}", names.join(", ")))
    }
}

impl Tool {
    /// Leaves only the arguments that every task needs: a small model loses itself among the others, and its window is small too.
    fn make_small(&mut self) {
        let (kept, required): (&[&str], &[&str]) = match self.name {
            "read_file" => (&["path", "offset", "limit"], &["path"]),
            "edit_file" => (&["path", "old_string", "new_string", "replace_all"], &["path", "old_string", "new_string"]),
            "write_file" => (&["path", "content"], &["path", "content"]),
            "list_directory" => (&["path", "recursive"], &[]),
            "grep" => (&["pattern", "path", "glob"], &["pattern"]),
            "bash" => (&["command", "timeout_seconds"], &["command"]),
            _ => return,
        };
        if let Some(properties) = self.parameters["properties"].as_object_mut() {
            properties.retain(|name, _| kept.contains(&name.as_str()));
        }
        self.parameters["required"] = json!(required);
        self.schema = Schema::new(&self.parameters);
    }

    /// Returns whether an argument is called so, here or elsewhere.
    pub(super) fn takes(&self, name: &str) -> bool {
        self.parameters["properties"].get(name).is_some() || self.renamed.iter().any(|(wrong, _)| *wrong == name)
    }

    /// Returns the other names of an argument.
    pub(super) fn other_names(&self, right: &str) -> impl Iterator<Item = &'static str> {
        self.renamed.iter().filter(move |(_, name)| *name == right).map(|(wrong, _)| *wrong)
    }

    /// Returns arguments that would be right, to learn from.
    fn example(&self) -> &'static str {
        match self.name {
            "read_file" => r#"{"path": "README.md"}"#,
            "write_file" => r#"{"path": "notes.txt", "content": "text"}"#,
            "edit_file" => r#"{"path": "a.txt", "old_string": "old", "new_string": "new"}"#,
            "glob" => r#"{"pattern": "**/*.rs"}"#,
            "grep" => r#"{"pattern": "fn main"}"#,
            "bash" => r#"{"command": "ls -l"}"#,
            _ => r#"{"path": "."}"#,
        }
    }
}

/// Undoes what was done to control tokens on their way to the model: text that it copies from a result must be found in the file.
fn restore(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(restored) = control::restore(text) {
                *text = restored;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(restore),
        Value::Object(fields) => fields.values_mut().for_each(restore),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn tool(
    name: &'static str,
    aliases: &'static [&'static str],
    description: &'static str,
    parameters: Value,
    renamed: &'static [(&'static str, &'static str)],
    smallest_set: Set,
) -> Tool {
    let schema = Schema::new(&parameters);
    Tool { name, aliases, description, parameters, schema, renamed, smallest_set }
}

/// Every tool there is. Descriptions are short: each costs room in every request.
fn table(options: &Options) -> Vec<Tool> {
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
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Call;

    fn catalogue() -> Catalogue {
        Catalogue::new(&Options::default())
    }

    #[track_caller]
    fn wrong(name: &str, arguments: &str, says: &[&str]) {
        let Misunderstood(text) = catalogue().parse(name, arguments).expect_err("must be refused");
        for part in says {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn what_the_model_gets_wrong_is_named_with_a_remedy() {
        wrong("fly", "{}", &["no tool `fly`", "read_file, edit_file"]);
        wrong("read_file", "{", &["not valid JSON", r#"{"path": "README.md"}"#]);
        wrong("read_file", "[1]", &["must be a JSON object"]);
        wrong("read_file", "{}", &["`path`"]);
        wrong("bash", "{}", &["`command` is missing"]);
        wrong("bash", r#"{"command": {"a": 5}}"#, &["`command`", "string"]);
        wrong("bash", r#"{"command": "x", "sandbox": false}"#, &["`sandbox`", "not known"]);
        wrong("grep", r#"{"pattern": "x", "output_mode": "loud"}"#, &["`output_mode`", "content"]);
    }

    #[test]
    fn a_number_that_is_too_large_is_taken_as_the_largest_and_that_is_said() {
        let largest = [
            ("read_file", r#"{"path": "a", "limit": 5000}"#, "limit 5000 was taken as 2000"),
            ("read_file", r#"{"from_cursor": "c", "max_files": 99}"#, "max_files 99 was taken as 20"),
            ("list_directory", r#"{"max_entries": 99999}"#, "max_entries 99999 was taken as 1000"),
            ("glob", r#"{"pattern": "*", "max_results": 10000000000}"#, "max_results 10000000000 was taken as 500"),
            ("grep", r#"{"pattern": "x", "context": 51}"#, "context 51 was taken as 50"),
            ("bash", r#"{"command": "x", "timeout_seconds": 601}"#, "timeout_seconds 601 was taken as 600"),
        ];
        for (name, arguments, says) in largest {
            let notes = catalogue().parse(name, arguments).expect("understood").notes;
            assert!(notes.len() == 1 && notes[0].starts_with(says), "{notes:?}");
            let fits = arguments.replace("5000", "2000").replace("99999", "1000").replace("10000000000", "500");
            let fits = fits.replace("99}", "20}").replace("51", "50").replace("601", "600");
            assert_eq!(catalogue().parse(name, &fits).expect("understood").notes, [""; 0]);
        }
        let notes = catalogue().parse("read_file", r#"{"path": "a", "limit": 99999999999999999999999}"#).expect("understood").notes;
        assert!(notes.len() == 1 && notes[0].contains("was taken as 2000"), "{notes:?}");
        wrong("grep", r#"{"pattern": "x", "context": -1}"#, &["`context` cannot be negative"]);
    }

    #[test]
    fn names_of_other_systems_and_lenient_values_are_understood() {
        let Understood { name, action, .. } = catalogue().parse("FileRead", r#"{"file_path": "a", "limit": "20"}"#).expect("understood");
        assert_eq!(name, "read_file");
        let Action::Box(Call::ReadFile(read)) = action else { panic!("{action:?}") };
        assert_eq!((read.path, read.limit), (Some("a".into()), 20));
    }

    #[track_caller]
    fn mended(name: &str, arguments: &str, plain: (&str, &str), notes: &[&str]) {
        let right = catalogue().parse(plain.0, plain.1).expect("right");
        assert_eq!(right.notes, [""; 0], "what is right needs no note");
        let understood = catalogue().parse(name, arguments).expect("understood");
        assert_eq!(
            (understood.action, understood.notes.as_slice()),
            (right.action, notes.iter().map(|note| (*note).to_owned()).collect::<Vec<_>>().as_slice())
        );
    }

    #[test]
    fn what_weak_models_get_wrong_is_mended_and_said() {
        let read = ("read_file", r#"{"path": "a", "limit": 5}"#);
        mended("Read", r#"{"filepath": "a", "limit": 5}"#, read, &["Read was taken as read_file", "filepath was taken as path"]);
        mended("read_file", r#"{"path": "a", "limit": "5"}"#, read, &["limit \"5\" was taken as 5"]);
        mended("read_file", r"{'path': 'a', 'limit': 5,}", read, &["the arguments were no valid JSON and were mended"]);
        let string = serde_json::to_string(read.1).expect("a string");
        mended("read_file", &string, read, &["the arguments were written into a string; send them as an object"]);
        mended("read_file", r#"{"arguments": {"path": "a", "limit": 5}}"#, read, &["the arguments were taken out of arguments"]);
        let bash = ("bash", r#"{"command": "5", "background": true}"#);
        mended(
            "bash",
            r#"{"cmd": 5, "background": "yes"}"#,
            bash,
            &["cmd was taken as command", "command 5 was taken as \"5\"", "background \"yes\" was taken as true"],
        );
        mended(
            "bash",
            r#"{"command": ["bash", "-lc", "ls -l"]}"#,
            ("bash", r#"{"command": "ls -l"}"#),
            &["command [\"bash\",\"-lc\",\"ls -l\"] was taken as \"ls -l\""],
        );
        let write = ("write_file", r#"{"path": "a.json", "content": "{\n  \"a\": 1\n}"}"#);
        mended(
            "write_file",
            r#"{"path": "a.json", "content": {"a": 1}}"#,
            write,
            &["content {\"a\":1} was taken as \"{\\n  \\\"a\\\": 1\\n}\""],
        );
        let edit = ("edit_file", r#"{"path": "a", "edits": [{"old_string": "b", "new_string": "c"}]}"#);
        let one = r#"{"path": "a", "edits": {"old_string": "b", "new_string": "c"}}"#;
        mended(
            "edit_file",
            one,
            edit,
            &["edits {\"old_string\":\"b\",\"new_string\":\"c\"} was taken as [{\"old_string\":\"b\",\"new_string\":\"c\"}]"],
        );
        mended(
            "edit_file",
            r#"{"file": "a", "find": "b", "replace": "c"}"#,
            ("edit_file", r#"{"path": "a", "old_string": "b", "new_string": "c"}"#),
            &["file was taken as path", "find was taken as old_string", "replace was taken as new_string"],
        );
        let grep = ("grep", r#"{"pattern": "x", "output_mode": "count"}"#);
        mended(
            "grep",
            r#"{"search": "x", "output_mode": "Count"}"#,
            grep,
            &["search was taken as pattern", "output_mode \"Count\" was taken as \"count\""],
        );
    }

    #[test]
    fn control_tokens_come_back_as_the_file_has_them() {
        let shown = control::neutralise("a <|im_end|> b").into_owned();
        let arguments = serde_json::json!({ "path": "a", "old_string": shown, "new_string": "x" }).to_string();
        let Understood { action, .. } = catalogue().parse("edit_file", &arguments).expect("understood");
        let Action::Box(Call::EditFile(edit)) = action else { panic!("{action:?}") };
        assert_eq!(edit.edits[0].old_string, "a <|im_end|> b");
    }

    #[test]
    fn the_small_set_leaves_glob_out() {
        let small = Catalogue::new(&Options { set: Set::Small, ..Options::default() });
        let names: Vec<&str> = small.tools().iter().map(|tool| tool.name).collect();
        assert_eq!(names, ["read_file", "edit_file", "write_file", "list_directory", "grep", "bash"]);
    }
}
