use podbay_wire::Program;

/// Returns a program with its arguments as a shell would take them, each word quoted where it could
/// be taken for several.
pub fn program_words(program: &Program) -> String {
    let words: Vec<String> = program
        .argv
        .iter()
        .map(|word| quoted(&word.to_text()))
        .collect();
    let more = if program.truncated { " …" } else { "" };
    format!("{}{more}", words.join(" "))
}

fn quoted(word: &str) -> String {
    let is_plain =
        !word.is_empty() && !word.contains(|c: char| c.is_whitespace() || matches!(c, '\'' | '"'));
    if is_plain {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
