//! Protected names that one command hands to another: what `find` finds, `ls` lists and `grep` lets pass.

use std::collections::BTreeSet;
use std::collections::HashMap;

use super::protected::found_by;
use super::protected::looked_for;
use super::protected::may_open;
use super::protected::named;
use super::protected::searched;
use super::protected::takes_names;
use podbay_code::shell::Command;
use podbay_code::shell::Script;
use podbay_code::shell::Word;
use podbay_code::shell::WordKind;

/// Names that are handed on by way of variables.
const KEPT_MAX: usize = 8;

/// What goes through a pipe.
#[derive(Default)]
struct Passing {
    names: BTreeSet<String>,
    /// Those that begin with a dot go through, too.
    hidden: bool,
}

/// Returns the protected names that commands are handed, each with the place of the command.
pub(super) fn names(script: &Script) -> Vec<(usize, String)> {
    let runs = |word: &Word| matches!(word.text.as_str(), "-exec" | "-execdir");
    let runs_for_each = |command: &Command| command.arguments().iter().any(runs);
    let mut handed = Vec::new();
    // Most hand nothing on.
    if script.shells.is_empty() && !script.commands.iter().any(|command| command.piped || runs_for_each(command)) {
        return handed;
    }
    // By the number of the shell.
    let mut pipes: HashMap<usize, Passing> = HashMap::new();
    let mut last: HashMap<usize, usize> = HashMap::new();
    // What came out of substitutions, and what variables have of that.
    let (mut inside, mut kept) = (BTreeSet::new(), BTreeSet::new());
    let goes_through_output = script.values.iter().any(|value| is_substituted(&value.word));
    for (at, command) in script.commands.iter().enumerate() {
        let mut passing = pipes.remove(&command.shell).filter(|_| command.piped).unwrap_or_default();
        if command.piped && takes_names(command) {
            handed.extend(passing.names.iter().map(|name| (at, name.clone())));
        }
        pass(command, &mut passing);
        let around = command.shell.checked_sub(1).and_then(|shell| script.shells.get(shell));
        if around.is_some() {
            inside.extend(passing.names.iter().take(KEPT_MAX).cloned());
        }
        let opens = |outer: &Command| outer.words.iter().any(is_substituted) && may_open(outer);
        if !passing.names.is_empty()
            && let Some(&opener) = around.and_then(|shell| last.get(shell))
            && opens(&script.commands[opener])
        {
            handed.extend(passing.names.iter().map(|name| (opener, name.clone())));
        }
        // A variable has them from then on.
        if goes_through_output || command.assignments.iter().filter_map(|set| set.value.as_ref()).any(is_substituted) {
            kept.extend(inside.iter().take(KEPT_MAX).cloned());
        }
        if !kept.is_empty() && may_open(command) && command.words.iter().any(|word| word.kind == WordKind::Unknown) {
            handed.extend(kept.iter().take(KEPT_MAX).map(|name: &String| (at, name.clone())));
        }
        if runs_for_each(command) {
            handed.extend(passing.names.iter().map(|name| (at, name.clone())));
        }
        pipes.insert(command.shell, passing);
        last.insert(command.shell, at);
    }
    handed
}

fn is_substituted(word: &Word) -> bool {
    word.kind == WordKind::Unknown && (word.text.contains("$(") || word.text.contains('`'))
}

/// What comes out of a command, from what goes into it.
fn pass(command: &Command, passing: &mut Passing) {
    let arguments = command.arguments();
    let said = || arguments.iter().flat_map(named).collect();
    let flags = |letters: [char; 2]| arguments.iter().any(|word| word.text.starts_with('-') && word.text.contains(letters));
    *passing = match command.name().unwrap_or_default() {
        "find" | "gfind" | "fd" => Passing { names: looked_for(command), hidden: true },
        "echo" | "printf" => Passing { names: said(), hidden: false },
        "ls" => Passing { names: said(), hidden: flags(['a', 'A']) },
        "git" if arguments.first().is_some_and(|word| word.text == "ls-files") => Passing { names: said(), hidden: true },
        "grep" | "egrep" | "fgrep" | "rg" if command.piped => {
            let looked_for = searched(command).and_then(|at| arguments.get(at)).filter(|_| !flags(['v', 'v']));
            let found = looked_for.map(|word| found_by(&word.text, false)).unwrap_or_default();
            let hidden = passing.hidden;
            let mut names = std::mem::take(&mut passing.names);
            names.extend(found.into_iter().filter(|_| hidden));
            Passing { names, hidden }
        }
        "sort" | "uniq" | "head" | "tail" | "sed" | "tr" | "cut" | "tee" | "xargs" => std::mem::take(passing),
        _ => Passing::default(),
    };
}
