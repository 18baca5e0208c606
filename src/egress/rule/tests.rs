use proptest::prelude::*;

use super::*;

fn allow(host: &str) -> EgressRule {
    EgressRule {
        host: host.to_owned(),
        ..EgressRule::default()
    }
}

fn deny(host: &str) -> EgressRule {
    EgressRule {
        effect: EgressEffect::Deny,
        ..allow(host)
    }
}

#[track_caller]
fn rules(written: &[EgressRule]) -> Rules {
    Rules::parse(written).expect("rules")
}

fn decide(rules: &Rules, host: &str, port: u16, access: Access<'_>) -> bool {
    let host = HostName::parse(host).expect(host);
    matches!(
        rules.decide(&Request {
            host: &host,
            port,
            access
        }),
        Decision::Allow { .. }
    )
}

#[test]
fn names_ports_and_wildcards_mean_what_is_documented() {
    for (rule, allowed, refused) in [
        (
            "example.com",
            &["example.com:80", "example.com:443"][..],
            &["a.example.com:443", "example.com:22", "example.org:443"][..],
        ),
        (
            "*.example.com",
            &["a.example.com:443", "a.b.example.com:80"],
            &["example.com:443", "badexample.com:443"],
        ),
        (
            "EXAMPLE.com.:8443",
            &["example.com:8443"],
            &["example.com:443"],
        ),
        (
            "example.com:22, 5432",
            &["example.com:22", "example.com:5432"],
            &["example.com:80"],
        ),
        (
            "b\u{fc}cher.example",
            &["xn--bcher-kva.example:443"],
            &["bucher.example:443"],
        ),
    ] {
        let rules = rules(&[allow(rule)]);
        for (hosts, expected) in [(allowed, true), (refused, false)] {
            for host in hosts {
                let (name, port) = host.rsplit_once(':').expect("a port");
                assert_eq!(
                    decide(&rules, name, port.parse().expect("a number"), Access::Tls),
                    expected,
                    "{rule}: {host}"
                );
            }
        }
    }
}

#[test]
fn a_rule_that_means_too_much_or_nothing_is_refused_with_the_remedy() {
    for (rule, problem) in [
        ("*", "network mode `open`"),
        ("*.com", "`*` stands in front"),
        ("a.*.example", "`*` stands in front"),
        ("a*.example.com", "`*` stands in front"),
        ("", "empty"),
        ("127.0.0.1:80", "is an address"),
        ("[::1]:80", "is an address"),
        ("0x7f.1", "is an address"),
        ("example.com:", "is no port"),
        ("example.com:0", "is no port"),
        ("example.com:70000", "is no port"),
        ("example.com:https", "is no port"),
        ("https://example.com", "is no port"),
        ("user@example.com", "is no name"),
        ("example.com/path", "is no name"),
    ] {
        let error = Rules::parse(&[allow(rule)]).expect_err(rule).to_string();
        assert!(
            error.contains(problem) && error.contains(&format!("`{rule}`")),
            "{rule}: {error}"
        );
    }
    let bad = |written: EgressRule| Rules::parse(&[written]).expect_err("refused").problem;
    assert_eq!(
        bad(EgressRule {
            paths: vec!["/a".into()],
            ..deny("a.example")
        }),
        Problem::DeniesParts
    );
    assert_eq!(
        bad(EgressRule {
            raw: true,
            methods: vec!["GET".into()],
            ..allow("a.example")
        }),
        Problem::RawParts
    );
    assert_eq!(
        bad(EgressRule {
            methods: vec!["get".into()],
            ..allow("a.example")
        }),
        Problem::Method("get".into())
    );
    for path in ["a", "/a/../b", "/a//b", "/%61", "/a?b", "/a b"] {
        assert_eq!(
            bad(EgressRule {
                paths: vec![path.into()],
                ..allow("a.example")
            }),
            Problem::Path(path.into())
        );
    }
    assert_eq!(
        Rules::parse(&vec![allow("a.example"); MAX_RULES + 1])
            .expect_err("too many")
            .problem,
        Problem::TooMany
    );
}

#[test]
fn a_denial_beats_what_is_allowed_in_whatever_order() {
    for order in [
        [deny("bad.example.com"), allow("*.example.com")],
        [allow("*.example.com"), deny("bad.example.com")],
    ] {
        let rules = rules(&order);
        assert!(
            decide(&rules, "good.example.com", 443, Access::Tls)
                && !decide(&rules, "bad.example.com", 443, Access::Tls)
        );
    }
    assert!(
        !decide(&Rules::default(), "example.com", 443, Access::Tls),
        "without a rule nothing is reached"
    );
}

#[test]
fn methods_and_paths_are_of_plain_http_alone() {
    let rules = rules(&[EgressRule {
        methods: vec!["GET".into()],
        paths: vec!["/pub".into(), "/own/".into()],
        ..allow("a.example")
    }]);
    let http =
        |method: &str, path: &str| decide(&rules, "a.example", 80, Access::Http { method, path });
    for path in [
        "/pub",
        "/pub/x",
        "/pub?q=1",
        "/own/",
        "/own/x%20y",
        "/pub/x.tar.gz",
    ] {
        assert!(http("GET", path), "{path}");
    }
    for path in [
        "/",
        "/public",
        "/pub/../x",
        "/pub/%2e%2e/x",
        "/pub/%2E./x",
        "/pub//x",
        "/pub/..;/x",
        "/pub%2f..%2fx",
        "/pub\\..\\x",
        "/own",
        "*",
    ] {
        assert!(!http("GET", path), "{path}");
    }
    assert!(!http("POST", "/pub") && !http("get", "/pub"));
    assert!(
        !decide(&rules, "a.example", 443, Access::Tls),
        "what is inside TLS cannot be seen"
    );
}

#[test]
fn a_stream_that_is_neither_http_nor_tls_needs_a_word_of_its_own() {
    let plain = rules(&[allow("a.example:22")]);
    assert!(
        decide(&plain, "a.example", 22, Access::Tls)
            && !decide(&plain, "a.example", 22, Access::Raw)
    );
    let raw = rules(&[EgressRule {
        raw: true,
        ..allow("a.example:22")
    }]);
    assert!(
        decide(&raw, "a.example", 22, Access::Raw) && decide(&raw, "a.example", 22, Access::Tls)
    );
}

#[test]
fn a_refusal_says_what_is_missing() {
    let rules = rules(&[
        allow("a.example"),
        deny("b.example"),
        EgressRule {
            methods: vec!["GET".into()],
            ..allow("c.example")
        },
    ]);
    let reason = |host: &str, port: u16, access: Access<'_>| -> String {
        let host = HostName::parse(host).expect(host);
        match rules.decide(&Request {
            host: &host,
            port,
            access,
        }) {
            Decision::Deny(reason) => reason.to_string(),
            Decision::Allow { rule, .. } => panic!("{rule} allows it"),
        }
    };
    assert_eq!(
        reason("x.example", 443, Access::Tls),
        "no rule allows this host"
    );
    assert_eq!(
        reason("a.example", 22, Access::Raw),
        "the rule `a.example` allows other ports"
    );
    assert_eq!(
        reason("a.example", 443, Access::Raw),
        "the rule `a.example` allows HTTP and TLS, and this is neither"
    );
    assert_eq!(
        reason("b.example", 443, Access::Tls),
        "the rule `b.example` denies it"
    );
    assert_eq!(
        reason(
            "c.example",
            80,
            Access::Http {
                method: "PUT",
                path: "/"
            }
        ),
        "the rule `c.example` allows other methods or paths"
    );
}

#[test]
fn private_networks_need_a_word_of_their_own() {
    let private = EgressRule {
        private: true,
        ..allow("npm.corp.example:443")
    };
    let rules = rules(&[
        allow("*.corp.example"),
        private,
        deny("secret.corp.example"),
    ]);
    let decide = |host: &str, port: u16| {
        let host = HostName::parse(host).expect(host);
        match rules.decide(&Request {
            host: &host,
            port,
            access: Access::Tls,
        }) {
            Decision::Allow { private, .. } => Some(private),
            Decision::Deny(_) => None,
        }
    };
    assert_eq!(
        decide("npm.corp.example", 443),
        Some(true),
        "whichever rule comes first"
    );
    assert_eq!(
        (
            decide("npm.corp.example", 80),
            decide("other.corp.example", 443)
        ),
        (Some(false), Some(false))
    );
    assert_eq!(decide("secret.corp.example", 443), None);
}

#[test]
fn only_names_that_a_rule_could_allow_are_resolved() {
    let rules = rules(&[allow("*.example.com:8443"), deny("b.example")]);
    let may = |host: &str| rules.may_allow(&HostName::parse(host).expect(host));
    assert!(
        may("a.example.com")
            && !may("example.com")
            && !may("b.example")
            && !may("secret.evil.example")
    );
}

proptest! {
    #[test]
    fn no_text_is_read_as_a_rule_for_every_host(text in "\\PC{0,40}") {
        if let Ok(rules) = Rules::parse(&[allow(&text)]) {
            let hosts = ["probe.invalid", "a.b.probe.test"].map(|host| HostName::parse(host).expect("a name"));
            prop_assert!(!hosts.iter().any(|host| rules.may_allow(host)), "{text}");
        }
    }
}
