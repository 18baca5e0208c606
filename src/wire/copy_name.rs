//! Names of copies: what editors write beside a file while it is open, and what people, file
//! managers and browsers call a second one.

/// Words at the end of a name that say that it is a copy, behind any of the signs that such are put
/// behind.
const WORDS: [&str; 10] = [
    "bak", "backup", "old", "orig", "save", "copy", "tmp", "rej", "un", "v",
];
const SIGNS: [char; 7] = ['.', ' ', '-', '_', ',', '~', '#'];

/// Signs behind which a number at the end counts copies; behind others it is a part of the name.
const COUNTED: [char; 3] = ['.', ' ', '~'];

/// How many decorations a name may have: each is taken off in turn.
const MOST: usize = 8;

/// Returns what a file of this name, in lower case, is or may be a copy of: the name without all
/// that editors and people add to one at its end, in front of its extension and at its beginning.
pub(super) fn originals(name: &str) -> Vec<String> {
    // `.env.example.swp` is a copy of an example, whatever it may look like itself.
    let plain = undecorated(name);
    let mut names = vec![plain.to_owned()];
    // `secrets (1).yaml`
    if let Some((stem, extension)) = plain.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()) {
        let less = undecorated(stem);
        names.extend((less != stem).then(|| format!("{less}.{extension}")));
    }
    // `.id_rsa.swp` lies beside `id_rsa`, and `..env.un~` beside `.env`.
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

/// Takes off one decoration.
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
    fn what_editors_and_people_add_to_a_name_is_taken_off() {
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
    fn no_name_makes_it_go_on_for_ever_or_vanish() {
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
