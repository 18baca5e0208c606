//! Functions that start themselves more and more often.

use std::collections::HashMap;

use podbay_code::shell::Command;
use podbay_code::shell::Script;

/// Returns the name of a function that starts itself more than once, perhaps by way of others.
pub(super) fn find(script: &Script) -> Option<&str> {
    if script.functions.is_empty() {
        return None;
    }
    let numbers: HashMap<&str, usize> = script.functions.iter().enumerate().map(|(at, function)| (function.name.as_str(), at)).collect();
    // Of functions within one another the innermost is meant, which comes first.
    let own = |at: usize| script.functions.iter().position(|function| function.body.contains(&at));
    let is_own = |command: &Command| {
        let names = ["$0", "$FUNCNAME", "${FUNCNAME}", "${FUNCNAME[0]}"];
        command.program().is_some_and(|program| names.contains(&program.text.as_str()))
    };
    let called = |command: &Command| command.name().and_then(|name| numbers.get(name)).copied();
    let calls: Vec<(usize, usize)> = script
        .commands
        .iter()
        .enumerate()
        .filter(|(_, command)| !command.again)
        .filter_map(|(at, command)| {
            let of = if is_own(command) { own(at) } else { called(command) };
            of.map(|of| (at, of))
        })
        .collect();
    let starts: Vec<HashMap<usize, usize>> = script
        .functions
        .iter()
        .map(|function| {
            let mut starts = HashMap::new();
            let from = calls.partition_point(|(at, _)| *at < function.body.start);
            for (_, of) in calls[from..].iter().take_while(|(at, _)| *at < function.body.end) {
                *starts.entry(*of).or_insert(0) += 1;
            }
            starts
        })
        .collect();
    let leads_to = |from: usize, to: usize| {
        let (mut seen, mut next) = (vec![false; starts.len()], vec![from]);
        while let Some(at) = next.pop() {
            if at == to {
                return true;
            }
            if !std::mem::replace(&mut seen[at], true) {
                next.extend(starts[at].keys().copied().filter(|at| !seen[*at]));
            }
        }
        false
    };
    let comes_back = |at: usize| starts[at].iter().filter(|(of, _)| leads_to(**of, at)).map(|(_, n)| n).sum::<usize>() > 1;
    (0..starts.len()).find(|at| comes_back(*at)).map(|at| script.functions[at].name.as_str())
}
