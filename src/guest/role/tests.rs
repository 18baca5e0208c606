use super::*;

#[test]
fn a_step_of_a_newer_compose_file_is_reported_as_such() {
    let told = |words: &[&str]| {
        parse(words.iter().map(OsString::from))
            .err()
            .unwrap_or_default()
    };
    for step in STEPS {
        let value = if step == "--check" {
            "1000:/x"
        } else {
            "models:/x"
        };
        assert_eq!(
            told(&["prepare", "--apart", "/a:/b", step, value]),
            "",
            "{step}"
        );
        assert!(
            told(&["prepare", "--apart", "/a:/b", step]).starts_with("usage:"),
            "{step} without what it is about"
        );
    }
    let error = told(&["prepare", "--open", "/x", "--seal", "/y"]);
    assert!(
        error.contains("no step `--seal`")
            && error.contains("older than compose.yaml")
            && error.contains("podbay images build"),
        "{error}"
    );
}

#[test]
fn an_older_compose_file_without_the_projects_place_gets_no_guest() {
    let told = |words: &[&str]| {
        parse(words.iter().map(OsString::from))
            .err()
            .unwrap_or_default()
    };
    for words in [
        &["prepare", "--install", "/x"][..],
        &[
            "prepare",
            "--open",
            "/y",
            "--install",
            "/x",
            "--apart",
            "/a:/b",
        ],
    ] {
        let error = told(words);
        assert!(
            error.contains("`--apart` before `--install`") && error.contains("podbay init"),
            "{error}"
        );
    }
    assert_eq!(
        told(&[
            "prepare",
            "--apart",
            "/a:/b",
            "--open",
            "/y",
            "--install",
            "/x"
        ]),
        ""
    );
    assert_eq!(told(&["prepare", "--key", "/x"]), "");
}
