use proptest::prelude::*;

use super::*;

const LIMIT: u64 = 1000;

fn edit(old: &str, new: &str) -> Replacement {
    Replacement {
        old_string: old.into(),
        new_string: new.into(),
        replace_all: false,
    }
}

#[track_caller]
fn check(text: &str, old: &str, new: &str, expected: Result<(&str, MatchKind), EditFailure>) {
    let mut bytes = text.as_bytes().to_vec();
    let applied = apply(&mut bytes, &edit(old, new), LIMIT);
    let after = String::from_utf8_lossy(&bytes).into_owned();
    match (applied, expected) {
        (Ok(applied), Ok((expected, how))) => {
            assert_eq!((after.as_str(), applied.how), (expected, how));
        }
        (applied, expected) => {
            assert_eq!(applied, Err(expected.expect_err("the edit was made")));
        }
    }
}

#[test]
fn exact_text_is_replaced_once() {
    check(
        "let a = 1;\n",
        "1",
        "2",
        Ok(("let a = 2;\n", MatchKind::Exact)),
    );
    check("x", "x", "", Ok(("", MatchKind::Exact)));
}

#[test]
fn a_letter_is_not_separated_from_its_combining_mark() {
    for (text, old, new) in [
        ("cafe\u{301}", "cafe", "tea"),
        ("cafe\u{301}", "e", "a"),
        ("A\u{30a}ngstrom", "A", "O"),
        ("nai\u{308}ve", "\u{308}ve", "x"),
        ("\u{1112}\u{1161}\u{11ab}", "\u{1112}", "x"),
    ] {
        check(text, old, new, Err(EditFailure::NotFound));
    }
    // Where the letter also occurs without a mark, that place is meant.
    check(
        "cafe\u{301} cafe",
        "cafe",
        "tea",
        Ok(("cafe\u{301} tea", MatchKind::Exact)),
    );
    check(
        "cafe\u{301}",
        "cafe\u{301}",
        "tea",
        Ok(("tea", MatchKind::Exact)),
    );
    check(
        "cafe\u{301}",
        "caf\u{e9}",
        "tea",
        Ok(("tea", MatchKind::Alike)),
    );
    check("caf\u{e9}s", "caf", "b", Ok(("b\u{e9}s", MatchKind::Exact)));
}

#[test]
fn text_that_occurs_twice_is_ambiguous_and_its_lines_are_listed() {
    check(
        "a\nb\na\n",
        "a",
        "c",
        Err(EditFailure::Ambiguous {
            count: 2,
            lines: vec![1, 3],
        }),
    );
    check(
        "aaa",
        "aa",
        "b",
        Err(EditFailure::Ambiguous {
            count: 2,
            lines: vec![1, 1],
        }),
    );
}

#[test]
fn replace_all_replaces_each_place_once() {
    let mut text = b"aaa a".to_vec();
    let all = Replacement {
        replace_all: true,
        ..edit("aa", "b")
    };
    apply(&mut text, &all, LIMIT).expect("found");
    assert_eq!(text, b"ba a");
}

/// Searched from each of its places, as it once was, this line alone would take minutes.
#[test]
fn a_long_line_with_very_many_places_is_searched_once() {
    let mut text = b"{\"a\":1,".repeat(300_000);
    let all = Replacement {
        replace_all: true,
        ..edit("\"a\"", "\"b\"")
    };
    let applied = apply(&mut text, &all, u64::MAX).expect("found");
    assert_eq!(
        (applied.replaced, text),
        (300_000, b"{\"b\":1,".repeat(300_000))
    );
}

#[test]
fn an_edit_beyond_the_size_limit_changes_nothing() {
    let mut text = b"aaaa".to_vec();
    let all = Replacement {
        replace_all: true,
        ..edit("a", "b")
    };
    assert_eq!(
        apply(
            &mut text,
            &Replacement {
                new_string: "b".repeat(300),
                ..all
            },
            LIMIT
        ),
        Err(EditFailure::TooLarge { bytes: 1200 })
    );
    assert_eq!(text, b"aaaa");
}

#[test]
fn line_ends_of_the_file_win_over_those_of_the_model() {
    check(
        "a\r\nb\r\nc\r\n",
        "a\nb",
        "x\ny",
        Ok(("x\r\ny\r\nc\r\n", MatchKind::Exact)),
    );
    check(
        "a\r\nb\r\n",
        "b",
        "y\nz",
        Ok(("a\r\ny\r\nz\r\n", MatchKind::Exact)),
    );
    check(
        "a\r\nb\r\nc",
        "\nb\n",
        "\n",
        Ok(("a\r\nc", MatchKind::Exact)),
    );
    check(
        "a\nb\n",
        "a\r\nb",
        "x\r\ny",
        Ok(("x\ny\n", MatchKind::Exact)),
    );
    check(
        "a\nb\r\nc\n",
        "a\nb\nc",
        "1\n2",
        Ok(("1\n2\n", MatchKind::Exact)),
    );
    // Unchanged lines keep their own ends.
    check(
        "a\r\nb\nc\r\nd",
        "a\nb\nc\n",
        "a\nB\nc\n",
        Ok(("a\r\nB\nc\r\nd", MatchKind::Exact)),
    );
    check(
        "a\nb\r\nc\n",
        "a\nb\nc",
        "a\nB\n2\nc",
        Ok(("a\nB\r\n2\r\nc\n", MatchKind::Exact)),
    );
    check(
        "a\nb\r\nc\n",
        "a\nb\nc\n",
        "a\nb\nnew\nc\n",
        Ok(("a\nb\r\nnew\r\nc\n", MatchKind::Exact)),
    );
    check(
        "a\nb\r\nc\n",
        "a\nb\nc\n",
        "a\nc\n",
        Ok(("a\nc\n", MatchKind::Exact)),
    );
    check(
        "a\nb\r\nb\nb\r\n",
        "a\nb\nb\n",
        "a\nb\n",
        Ok(("a\nb\r\nb\r\n", MatchKind::Exact)),
    );
    check("a\nb\r\n", "a\nb\n", "", Ok(("", MatchKind::Exact)));
    check(
        "  a\r\n  b\n  c\r\n",
        "a\nb\nc\n",
        "a\nB\nc\n",
        Ok(("  a\r\n  B\n  c\r\n", MatchKind::Tolerant)),
    );
    check(
        "a\r\nb\r\n",
        "a\r\nb",
        "a\nb",
        Ok(("a\nb\r\n", MatchKind::Exact)),
    );
}

#[test]
fn white_space_at_line_ends_is_ignored_where_one_place_fits() {
    check(
        "fn a() {\n    b();  \n}\n",
        "fn a() {\nb();\n}",
        "fn a() {\nc();\n}",
        Ok(("fn a() {\n    c();\n}\n", MatchKind::Tolerant)),
    );
    check(
        "\tif x {\n\t\ty();\n\t}\n",
        "if x {\n    y();\n}\n",
        "if x {\n    z();\n    w();\n}\n",
        Ok(("\tif x {\n\t\tz();\n\t\tw();\n\t}\n", MatchKind::Tolerant)),
    );
    check(
        "  a\r\n  b\r\n",
        "a\nb\n",
        "c\nd\n",
        Ok(("  c\r\n  d\r\n", MatchKind::Tolerant)),
    );
    check(
        " a\n b\n  a\n  b\n",
        "a\nb",
        "c",
        Err(EditFailure::NotFound),
    );
    check("a\n\n\nb\n", " \n ", "c", Err(EditFailure::NotFound));
}

#[test]
fn runs_of_blanks_match_one_blank_where_one_place_fits() {
    check(
        "  x  =  1\n  y = 2\n",
        "x = 1\ny  = 2",
        "x = 3\ny = 4",
        Ok(("  x = 3\n  y = 4\n", MatchKind::Tolerant)),
    );
    check(
        "def f():\n\tpass\n",
        "def  f():",
        "def g():",
        Ok(("def g():\n\tpass\n", MatchKind::Tolerant)),
    );
    check("a  b\na   b\n", "a b", "c", Err(EditFailure::NotFound));
    // No white space at all is something else.
    check("a b\n", "ab", "c", Err(EditFailure::NotFound));
    check("f(a, b)\n", "f( a, b )", "c", Err(EditFailure::NotFound));
}

#[test]
fn one_extra_level_of_backslashes_is_removed() {
    check(
        "t = 'A'",
        r"t = \'A\'",
        r"t = 'a \textbf \nabla'",
        Ok((r"t = 'a \textbf \nabla'", MatchKind::Unescaped)),
    );
    check(
        "x = \"a\"",
        r#"x = \"a\""#,
        r#"x = "a\nb""#,
        Ok((r#"x = "a\nb""#, MatchKind::Unescaped)),
    );
    check(
        "x = \"a\"",
        r#"x = \"a\""#,
        r"y\nz",
        Ok((r"y\nz", MatchKind::Unescaped)),
    );
    check(
        "say \"hi\"\nbye\n",
        r#"say \"hi\"\nbye"#,
        r#"say \"ho\"\nbye"#,
        Ok(("say \"ho\"\nbye\n", MatchKind::Unescaped)),
    );
    check(
        r"print('a\n')",
        r"print('a\n')",
        r"print('b\n')",
        Ok((r"print('b\n')", MatchKind::Exact)),
    );
}

#[test]
fn bytes_that_are_not_text_are_kept() {
    let mut text = b"\xff\xfe\x00 key = 1 \x80".to_vec();
    apply(&mut text, &edit("key = 1", "key = 2"), LIMIT).expect("found");
    assert_eq!(text, b"\xff\xfe\x00 key = 2 \x80");
}

proptest! {
    #[test]
    fn an_edit_keeps_all_bytes_outside_its_place(
        before in proptest::collection::vec(any::<u8>(), 0..64),
        after in proptest::collection::vec(any::<u8>(), 0..64),
        old in "[a-z\n]{1,12}",
        new in "[A-Z\n]{0,12}",
    ) {
        let mut text = before.clone();
        text.extend_from_slice(b"<");
        text.extend_from_slice(old.as_bytes());
        text.extend_from_slice(b">");
        text.extend_from_slice(&after);
        let whole = Replacement { old_string: format!("<{old}>"), new_string: new.clone(), replace_all: false };
        let length = text.len();
        if apply(&mut text, &whole, LIMIT).is_ok() {
            prop_assert!(text.starts_with(&before));
            prop_assert!(text.ends_with(&after));
            let added = text.len() - (length - old.len() - 2);
            prop_assert!(added == new.len() || added == new.len() + new.matches('\n').count());
        }
    }

    #[test]
    fn no_text_makes_an_edit_panic(
        mut text in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b' '), Just(b'\t'), Just(b'a'), Just(b'\\'), Just(b'n')], 0..40),
        old in "[\n\r \ta\\\\n]{1,8}",
        new in "[\n\r \tb\\\\n]{0,8}",
        replace_all in any::<bool>(),
    ) {
        let _ = apply(&mut text, &Replacement { old_string: old, new_string: new, replace_all }, LIMIT);
    }
}
