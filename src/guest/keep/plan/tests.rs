use super::*;

#[test]
fn names_that_a_file_system_may_confuse_are_ambiguous() {
    let change = |path: &[u8]| Change {
        path: BytesPath::from_bytes(path),
        before: None,
        after: None,
    };
    let all: [&[u8]; 13] = [
        b"Case",
        b"case",
        "x/\u{e9}".as_bytes(),
        "x/e\u{301}".as_bytes(),
        "Straße".as_bytes(),
        b"strasse",
        b"a\xff",
        b"a\xfe",
        // Nothing is equal to these.
        "y/\u{e9}".as_bytes(),
        "\u{65e5}\u{672c}".as_bytes(),
        "\u{65e5}".as_bytes(),
        b"f\xff1",
        b"f\xff2",
    ];
    let found = ambiguous(&all.map(change));
    let expected: BTreeSet<BytesPath> = all[..8]
        .iter()
        .map(|path| BytesPath::from_bytes(*path))
        .collect();
    assert_eq!(found, expected);
}
