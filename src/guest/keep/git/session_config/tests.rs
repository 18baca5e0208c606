use super::super::config::parse;
use super::super::config::write;
use super::*;
use podbay_wire::keep::Identity;

fn picked(text: &str) -> Result<String, GitRefusal> {
    let entries = parse(text.as_bytes()).expect("readable settings");
    let settings = pick(&entries, &UserGitSettings::default())?;
    Ok(String::from_utf8(write(&settings.kept)).expect("text"))
}

#[test]
fn settings_with_programs_or_passwords_are_left_out() {
    let hostile = concat!(
        "[core]\nrepositoryformatversion = 0\nfilemode = true\nquotePath = true\nautocrlf = input\nfsmonitor = touch PWN\nhooksPath = PWN\npager = PWN\n",
        "editor = PWN\nsshCommand = PWN\naskPass = PWN\nalternateRefsCommand = PWN\ngitProxy = PWN\nattributesFile = PWN\n",
        "[remote \"origin\"]\nurl = https://user:secret@host/x\npushurl = secret\nfetch = +refs/heads/*:refs/remotes/origin/*\n",
        "uploadpack = PWN\nvcs = PWN\nproxy = secret\n[http]\nextraheader = secret\n[http \"https://host\"]\ncookieFile = secret\n",
        "[credential]\nhelper = PWN\n[url \"secret\"]\ninsteadOf = x\n[branch \"main\"]\nremote = origin\nmerge = refs/heads/main\n",
        "[branch \"other\"]\nremote = https://user:secret@host/x\n[alias]\nx = !PWN\n[filter \"x\"]\nclean = PWN\nsmudge = PWN\n",
        "[diff \"x\"]\ntextconv = PWN\n[merge \"x\"]\ndriver = PWN\n[gpg]\nprogram = PWN\n[uploadpack]\npackObjectsHook = PWN\n",
        "[user]\nname = Ann\nemail = a@b\nsigningKey = secret\n[submodule \"s\"]\nurl = https://secret@host\nupdate = !PWN\n",
        "[include]\npath = PWN\n[sequence]\neditor = PWN\n[trace2]\neventTarget = PWN\n",
    );
    let text = picked(hostile).expect("picked");
    for word in ["PWN", "secret", "include", "filter", "alias"] {
        assert!(!text.contains(word), "{word} in\n{text}");
    }
    for line in [
        "autocrlf = \"input\"",
        "[branch \"main\"]\n\tremote = \"origin\"\n\tmerge = \"refs/heads/main\"",
        "fetch = \"+refs/heads/*:refs/remotes/origin/*\"",
        "name = \"Ann\"",
        "hookspath = \"/dev/null\"",
        "fsmonitor = \"false\"",
        "quotepath = \"false\"",
        "[submodule \"s\"]\n\tactive = \"true\"",
    ] {
        assert!(text.contains(line), "{line} not in\n{text}");
    }
}

#[track_caller]
fn check_refused(text: &str, expected: &GitRefusal) {
    assert_eq!(picked(text).as_ref(), Err(expected), "{text}");
}

#[test]
fn settings_that_a_session_cannot_have_are_refused_by_name() {
    check_refused("[extensions]\nobjectFormat = sha256", &GitRefusal::Sha256);
    check_refused(
        "[extensions]\nrefStorage = reftable",
        &GitRefusal::RefStorage {
            storage: "reftable".into(),
        },
    );
    check_refused("[extensions]\npartialClone = origin", &GitRefusal::Partial);
    check_refused("[remote \"origin\"]\npromisor = true", &GitRefusal::Partial);
    check_refused(
        "[core]\nrepositoryformatversion = 1\n[extensions]\nfuture = 1",
        &GitRefusal::Extension {
            name: "future".into(),
        },
    );
    check_refused(
        "[extensions]\nfuture = 1\nother\n[core]\nrepositoryformatversion = 1",
        &GitRefusal::Extension {
            name: "future".into(),
        },
    );
    check_refused(
        "[extensions]\nobjectFormat = md5",
        &GitRefusal::Extension {
            name: "objectFormat".into(),
        },
    );
    check_refused(
        "[core]\nrepositoryformatversion = 2",
        &GitRefusal::Extension {
            name: "core.repositoryFormatVersion = 2".into(),
        },
    );
    check_refused(
        "[filter \"lfs\"]\nclean = git-lfs clean -- %f",
        &GitRefusal::LargeFiles,
    );
    assert!(
        picked("[core]\nrepositoryformatversion = 0\n[extensions]\nfuture = 1").is_ok(),
        "git passes over it as well"
    );
    assert!(
        picked("[extensions]\nobjectFormat = sha1\nrefStorage = files\nworktreeConfig = true")
            .is_ok()
    );
}

#[test]
fn the_users_identity_is_the_default_author() {
    let identity = Identity {
        name: "Ann".into(),
        email: "ann@example.org".into(),
    };
    let entries = parse(b"[user]\nemail = own@example.org").expect("readable settings");
    let settings = pick(
        &entries,
        &UserGitSettings {
            identity: Some(identity),
            ..UserGitSettings::default()
        },
    )
    .expect("picked");
    let text = String::from_utf8(write(&settings.kept)).expect("text");
    assert!(
        text.contains("name = \"Ann\"")
            && text.contains("own@example.org")
            && !text.contains("ann@"),
        "{text}"
    );
}

#[test]
fn the_users_line_endings_are_the_default() {
    let check = |text: &str, expected: &[(&str, &str)]| {
        let read = line_ends_in(text.as_bytes());
        assert_eq!(
            read.iter()
                .map(|(key, value)| (key.as_str(), value.as_str()))
                .collect::<Vec<_>>(),
            expected,
            "{text}"
        );
    };
    check(
        "[core]\nautocrlf = Input\neol = CRLF\nsafecrlf = warn",
        &[("autocrlf", "input"), ("eol", "crlf"), ("safecrlf", "warn")],
    );
    check(
        "[core]\nautocrlf\neol = native\nsafecrlf = no",
        &[
            ("autocrlf", "true"),
            ("eol", "native"),
            ("safecrlf", "false"),
        ],
    );
    check(
        "[core]\nautocrlf = warn\neol = true\nsafecrlf = input\n[core \"x\"]\nautocrlf = true",
        &[],
    );
    check(
        "[core]\nautocrlf = true\nautocrlf = false",
        &[("autocrlf", "false")],
    );
    check("[core]\nautocrlf = true\n[broken", &[]);
    let person = UserGitSettings {
        line_ends: line_ends_in(b"[core]\nautocrlf = true\neol = lf"),
        ..UserGitSettings::default()
    };
    let entries = parse(b"[core]\nautocrlf = input").expect("readable settings");
    let text =
        String::from_utf8(write(&pick(&entries, &person).expect("picked").kept)).expect("text");
    assert!(
        text.contains("autocrlf = \"input\"")
            && text.contains("eol = \"lf\"")
            && !text.contains("autocrlf = \"true\""),
        "{text}"
    );
}
