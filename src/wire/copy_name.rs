//! Names of copies: what editors write beside an open file, and the names that users, file managers
//! and browsers give a second one.

/// Words at the end of a name that mark a copy, after one of the separators.
const WORDS: [&str; 10] = [
    "bak", "backup", "old", "orig", "save", "copy", "tmp", "rej", "un", "v",
];
const SIGNS: [char; 7] = ['.', ' ', '-', '_', ',', '~', '#'];

/// Separators after which a number at the end counts copies; after others it is part of the name.
const COUNTED: [char; 3] = ['.', ' ', '~'];

/// Most decorations of a name: each is removed in turn.
const MOST: usize = 8;

/// Returns the names, in lower case, that a file may be a copy of: without what editors and users
/// add at its end, before its extension and at its beginning.
pub(super) fn originals(name: &str) -> Vec<String> {
    // `.env.example.swp` is a copy of an example, whatever it looks like itself.
    let plain = undecorated(name);
    let mut names = vec![plain.to_owned()];
    // `secrets (1).yaml`
    if let Some((stem, extension)) = plain.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()) {
        let less = undecorated(stem);
        names.extend((less != stem).then(|| format!("{less}.{extension}")));
    }
    // `.id_rsa.swp` is beside `id_rsa`, and `..env.un~` beside `.env`.
    let visible: Vec<String> = names
        .iter()
        .filter_map(|name| name.strip_prefix('.'))
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    names.extend(visible);
    names
}

fn undecorated(name: &str) -> &str {
    let mut plain = name;
    for _ in 0..MOST {
        let less = once(plain);
        if less == plain {
            break;
        }
        // `id_rsa - copy`
        let less = less.trim_end_matches([' ', '-', '.']);
        if less.is_empty() {
            break;
        }
        plain = less;
    }
    plain
}

/// Removes one decoration.
fn once(name: &str) -> &str {
    if let Some(rest) = name.strip_prefix("copy of ") {
        return rest;
    }
    if let Some(rest) = name
        .strip_prefix(".#")
        .or_else(|| name.strip_prefix(['#', '~']))
    {
        return rest;
    }
    if let Some((rest, _)) = name
        .strip_suffix(')')
        .and_then(|name| name.rsplit_once('('))
    {
        return rest;
    }
    if let Some(rest) = name.strip_suffix(['~', '#']) {
        return rest;
    }
    let Some((at, sign)) = name.char_indices().rfind(|(_, c)| SIGNS.contains(c)) else {
        return name;
    };
    let (rest, word) = (&name[..at], &name[at + sign.len_utf8()..]);
    let is_swap = sign == '.'
        && word.len() == 3
        && word.starts_with("sw")
        && word.ends_with(|c: char| c.is_ascii_lowercase());
    let is_number = COUNTED.contains(&sign)
        && !word.is_empty()
        && word.bytes().all(|byte| byte.is_ascii_digit());
    if is_swap || is_number || WORDS.contains(&word) {
        rest
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decorations_of_copies_are_removed_from_a_name() {
        for (name, original) in [
            (".npmrc.swp", ".npmrc"),
            ("#.env#", ".env"),
            (".env,v", ".env"),
            (".env (3rd copy)", ".env"),
            ("id_rsa - copy (2)", "id_rsa"),
            ("a.~12~", "a"),
            ("copy of a.txt", "a.txt"),
            ("a.bak.old~", "a"),
            ("main.rs", "main.rs"),
            ("v", "v"),
            ("swp", "swp"),
            ("a.swift", "a.swift"),
            ("2026", "2026"),
            ("a_2", "a_2"),
        ] {
            assert_eq!(undecorated(name), original, "{name}");
        }
    }

    #[test]
    fn every_name_terminates_and_leaves_something() {
        for name in [
            "",
            "~",
            "####",
            "()",
            "( ",
            ")",
            "copy of ",
            ".",
            "..",
            "~~~~~~~~~~~~~~~~~~~~a",
            &"(".repeat(300),
            &".1".repeat(300),
        ] {
            assert!(
                originals(name)
                    .iter()
                    .all(|one| name.is_empty() || !one.is_empty()),
                "{name}"
            );
        }
    }
}
