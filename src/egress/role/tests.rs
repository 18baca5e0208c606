use std::os::unix::fs::MetadataExt;

use super::*;

#[test]
fn a_line_is_rules_or_it_is_refused_as_a_whole() {
    let understood =
        understand(r#"{"type":"rules","generation":3,"rules":[{"host":"a.example"}]}"#);
    assert!(
        matches!(understood, Ok(Understood::Rules(3, set)) if !set.rules.is_empty() && set.upstream.is_none())
    );
    assert!(matches!(
        understand(r#"{"type":"flush","id":4}"#),
        Ok(Understood::Flush(4))
    ));
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
        let Err(error) = understand(line) else {
            panic!("{line}");
        };
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

#[test]
fn name_servers_are_addresses_with_ports() {
    let parse =
        |words: &[&str]| name_servers(&words.iter().map(OsString::from).collect::<Vec<_>>());
    assert_eq!(
        parse(&[
            "--name-server",
            "10.0.0.1:53",
            "--name-server",
            "[fd00::1]:5353"
        ]),
        Ok(vec![
            "10.0.0.1:53".parse().expect("an address"),
            "[fd00::1]:5353".parse().expect("an address")
        ])
    );
    for words in [
        &["--name-server"][..],
        &["--name-server", "10.0.0.1"],
        &["--other", "10.0.0.1:53"],
    ] {
        assert!(parse(words).is_err(), "{words:?}");
    }
}
