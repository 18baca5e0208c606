use super::WITH_BASH;
use crate::tools::target_entry::refused;
use podbay_wire::BytesPath;
use podbay_wire::Fault;

/// Longest name of one file or folder, in bytes.
const MAX_NAME: usize = 255;
const MAX_PATH: usize = 3000;
const MAX_DEPTH: usize = 64;

/// Returns the components of an entry's name; refuses one that could lead out of the target folder.
pub(super) fn parts(archive: &BytesPath, name: &[u8]) -> Result<Vec<Vec<u8>>, Fault> {
    let bad = |problem: &str| {
        let shown: String = BytesPath::from_bytes(name)
            .to_string()
            .chars()
            .take(100)
            .collect();
        refused(
            archive,
            format!("the entry `{shown}` {problem}; {WITH_BASH}"),
        )
    };
    if name.contains(&0) {
        return Err(bad("has a NUL byte in its name"));
    }
    if name.starts_with(b"/") {
        return Err(bad("has an absolute name"));
    }
    if name.contains(&b'\\') || matches!(name, [letter, b':', ..] if letter.is_ascii_alphabetic()) {
        return Err(bad("has a Windows name, with a backslash or a drive"));
    }
    if name.len() > MAX_PATH {
        return Err(bad("has a name that is too long"));
    }
    let parts: Vec<Vec<u8>> = name
        .split(|byte| *byte == b'/')
        .filter(|part| !part.is_empty() && *part != b".")
        .map(<[u8]>::to_vec)
        .collect();
    if parts.iter().any(|part| part == b"..") {
        return Err(bad("has `..` in its name, which leads out"));
    }
    if parts.len() > MAX_DEPTH || parts.iter().any(|part| part.len() > MAX_NAME) {
        return Err(bad("has a name that is too long or lies too deep"));
    }
    Ok(parts)
}

/// Refuses a link that could lead out of the target folder.
///
/// `..` may stand only before any name, and at most as often as the link is deep: then, by
/// induction over the links on the way, every target stays inside.
pub(super) fn check_link(
    archive: &BytesPath,
    parts: &[Vec<u8>],
    target: &[u8],
) -> Result<(), Fault> {
    let mut up = 0;
    let mut is_down = false;
    let mut leads_out = target.starts_with(b"/") || target.is_empty() || target.contains(&0);
    for part in target
        .split(|byte| *byte == b'/')
        .filter(|part| !part.is_empty() && *part != b".")
    {
        if part == b".." {
            up += 1;
            leads_out |= is_down;
        } else {
            is_down = true;
        }
    }
    if leads_out || up >= parts.len().max(1) {
        let (name, target) = (parts.join(&b'/'), target.to_vec());
        let shown = |bytes: Vec<u8>| BytesPath::from_bytes(bytes).to_string();
        let problem = format!(
            "the link `{}` to `{}` could lead out of the folder; {WITH_BASH}",
            shown(name),
            shown(target)
        );
        return Err(refused(archive, problem));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_names_that_escape_the_folder_are_refused() {
        let archive = BytesPath::from_text("a.zip");
        for name in [
            "../a",
            "a/../../b",
            "a/..",
            "/etc/passwd",
            "..\\a",
            "C:/a",
            "c:a",
            "a\0b",
            "a/b\\c",
        ] {
            assert!(parts(&archive, name.as_bytes()).is_err(), "{name}");
        }
        let long = [
            "x".repeat(256),
            format!("{}x", "d/".repeat(70)),
            "x/".repeat(2000),
        ];
        for name in long {
            assert!(parts(&archive, name.as_bytes()).is_err(), "{name}");
        }
        for (name, n) in [
            ("a", 1),
            ("./a//b/", 2),
            ("...", 1),
            ("a..b/c", 2),
            ("./", 0),
        ] {
            assert_eq!(
                parts(&archive, name.as_bytes()).expect(name).len(),
                n,
                "{name}"
            );
        }
    }

    #[test]
    fn links_that_could_escape_the_folder_are_refused() {
        let archive = BytesPath::from_text("a.tar");
        let check = |name: &str, target: &str| {
            check_link(
                &archive,
                &parts(&archive, name.as_bytes()).expect("fine"),
                target.as_bytes(),
            )
        };
        for (name, target) in [
            ("l", "/etc"),
            ("l", ".."),
            ("l", "../x"),
            ("d/l", "../../x"),
            ("d/l", "x/../../.."),
            ("d/l", "x/.."),
            ("l", ""),
            ("l", "a\0"),
        ] {
            assert!(check(name, target).is_err(), "{name} -> {target}");
        }
        for (name, target) in [
            ("l", "x"),
            ("d/l", "../x"),
            ("d/e/l", "../../x/y"),
            ("l", "./x"),
            ("d/l", ".."),
        ] {
            assert!(check(name, target).is_ok(), "{name} -> {target}");
        }
    }
}
