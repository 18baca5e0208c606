//! How fast a model's text is looked through for calls.

use std::hint::black_box;

use podbay::llm::ToolSpec;
use podbay::llm::text::Tools;
use podbay::llm::text::parse;
use serde_json::json;

use super::table::Table;
use super::table::Times;

/// Bytes of the text.
const SIZE: usize = 8 << 20;
const ROUNDS: usize = 15;
/// What must be read in a second, in bytes.
const BAR: f64 = 100e6;

/// What models say most of the time: sentences, lists, code in fences and in lines.
const ORDINARY: &str = "The function `load` reads the file and returns each line that is not blank, so the caller need not check again.\n\n\
    - A note is one line; blanks at its ends are taken off before it is kept.\n\
    - `add` writes the whole file anew, which is fine for a few thousand notes [1] and wrong for more.\n\n\
    ```rust\nfn load(path: &Path) -> io::Result<Vec<String>> {\n    let text = fs::read_to_string(path)?;\n    \
    Ok(text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect())\n}\n```\n\n\
    I would change one thing: where the number is not there, say so and end with code 2, as the usage does. Everything else can stay as \
    it is, including the tests, which cover the order and an empty file.\n\n";

fn tools() -> Tools {
    let parameters = json!({"type": "object", "properties": {"command": {"type": "string"}, "path": {"type": "string"}}});
    let names = [
        "bash",
        "read_file",
        "write_file",
        "edit_file",
        "list_directory",
        "grep",
        "glob",
    ];
    let specs = names.map(|name| ToolSpec {
        name: name.into(),
        description: String::new(),
        parameters: parameters.clone(),
    });
    Tools::new(&specs)
}

/// The peer is what every client does with such a text anyway: reading it from the JSON string that
/// it comes in.
pub(super) fn rows(table: &mut Table) {
    let tools = tools();
    let call = "<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"cargo test --lib notes\"}}\n</tool_call>\n";
    let texts = [
        ("ordinary text", ORDINARY.to_owned(), true),
        (
            "text with a call after each half a kilobyte",
            format!("{ORDINARY}{call}"),
            false,
        ),
    ];
    for (what, piece, has_bar) in texts {
        let text = piece.repeat(SIZE / piece.len());
        let quoted = json!(text).to_string();
        let (mut ours, mut peer) = (Times::default(), Times::default());
        for _ in 0..ROUNDS {
            ours.add(|| black_box(parse(black_box(&text), &tools, None)));
            peer.add(|| black_box(serde_json::from_str::<String>(black_box(&quoted)).is_ok()));
        }
        let megabytes = text.len() as f64 / 1e6;
        table.row(
            &format!("looking for calls in {megabytes:.1} MB of {what}, against reading it from its JSON string"),
            &ours,
            &peer,
            None,
        );
        if has_bar {
            let speed = text.len() as f64 / ours.at(50).as_secs_f64();
            table.figure(
                &format!("the same, {what}"),
                &format!("{:.0} MB/s", speed / 1e6),
                "≥ 100 MB/s",
                speed >= BAR,
            );
        }
    }
}
