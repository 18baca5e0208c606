//! A call without a mark at the end of an answer, behind words in its line: `Tool call: {…}`, `write_file {…}`, `to=functions.bash json{…}`.
//!
//! Whoever explains a tool writes so, too, and nothing is carried out by such a guess. But an answer that ends with nothing done must not pass for
//! one that is done: where nothing but a label or an announcement stands before the call, the model is asked, also where words follow it in its
//! line.

use super::call::Call;
use super::call::Form;
use super::cursor::Cursor;
use super::cursor::Read;
use super::cursor::Stop;
use super::example::Before;
use super::family;
use super::family::Found;
use super::pythonic;
use super::tagged;
use super::tools::Tools;

/// How many places of a text are tried.
const MAX_TRIED: usize = 32;
/// Words of whoever does it next.
const ANNOUNCING: [&str; 10] =
    ["i'll", "i\u{2019}ll", "i will", "let me", "let's", "let\u{2019}s", "let us", "i am going to", "i'm going to", "i\u{2019}m going to"];
/// How many words a label has at most, as "Tool call:".
const LABEL: usize = 3;
/// What may stand between a tool's name and its arguments, beside blanks.
const BETWEEN: [&str; 9] = ["```json", "```", "**", "`", ":", "json", "code", "<|constrain|>", "\""];

/// Returns the calls that a text ends with, and how they stand there; nothing where its words show them.
pub(super) fn calls<'t>(text: &'t str, tools: &Tools) -> Option<(&'t str, Vec<Call>)> {
    let tools = tools.only_known();
    last(text, &tools).or_else(|| followed(text, &tools))
}

/// Returns those with nothing behind them.
fn last<'t>(text: &'t str, tools: &Tools) -> Option<(&'t str, Vec<Call>)> {
    let body = text.trim_end_matches(['`', '*', ' ', '\n', '\r', '\t']);
    if !body.ends_with(['}', ')', ']']) {
        return None;
    }
    places(body, tools).take(MAX_TRIED).find_map(|at| {
        let mut found = Found::default();
        let mut c = Cursor::new(body, at, true);
        let is_all = read(&mut c, tools, &mut found).is_ok() && c.at() == body.len() && !found.calls.is_empty();
        // An object around it, or a quotation mark, is a part of it.
        let begin = body[..at].trim_end_matches(['{', '"', '\'', ' ']).len();
        (is_all && is_announced(&body[..at])).then_some((&body[begin..], found.calls))
    })
}

/// Returns those with words or a mark behind them in their line, which begin it or stand behind words that announce them.
///
/// In code, a list or a quotation none of them is looked for.
fn followed<'t>(text: &'t str, tools: &Tools) -> Option<(&'t str, Vec<Call>)> {
    let line = |at: usize| text[..at].rsplit('\n').next().unwrap_or_default();
    let may_be = |at: &usize| match line(*at) {
        "" | "'" | "\"" => true,
        words => {
            let is_prose = words.starts_with(char::is_alphabetic) && words.ends_with(' ') && !words.contains('"');
            is_prose && words.trim_end().ends_with(|c: char| c.is_alphanumeric() || matches!(c, ':' | '.' | '!'))
        }
    };
    places(text, tools).filter(may_be).take(MAX_TRIED).find_map(|at| {
        let mut found = Found::default();
        let mut c = Cursor::new(text, at, true);
        let is_one = read(&mut c, tools, &mut found).is_ok() && !found.calls.is_empty() && !is_spoken_of(&text[c.at()..]);
        (is_one && is_announced(text[..at].trim_end_matches('\''))).then(|| (&text[at..c.at()], found.calls))
    })
}

/// Returns whether what stands behind it in its line goes on to say something of it: "is what the server sent", "— runs a command", "at 10:00".
fn is_spoken_of(behind: &str) -> bool {
    let line = behind.lines().next().unwrap_or_default().trim_start_matches(['\'', '"', ' ', '\t']);
    let word: String = line.chars().take_while(|c| c.is_alphanumeric()).collect();
    let goes_on = line.starts_with(char::is_lowercase) && !matches!(word.as_str(), "and" | "then" | "now");
    goes_on || line.starts_with(['-', '–', '—', '=']) && !line.starts_with("--")
}

/// Returns where one may begin: a bracket behind something that is no word, or a tool's name.
fn places<'t>(body: &'t str, tools: &'t Tools) -> impl Iterator<Item = usize> + 't {
    let mut before = b' ';
    body.bytes().enumerate().filter_map(move |(at, byte)| {
        let begins = !tagged::is_name(std::mem::replace(&mut before, byte)) || body[..at].ends_with("functions.");
        let name = || Cursor::new(body, at, true).ahead(tagged::is_name);
        let is_one = begins && (matches!(byte, b'{' | b'[') || byte.is_ascii_alphabetic() && tools.resolve(name()).is_some());
        is_one.then_some(at)
    })
}

fn read(c: &mut Cursor, tools: &Tools, found: &mut Found) -> Read<()> {
    let begin = c.at();
    match c.peek()? {
        b'{' => family::objects(c, Form::Open, tools, found),
        b'[' => {
            c.next()?;
            c.spaces();
            let is_json = c.peek()? == b'{';
            c.go(begin);
            if is_json { family::objects(c, Form::Open, tools, found) } else { pythonic::list(c, tools, found) }
        }
        _ => {
            let name = tools.resolve(c.run(tagged::is_name)?).ok_or(Stop::No)?.to_owned();
            if c.peek()? == b'(' {
                c.go(begin);
                return pythonic::call(c, tools, found);
            }
            c.spaces();
            while c.take_any(&BETWEEN)? {
                c.spaces();
            }
            let arguments = family::arguments(c)?;
            if !fits(&arguments, &name, tools) {
                return Err(Stop::No);
            }
            found.push([Call { name, arguments }], c.at());
            Ok(())
        }
    }
}

/// Returns whether these are arguments of a tool, and all that it must have.
fn fits(arguments: &str, name: &str, tools: &Tools) -> bool {
    let fields: serde_json::Map<String, serde_json::Value> = serde_json::from_str(arguments).unwrap_or_default();
    let required = tools.required(name).unwrap_or_default();
    !fields.is_empty() && fields.keys().all(|key| tools.may_have(name, key)) && required.iter().all(|key| fields.contains_key(*key))
}

/// Returns whether nothing stands before it in its line but marks, a label, or words that announce it. That it stands in a list, or is marked as code,
/// says nothing.
fn is_announced(before: &str) -> bool {
    let words = before.trim_end_matches([' ', '\t', '-', '*', '`', '"', '{', '@']);
    if Before::only_shows(words) || words.matches("```").count() % 2 == 1 {
        return false;
    }
    let line = words.rsplit('\n').next().unwrap_or_default().trim_end();
    let is_label = line.ends_with(':') && line.split_whitespace().count() <= LABEL;
    let sentence = line.trim_end_matches(['.', ':', '!']).rsplit(". ").next().unwrap_or_default().to_lowercase();
    line.is_empty() || is_label || line.ends_with("commentary to=") || ANNOUNCING.iter().any(|announces| announces_by(&sentence, announces))
}

/// Returns whether a sentence announces something by these words; "let me know" asks for something.
fn announces_by(sentence: &str, announces: &str) -> bool {
    sentence.split_once(announces).is_some_and(|(_, behind)| !behind.trim_start().starts_with("know"))
}

#[cfg(test)]
mod tests {
    use super::super::corpus::tools;
    use super::super::parse;

    const CALL: &str = r#"{"name": "bash", "arguments": {"command": "ls -l"}}"#;

    #[test]
    fn a_call_behind_words_in_its_line_is_asked_about_and_stays_content() {
        let texts = [
            format!("I'll run it: {CALL}"),
            format!("Sure, I'll list the files. {CALL}\n"),
            format!("Let me look.\n\nTool call: {CALL}"),
            format!("assistant: {CALL}"),
            format!("- {CALL}"),
            format!("**{CALL}**"),
            format!("`{CALL}`"),
            r#"I will list them: [bash(command="ls -l")]"#.to_owned(),
            r#"Tool call: bash(command="ls -l")"#.to_owned(),
            r#"bash {"command": "ls -l"}"#.to_owned(),
            "**bash**\n{\"command\": \"ls -l\"}".to_owned(),
            r#"analysisWe need to look.assistantcommentary to=functions.bash json{"command": "ls -l"}"#.to_owned(),
        ];
        for text in texts {
            let parsed = parse(&text, &tools(), None);
            let mentioned: Vec<&str> = parsed.mentions.iter().flat_map(|mention| &mention.calls).map(|call| call.name.as_str()).collect();
            assert_eq!((parsed.calls.len(), mentioned, parsed.content.trim()), (0, vec!["bash"], text.trim()), "{text}");
            assert!(text.contains(&parsed.mentions[0].raw), "{text}");
        }
    }

    #[test]
    fn a_call_with_words_behind_it_in_its_line_is_asked_about() {
        let python = r#"bash(command="ls -l")"#;
        let texts = [
            format!("{CALL} Done!"),
            format!("{CALL}."),
            format!("{CALL},"),
            format!("{CALL} # list"),
            format!("'{CALL}'"),
            format!("I run it: {CALL} and wait."),
            format!("I will run it now.\n\n{CALL}."),
            format!("{CALL}\n{CALL}."),
            format!("{CALL}{{\"answer\": \"x\"}}"),
            r#"{"tool": "bash", "arguments": {"command": "ls -l"}}{"answer": "x"}"#.to_owned(),
            format!("[{python}] Done!"),
            format!("{python}."),
        ];
        for text in texts {
            let parsed = parse(&text, &tools(), None);
            let mentioned: Vec<&str> = parsed.mentions.iter().flat_map(|mention| &mention.calls).map(|call| call.name.as_str()).collect();
            assert_eq!((parsed.calls.len(), mentioned, parsed.content.trim()), (0, vec!["bash"], text.trim()), "{text}");
            assert!(text.contains(&parsed.mentions[0].raw), "{text}");
        }
        for text in [
            format!("- {CALL} lists the files."),
            format!("`{CALL}` lists the files."),
            format!("The server got {CALL} and said no."),
            format!("For example:\n{CALL} lists the files."),
            format!("Never run this:\n{CALL}."),
            format!("```\n{CALL} // lists\n```\nis in the file."),
            format!("{{\n  \"calls\": [\n    {CALL},\n    {CALL}\n  ]\n}}"),
            "bash(command) runs a command.".to_owned(),
            r#"bash(command="ls -l") \u{2014} runs a command"#.replace("\\u{2014}", "\u{2014}"),
            format!("{CALL} is what the server sent."),
            format!("Let me know if {CALL} is what you want."),
            format!("{CALL} at 10:00\n{CALL} at 10:01"),
        ] {
            let parsed = parse(&text, &tools(), None);
            assert_eq!((parsed.calls.len(), parsed.mentions.len()), (0, 0), "{text}: {:?}", parsed.mentions);
        }
    }

    #[test]
    fn what_is_shown_or_no_call_is_not_asked_about() {
        let texts = [
            format!("For example: {CALL}"),
            r#"All done. I removed the folder with bash(command="rm -rf build")"#.to_owned(),
            format!("The log ends with the call that failed: {CALL}"),
            r#"To deploy, run bash {"command": "ls"}"#.to_owned(),
            r#"In main.py line 3 the bug is in `data = read_file("x.txt")`"#.to_owned(),
            format!("You would write {CALL}"),
            format!("A call looks like this: {CALL}"),
            format!("> {CALL}"),
            format!("Its content is\n```jsonc\nx {CALL}\n```"),
            format!("I'd never run {CALL}"),
            format!("The call is {CALL} and nothing else"),
            r#"The package is {"name": "bash", "version": "5.2"}"#.to_owned(),
            r#"bash {"path": "x"}"#.to_owned(),
            "It takes bash(command)".to_owned(),
            "use fly {\"command\": \"ls\"}".to_owned(),
        ];
        for text in texts {
            let parsed = parse(&text, &tools(), None);
            assert_eq!((parsed.calls.len(), parsed.mentions.len()), (0, 0), "{text}: {:?}", parsed.mentions);
        }
    }

    #[test]
    fn very_many_beginnings_cost_little() {
        let text = "bash {".repeat(600) + "}";
        assert_eq!(parse(&text, &tools(), None).mentions.len(), 0);
    }
}
