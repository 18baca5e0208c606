//! An engine that is reached by TCP and asks for a certificate. It and what reaches it are on one
//! machine, so that it sees the project.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::contexts::add;
use super::second_engine::Door;
use super::second_engine::SecondEngine;
use super::second_engine::can_have_engine;
use super::test_box::TestBox;
use crate::support::test_env::run;
use crate::support::test_env::within;

/// Makes an authority, and in its name a certificate of an engine at `127.0.0.1` and one of a user.
fn certify(folder: &Path) {
    fs::create_dir_all(folder).expect("made");
    let generate = || rcgen::KeyPair::generate().expect("a key");
    let mut authority = rcgen::CertificateParams::new(Vec::new()).expect("no name");
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority_key = generate();
    let of_authority = authority.self_signed(&authority_key).expect("signed");
    let issuer = rcgen::Issuer::new(authority, authority_key);
    fs::write(folder.join("ca.pem"), of_authority.pem()).expect("written");
    for (certificate, key) in [("server.pem", "server-key.pem"), ("cert.pem", "key.pem")] {
        let its_key = generate();
        let signed = rcgen::CertificateParams::new(["127.0.0.1".to_owned()])
            .expect("an address")
            .signed_by(&its_key, &issuer)
            .expect("signed");
        fs::write(folder.join(certificate), signed.pem()).expect("written");
        fs::write(folder.join(key), its_key.serialize_pem()).expect("written");
    }
}

#[test]
fn an_engine_with_tls_works_and_answers_nobody_whose_certificate_does_not_fit() {
    let Some(env) = TestBox::new() else { return };
    if !can_have_engine("an engine that is reached by TLS") {
        return;
    }
    let (ours, theirs) = (env.beside("ours"), env.beside("theirs"));
    certify(&ours);
    certify(&theirs);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = format!("tcp://{}", listener.local_addr().expect("has one"));
    let door = Door {
        listener,
        certificates: ours.clone(),
    };
    let engine = SecondEngine::start_behind(door, env.beside("engine"));
    engine.import_bare(&env.beside(""));
    env.write("file.txt", "content\n");
    let read = || {
        env.here(&[
            "call",
            "--image",
            "only",
            "read_file",
            r#"{"path":"file.txt"}"#,
        ])
    };
    let with = |mut command: Command, certificates: &Path| {
        run(command
            .env("DOCKER_HOST", &address)
            .env("DOCKER_TLS_VERIFY", "1")
            .env("DOCKER_CERT_PATH", certificates))
    };

    // An engine that somebody else vouches for, a user whom it does not know, and one without TLS.
    let stranger = env.beside("stranger");
    fs::create_dir(&stranger).expect("made");
    fs::copy(ours.join("ca.pem"), stranger.join("ca.pem")).expect("copied");
    let nameless = env.beside("nameless");
    fs::create_dir(&nameless).expect("made");
    fs::copy(ours.join("ca.pem"), nameless.join("ca.pem")).expect("copied");
    for name in ["cert.pem", "key.pem"] {
        fs::copy(theirs.join(name), stranger.join(name)).expect("copied");
    }
    for (certificates, cause) in [
        (&theirs, "invalid peer certificate"),
        (&stranger, "fatal alert"),
        (&nameless, "fatal alert"),
        (&env.beside("nowhere"), "ca.pem"),
    ] {
        with(read(), certificates).expect(5).says(&[
            "secure connection to the engine",
            cause,
            "DOCKER_CERT_PATH",
        ]);
    }
    run(read().env("DOCKER_HOST", &address))
        .expect(5)
        .says(&["HTTP request to an HTTPS server", "DOCKER_TLS_VERIFY=1"]);
    assert!(engine.containers().is_empty(), "nothing was begun");

    // The right ones are served, by the variables and by a context.
    assert!(with(read(), &ours).expect(0).text().contains("content"));
    let folder = add(&env, "secure", &address);
    let kept = env
        .home()
        .join(".docker/contexts/tls")
        .join(folder)
        .join("docker");
    fs::create_dir_all(&kept).expect("made");
    for name in ["ca.pem", "cert.pem", "key.pem"] {
        fs::copy(ours.join(name), kept.join(name)).expect("copied");
    }
    let mut by_context = read();
    by_context
        .env_remove("DOCKER_HOST")
        .env("DOCKER_CONTEXT", "secure");
    assert!(run(&mut by_context).expect(0).text().contains("content"));
    let is_gone = || engine.containers().is_empty();
    assert!(within(Duration::from_secs(20), is_gone), "nothing stays");
}
