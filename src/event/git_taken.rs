use super::Kind;

/// How many names are said.
const MOST: usize = 8;

/// Says in words what of a session's git is the person's now; `None`: the event is another one. The names in it are the session's.
pub fn git_taken(kind: &Kind) -> Option<String> {
    let Kind::GitTaken { repository, branches, n_more, stashes, head, staged } = kind else { return None };
    let mut said: Vec<String> = branches.iter().take(MOST).cloned().collect();
    let n_more = branches.len().saturating_sub(MOST) as u64 + u64::from(*n_more);
    if n_more > 0 {
        said.push(format!("{n_more} more"));
    }
    if !stashes.is_empty() {
        said.push(format!("{} stash{}", stashes.len(), if stashes.len() == 1 { "" } else { "es" }));
    }
    said.extend(head.as_ref().map(|head| format!("on {head} now")));
    if *staged {
        said.push("what is staged".to_owned());
    }
    let place = repository.as_ref().map(|path| format!(" in {path}")).unwrap_or_default();
    Some(format!("taken over from the session{place}: {}", said.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_over_is_one_line() {
        let taken = |branches: usize, head: Option<&str>| Kind::GitTaken {
            repository: None,
            branches: (1..=branches).map(|n| format!("b{n} new, 1234567")).collect(),
            n_more: if branches > 100 { 800 } else { 0 },
            stashes: vec!["WIP".to_owned()],
            head: head.map(str::to_owned),
            staged: true,
        };
        let words = git_taken(&taken(1, Some("topic"))).expect("words");
        assert_eq!(words, "taken over from the session: b1 new, 1234567; 1 stash; on topic now; what is staged");
        assert!(git_taken(&taken(10, None)).expect("words").contains("b8 new, 1234567; 2 more; 1 stash"));
        assert!(git_taken(&taken(200, None)).expect("words").contains("b8 new, 1234567; 992 more; 1 stash"));
        assert_eq!(git_taken(&Kind::Interrupted), None);
    }
}
