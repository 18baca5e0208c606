use std::io;
use std::io::Write;

use tokio_util::sync::CancellationToken;

use super::Keyboard;
use super::Paint;
use super::Typed;
use super::answer::TRIES;
use super::answer::answer;
use super::text;

/// Characters of an answer; whoever has more to say puts it in a file or says it in a message.
const ANSWER_MAX: usize = 10_000;

/// Asks a user a question of the model's, and returns what they answer: one of the options, by
/// its number or its words, or anything else.
///
/// `None`: nobody answered, or the question was withdrawn. What was typed before the question could
/// be read is thrown away, so that an Enter that was on its way answers nothing.
pub async fn question(
    question: &str,
    options: &[String],
    keyboard: &Keyboard,
    err: &mut impl Write,
    paint: Paint,
    cancel: &CancellationToken,
) -> Option<String> {
    if !keyboard.is_terminal() || show(question, options, err, paint).is_err() {
        return None;
    }
    for _ in 0..TRIES {
        match answer("Your answer? ", keyboard, err, cancel).await {
            Typed::Line(line) => match read(&line, options) {
                Ok(answer) => return Some(answer),
                Err(problem) => {
                    let _ = writeln!(err, "{problem}");
                }
            },
            Typed::End => return None,
            Typed::Cancelled => return withdrawn(err),
        }
    }
    None
}

/// Asks whether something may continue: Enter alone is a yes, all but a yes is a no.
pub async fn may_continue(
    question: &str,
    keyboard: &Keyboard,
    err: &mut impl Write,
    cancel: &CancellationToken,
) -> bool {
    let prompt = format!("\n{} [Y/n] ", text::line(question));
    match answer(&prompt, keyboard, err, cancel).await {
        Typed::Line(line) => ["", "y", "yes"].contains(&line.trim().to_lowercase().as_str()),
        Typed::End | Typed::Cancelled => false,
    }
}

fn show(question: &str, options: &[String], err: &mut impl Write, paint: Paint) -> io::Result<()> {
    writeln!(err, "\n{}", paint.bold("The agent asks:"))?;
    for line in text::escape(question).lines() {
        writeln!(err, "  | {line}")?;
    }
    for (at, option) in options.iter().enumerate() {
        writeln!(err, "  {}. {}", at + 1, text::line(option))?;
    }
    let how = if options.is_empty() {
        "Type an answer, then Enter."
    } else {
        "Type a number, or another answer, then Enter."
    };
    writeln!(err, "{how}")
}

fn read(line: &str, options: &[String]) -> Result<String, String> {
    let answer = line.trim();
    if answer.is_empty() {
        return Err("Please type an answer; to stop, press Ctrl-C.".to_owned());
    }
    if answer.chars().count() > ANSWER_MAX {
        return Err(format!(
            "This is longer than {ANSWER_MAX} characters; please say it shorter."
        ));
    }
    match answer.parse::<usize>() {
        // A number may well be an answer where there is nothing to choose from.
        Ok(number) if !options.is_empty() => {
            let chosen = number.checked_sub(1).and_then(|at| options.get(at));
            chosen.cloned().ok_or_else(|| {
                format!(
                    "There is no answer {number}; they are numbered 1 to {}.",
                    options.len()
                )
            })
        }
        _ => Ok(answer.to_owned()),
    }
}

fn withdrawn(err: &mut impl Write) -> Option<String> {
    let _: io::Result<()> = writeln!(err, "\n(the question is withdrawn)");
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, options: &[&str], expected: Result<&str, &str>) {
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        let read = read(line, &options);
        match expected {
            Ok(answer) => assert_eq!(read.as_deref(), Ok(answer), "{line}"),
            Err(words) => assert!(
                read.as_ref().is_err_and(|problem| problem.contains(words)),
                "{line}: {read:?}"
            ),
        }
    }

    #[test]
    fn an_answer_is_a_number_or_any_words() {
        check("2", &["red", "blue"], Ok("blue"));
        check(
            " green, if possible ",
            &["red", "blue"],
            Ok("green, if possible"),
        );
        check("7", &[], Ok("7"));
        check(
            "3",
            &["red", "blue"],
            Err("no answer 3; they are numbered 1 to 2"),
        );
        check("0", &["red"], Err("numbered 1 to 1"));
        check("  ", &["red"], Err("type an answer"));
        check(&"x".repeat(20_000), &[], Err("longer"));
    }

    #[test]
    fn a_question_cannot_pass_for_lines_of_ours() {
        let mut shown = Vec::new();
        show(
            "Is this fine?\nAllow it? \u{1b}[2J",
            &["yes\nno".to_owned()],
            &mut shown,
            Paint::NONE,
        )
        .expect("a vector takes all");
        let shown = String::from_utf8(shown).expect("text");
        assert!(
            shown.contains("  | Allow it? ")
                && !shown.contains('\u{1b}')
                && shown.contains("  1. yes\\nno"),
            "{shown}"
        );
    }
}
