use std::os::unix::fs::MetadataExt;

use super::*;

#[test]
fn a_line_is_rules_or_it_is_refused_as_a_whole() {
    let (generation, set) =
        rule_set(r#"{"type":"rules","generation":3,"rules":[{"host":"a.example"}]}"#)
            .expect("rules");
    assert!(generation == 3 && !set.rules.is_empty() && set.upstream.is_none());
    for (line, problem) in [
        ("", "EOF"),
        ("rules", "expected value"),
        (
            r#"{"type":"rules","generation":3,"rules":[{"host":"a.example"},{"host":"*"}]}"#,
            "network mode `open`",
        ),
        (
            r#"{"type":"rules","generation":3,"rules":[{"host":"a.example","inner":true}]}"#,
            "unknown field",
        ),
    ] {
        let error = rule_set(line).expect_err(line);
        assert!(error.contains(problem), "{line}: {error}");
    }
}

#[tokio::test]
async fn the_socket_takes_the_place_of_an_older_one_and_everybody_may_connect() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("egress.sock");
    for _ in 0..2 {
        drop(listen(&socket).expect("it listens"));
        assert_eq!(
            fs::metadata(&socket).expect("a socket").mode() & 0o777,
            SOCKET_MODE
        );
    }
    assert_eq!(
        fs::read_dir(folder.path()).expect("a folder").count(),
        1,
        "nothing else is left"
    );
}
