use std::sync::Arc;

use proptest::prelude::*;
use rustls::ClientConfig;
use rustls::ClientConnection;
use rustls::RootCertStore;
use rustls::pki_types::ServerName;

use super::*;

/// The first message of a real client, with or without a name.
pub(crate) fn hello(name: Option<&str>) -> Vec<u8> {
    let mut config =
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
    config.enable_sni = name.is_some();
    let name = ServerName::try_from(name.unwrap_or("a.example").to_owned()).expect("a name");
    let mut client = ClientConnection::new(Arc::new(config), name).expect("a client");
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).expect("written");
    bytes
}

/// Puts an extension at the end, and what it needs into the four lengths before it.
fn with_extension(mut hello: Vec<u8>, kind: u16, content: &[u8]) -> Vec<u8> {
    let length_at = RECORD_HEADER + 4 + BEFORE_SESSION;
    let session = usize::from(hello[length_at]);
    let suites_at = length_at + 1 + session;
    let suites = usize::from(u16::from_be_bytes([hello[suites_at], hello[suites_at + 1]]));
    let compressions_at = suites_at + 2 + suites;
    let extensions_at = compressions_at + 1 + usize::from(hello[compressions_at]);
    let mut extension = kind.to_be_bytes().to_vec();
    extension.extend_from_slice(&(content.len() as u16).to_be_bytes());
    extension.extend_from_slice(content);
    // The record's length, that of the message (its lower two bytes), that of the extensions.
    for at in [3, RECORD_HEADER + 2, extensions_at] {
        let longer = u16::from_be_bytes([hello[at], hello[at + 1]]) + extension.len() as u16;
        hello[at..at + 2].copy_from_slice(&longer.to_be_bytes());
    }
    // At the front: rustls takes a key that was agreed on for the last one alone.
    hello.splice(extensions_at + 2..extensions_at + 2, extension);
    hello
}

/// Gives the reader bytes in pieces.
async fn read(bytes: &[u8], piece: usize, limits: Limits) -> Result<Vec<u8>, NotCarried> {
    let (mut near, mut far) = tokio::io::duplex(piece);
    let bytes = bytes.to_vec();
    let writing = tokio::spawn(async move {
        // The reader may have seen enough.
        drop(tokio::io::AsyncWriteExt::write_all(&mut near, &bytes).await);
        near
    });
    let name = HostName::parse("a.example").expect("a name");
    let read = read_hello(&mut far, Vec::new(), &name, &limits).await;
    writing.abort();
    read
}

async fn read_whole(bytes: &[u8]) -> Result<Vec<u8>, NotCarried> {
    read(
        bytes,
        64 * 1024,
        Limits {
            hello_time: std::time::Duration::from_millis(200),
            ..Limits::default()
        },
    )
    .await
}

#[tokio::test]
async fn a_message_is_read_in_pieces_of_any_length() {
    let hello = hello(Some("A.example"));
    for piece in [1, 2, 5, 6, 100, 64 * 1024] {
        assert_eq!(
            read(&hello, piece, Limits::default()).await.as_ref(),
            Ok(&hello),
            "{piece}"
        );
    }
    // The same in many records, as some clients send it to get past what looks at it.
    let mut records = Vec::new();
    for part in hello[RECORD_HEADER..].chunks(7) {
        records.extend_from_slice(&[HANDSHAKE, 3, 1, 0, part.len() as u8]);
        records.extend_from_slice(part);
    }
    assert_eq!(
        read(&records, 3, Limits::default()).await.as_ref(),
        Ok(&records)
    );
}

#[tokio::test]
async fn the_name_must_be_that_of_the_tunnel() {
    assert_eq!(
        read_whole(&hello(Some("b.example"))).await,
        Err(NotCarried::OtherName("b.example".into()))
    );
    assert_eq!(
        read_whole(&hello(Some("x.a.example"))).await,
        Err(NotCarried::OtherName("x.a.example".into()))
    );
    assert_eq!(read_whole(&hello(None)).await, Err(NotCarried::NoName));
}

#[tokio::test]
async fn a_hidden_name_is_refused_whatever_the_open_one_is() {
    let usual = with_extension(hello(Some("a.example")), 0x1234, b"x");
    assert_eq!(
        read_whole(&usual).await.as_ref(),
        Ok(&usual),
        "an extension that is not known changes nothing"
    );
    // An outer message: its algorithms, the number of the key, an empty key of its own and one
    // byte.
    let hidden = with_extension(
        hello(Some("a.example")),
        ENCRYPTED_CLIENT_HELLO,
        &[0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0xff],
    );
    assert_eq!(read_whole(&hidden).await, Err(NotCarried::Encrypted));
}

#[tokio::test]
async fn what_is_no_tls_is_refused_at_once_and_what_is_too_long_in_the_end() {
    for bytes in [
        &b"GET / HTTP/1.1\r\n"[..],
        b"SSH-2.0-x\r\n",
        &[22, 3, 1, 0, 4, 2, 0, 0, 0],
        &[0x80, 0x2e, 1],
    ] {
        assert_eq!(
            read_whole(bytes).await,
            Err(NotCarried::NotTls),
            "{bytes:?}"
        );
    }
    let mut long = vec![HANDSHAKE, 3, 1, 0x40, 0, CLIENT_HELLO, 0, 0xff, 0xff];
    long.resize(20_000, 0);
    assert_eq!(read_whole(&long).await, Err(NotCarried::TooLong));
    assert_eq!(
        read_whole(&hello(Some("a.example"))[..100]).await,
        Err(NotCarried::TooSlow(0))
    );
}

proptest! {
    #[test]
    fn no_bytes_are_read_beyond_their_end(bytes in proptest::collection::vec(any::<u8>(), 0..600), keep in 0_usize..600) {
        let hello = hello(Some("a.example"));
        let mut changed = hello[..keep.min(hello.len())].to_vec();
        changed.extend_from_slice(&bytes);
        for bytes in [&bytes, &changed] {
            extensions_of(&handshake_of(bytes));
        }
    }
}
