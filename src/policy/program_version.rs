//! Versions of one program: `python`, `python3` and `python3.13` are the same program.

/// Programs installed in several versions side by side, each with its number, and none of them
/// without.
const FAMILIES: [&str; 16] = [
    "python", "pypy", "pip", "perl", "ruby", "node", "php", "lua", "gcc", "g++", "clang",
    "clang++", "java", "go", "llvm", "tclsh",
];

/// Returns a program's names without its version, removing one number at a time: `python3.13` is
/// also `python3`.
pub(super) fn unversioned_names(name: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(
        without_number(name).filter(|_| is_versioned(name)),
        |short| without_number(short),
    )
}

/// Returns whether two names are versions of one program. That both end in a number is not enough:
/// `base32` is not `base64`.
pub(super) fn same_program(one: &str, other: &str) -> bool {
    if one.is_empty() || other.is_empty() {
        return false;
    }
    let (of_one, of_other) = (stem(one), stem(other));
    of_one == of_other
        && (one == of_one
            || other == of_other
            || one.starts_with(other)
            || other.starts_with(one)
            || FAMILIES.contains(&of_one))
}

fn stem(name: &str) -> &str {
    std::iter::successors(Some(name), |name| without_number(name))
        .last()
        .unwrap_or(name)
}

/// A number alone may be part of the name, as in `base64`; after a dot or a dash it is a version.
fn is_versioned(name: &str) -> bool {
    name.contains(['.', '-']) || FAMILIES.contains(&stem(name))
}

/// Removes the last number from a program's name, with the separator before it.
fn without_number(name: &str) -> Option<&str> {
    let cut = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_shorter = cut.len() < name.len();
    let cut = cut.strip_suffix(['.', '-']).unwrap_or(cut);
    (is_shorter && !cut.is_empty()).then_some(cut)
}

#[cfg(test)]
mod tests {
    use super::same_program;

    #[test]
    fn versions_are_distinguished_from_numbers_in_names() {
        for (one, other) in [
            ("python", "python3"),
            ("python3.13", "python3"),
            ("python2", "python3"),
            ("gcc", "gcc-12"),
            ("clang-15", "clang-18"),
        ] {
            assert!(
                same_program(one, other) && same_program(other, one),
                "{one} {other}"
            );
        }
        for (one, other) in [
            ("base32", "base64"),
            ("sha1sum", "sha256sum"),
            ("python3", "python3-config"),
            ("gcc", "gccgo-12"),
            ("", "x"),
            ("7", "8"),
        ] {
            assert!(
                !same_program(one, other) && !same_program(other, one),
                "{one} {other}"
            );
        }
    }
}
