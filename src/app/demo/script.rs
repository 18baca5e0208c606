use serde_json::Value;
use serde_json::json;

/// What the model of the demonstration is called wherever a model's name is shown.
pub(super) const MODEL: &str = "demonstration-script";

/// Tokens that it is said to read at once: enough for this task, and small enough to be shown as a
/// window.
pub(super) const CONTEXT: u64 = 16_384;

/// What the script says in one turn.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Turn {
    pub(super) text: String,
    /// Each tool's name and arguments.
    pub(super) calls: Vec<(&'static str, Value)>,
}

/// Returns what comes next, which depends on nothing but the request: how often the script has
/// spoken, and what came of its calls.
pub(super) fn answer(request: &Value) -> Turn {
    let messages = request["messages"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let said = |role: &str| {
        messages
            .iter()
            .filter(|message| message["role"] == role)
            .collect::<Vec<_>>()
    };
    let results: Vec<&str> = said("tool")
        .iter()
        .filter_map(|message| message["content"].as_str())
        .collect();
    if request["tool_choice"] == "none" || request.get("tools").is_none() {
        return words("I was stopped before the task was done.");
    }
    match said("assistant").len() {
        0 => Turn {
            text: "I look at the project first.".to_owned(),
            calls: vec![
                ("list_directory", json!({"path": "."})),
                ("read_file", json!({"path": "notes.py"})),
            ],
        },
        1 => Turn {
            text: "The command belongs beside `add`; the list of commands needs a line, too."
                .to_owned(),
            calls: vec![("edit_file", function()), ("edit_file", branch())],
        },
        2 => Turn {
            text: "I write down a test and run all of them.".to_owned(),
            calls: vec![
                ("edit_file", test()),
                ("bash", json!({"command": "python3 test_notes.py"})),
            ],
        },
        _ if results.iter().any(|result| result.starts_with("Denied")) => words(
            "The change was denied, so nothing was changed. With `--mode auto` the demonstration shows it.",
        ),
        _ => words(
            "`notes.py remove NUMBER` takes a note out and says which one; a number that is not there is an error with code 2. There is a \
             test for it, which was not run: a demonstration runs no command.",
        ),
    }
}

fn words(text: &str) -> Turn {
    Turn {
        text: text.to_owned(),
        calls: Vec::new(),
    }
}

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "old_string": old, "new_string": new})
}

fn function() -> Value {
    let function = "def remove(number, path=FILE):\n    notes = load(path)\n    if not 1 <= number <= len(notes):\n        return None\n    \
                    note = notes.pop(number - 1)\n    path.write_text(\"\".join(f\"{note}\\n\" for note in notes))\n    return note\n\n\n";
    edit(
        "notes.py",
        "def main(arguments):\n",
        &format!("{function}def main(arguments):\n"),
    )
}

fn branch() -> Value {
    let branch = "    elif arguments[:1] == [\"remove\"] and len(arguments) == 2 and arguments[1].isdigit():\n        \
                  note = remove(int(arguments[1]))\n        if note is None:\n            print(f\"there is no note {arguments[1]}\")\n            \
                  return 2\n        print(f\"removed: {note}\")\n";
    let old = "    else:\n        print(\"usage: notes.py add TEXT | list\")\n";
    edit(
        "notes.py",
        old,
        &format!(
            "{branch}{}",
            old.replace("| list", "| list | remove NUMBER")
        ),
    )
}

fn test() -> Value {
    let test = "    def test_a_note_is_removed_by_its_number(self):\n        notes.add(\"one\", self.path)\n        notes.add(\"two\", self.path)\n        \
                self.assertEqual(notes.remove(1, self.path), \"one\")\n        self.assertIsNone(notes.remove(2, self.path))\n        \
                self.assertEqual(notes.load(self.path), [\"two\"])\n\n\n";
    let old = "\nif __name__ == \"__main__\":\n";
    edit(
        "test_notes.py",
        old,
        &format!("{test}if __name__ == \"__main__\":\n"),
    )
}
