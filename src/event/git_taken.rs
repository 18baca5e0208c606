use super::Kind;
use podbay_wire::keep::ellipsize;

/// How many branches are said that were there before, and how many names that are new: the first
/// are what a user has to know of.
const MOST_MOVED: usize = 40;
const MOST_NEW: usize = 8;

/// How many characters of one name are said with what it was and is.
const MOST_CHARS: usize = 100;

/// Says in words what of a session's git is the user's now, each name in a line of its own where
/// there are several: branches that were there before and moved come first. `None`: the event is
/// another one. The names in it are the session's.
pub fn git_taken(kind: &Kind) -> Option<String> {
    words(kind, MOST_MOVED, MOST_NEW)
}

/// The same with all names that the event has.
pub fn git_taken_whole(kind: &Kind) -> Option<String> {
    words(kind, usize::MAX, usize::MAX)
}

fn words(kind: &Kind, most_moved: usize, most_new: usize) -> Option<String> {
    let Kind::GitTaken {
        repository,
        branches,
        n_more,
        stashes,
        head,
        staged,
        waited,
    } = kind
    else {
        return None;
    };
    let (new, moved): (Vec<&String>, Vec<&String>) =
        branches.iter().partition(|words| words.contains(" new, "));
    let mut lines: Vec<String> = moved
        .iter()
        .take(most_moved)
        .chain(new.iter().take(most_new))
        .map(|words| ellipsize(words, MOST_CHARS))
        .collect();
    let n_more = (branches.len() - lines.len()) as u64 + u64::from(*n_more);
    if n_more > 0 {
        let shown = if *waited {
            "`podbay review diff` named them"
        } else {
            "`podbay sessions show` names them"
        };
        lines.push(format!("and {n_more} more: {shown}"));
    }
    let mut besides = Vec::new();
    if !stashes.is_empty() {
        besides.push(format!(
            "{} stash{}",
            stashes.len(),
            if stashes.len() == 1 { "" } else { "es" }
        ));
    }
    besides.extend(
        head.as_ref()
            .map(|head| format!("on {} now", ellipsize(head, MOST_CHARS))),
    );
    if *staged {
        besides.push("what is staged".to_owned());
    }
    let place = repository
        .as_ref()
        .map(|path| format!(" in {path}"))
        .unwrap_or_default();
    if lines.len() > 1 {
        lines.extend((!besides.is_empty()).then(|| besides.join("; ")));
        return Some(format!(
            "imported from the session{place}:\n{}",
            lines.join("\n")
        ));
    }
    lines.extend(besides);
    Some(format!(
        "imported from the session{place}: {}",
        lines.join("; ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(branches: Vec<String>, n_more: u32, head: Option<&str>) -> Kind {
        let (stashes, head) = (vec!["WIP".to_owned()], head.map(str::to_owned));
        Kind::GitTaken {
            repository: None,
            branches,
            n_more,
            stashes,
            head,
            staged: true,
            waited: false,
        }
    }

    fn new(n: usize) -> Vec<String> {
        (1..=n).map(|n| format!("b{n} new, 1234567")).collect()
    }

    #[test]
    fn what_was_taken_over_is_a_line_and_several_names_are_a_line_each() {
        let words = git_taken(&taken(new(1), 0, Some("topic"))).expect("words");
        assert_eq!(
            words,
            "imported from the session: b1 new, 1234567; 1 stash; on topic now; what is staged"
        );
        let words = git_taken(&taken(new(2), 0, None)).expect("words");
        assert_eq!(
            words,
            "imported from the session:\nb1 new, 1234567\nb2 new, 1234567\n1 stash; what is staged"
        );
        assert!(
            git_taken(&taken(new(10), 0, None))
                .expect("words")
                .contains("\nb8 new, 1234567\nand 2 more: `podbay sessions show`")
        );
        let many = taken(new(200), 800, None);
        assert!(
            git_taken(&many)
                .expect("words")
                .contains("\nb8 new, 1234567\nand 992 more: ")
        );
        assert!(
            git_taken_whole(&many)
                .expect("words")
                .contains("\nb200 new, 1234567\nand 800 more: ")
        );
        assert_eq!(git_taken(&Kind::Interrupted), None);
    }

    #[test]
    fn many_long_new_names_do_not_hide_a_moved_branch() {
        let mut branches: Vec<String> = (0..40)
            .map(|n| format!("{}{n} new, 1234567", "a".repeat(900)))
            .collect();
        branches.push("release 1111111..2222222".to_owned());
        branches.push(format!("{}/main 1111111..2222222", "z".repeat(900)));
        let words = git_taken(&taken(branches, 0, None)).expect("words");
        let lines: Vec<&str> = words.lines().collect();
        assert_eq!(lines[1], "release 1111111..2222222");
        assert!(
            lines[2].starts_with("zzz") && lines[2].ends_with("z/main 1111111..2222222"),
            "{}",
            lines[2]
        );
        assert_eq!(
            (lines.len(), lines[11]),
            (13, "and 32 more: `podbay sessions show` names them")
        );
        assert!(
            lines
                .iter()
                .all(|line| line.chars().count() <= MOST_CHARS + 1),
            "{words}"
        );
    }
}
