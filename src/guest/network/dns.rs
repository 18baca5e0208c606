//! The sandbox's name server: it knows nothing of the network, and gives each name that a rule
//! allows an address of loopback.

use std::io;
use std::net::Ipv4Addr;
use std::net::Ipv6Addr;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hickory_proto::op::Edns;
use hickory_proto::op::Message;
use hickory_proto::op::MessageType;
use hickory_proto::op::Metadata;
use hickory_proto::op::OpCode;
use hickory_proto::op::Query;
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::DNSClass;
use hickory_proto::rr::Name;
use hickory_proto::rr::RData;
use hickory_proto::rr::Record;
use hickory_proto::rr::RecordType;
use tokio::net::UdpSocket;
use tokio::sync::Semaphore;

/// Queries that are answered at once; others wait in the kernel's queue, which has a bound.
const QUERIES: usize = 64;

/// Most bytes of a query that are read. One that is longer is no question for an address.
const MAX_QUERY: usize = 1232;

/// Seconds for which a program may keep an address. It stays the name's own for far longer.
const TTL: u32 = 60;

/// After an error of the socket.
const PAUSE: Duration = Duration::from_millis(50);

/// What becomes of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Address(Ipv4Addr),
    /// No rule allows it.
    Denied,
    /// Nothing can be said of it now.
    Unknown,
}

/// Answers what comes to a socket; `find`: a name, and who asks for it.
pub(super) async fn serve<F, T>(socket: UdpSocket, find: F)
where
    F: Fn(String, SocketAddr) -> T + Send + Sync + 'static,
    T: Future<Output = Found> + Send,
{
    let places = Arc::new(Semaphore::new(QUERIES));
    let (socket, find) = (Arc::new(socket), Arc::new(find));
    let mut buffer = [0; MAX_QUERY];
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let (length, from) = match socket.recv_from(&mut buffer).await {
            Ok(received) => received,
            // An earlier answer that found nobody is such an error.
            Err(error) => {
                if error.kind() != io::ErrorKind::ConnectionRefused {
                    tokio::time::sleep(PAUSE).await;
                }
                continue;
            }
        };
        let query = buffer[..length].to_vec();
        let (socket, find) = (Arc::clone(&socket), Arc::clone(&find));
        tokio::spawn(async move {
            let _place = place;
            if let Some(answer) = answer(&query, |name| find(name, from)).await {
                // A program that ended needs none.
                drop(socket.send_to(&answer, from).await);
            }
        });
    }
}

/// Returns the answer to a message, where it is one that gets any.
async fn answer<T: Future<Output = Found>>(
    bytes: &[u8],
    find: impl FnOnce(String) -> T,
) -> Option<Vec<u8>> {
    let Ok(query) = Message::from_vec(bytes) else {
        // What has no id is no message at all, and what is an answer gets none.
        let [high, low, flags, ..] = *bytes else {
            return None;
        };
        let id = u16::from_be_bytes([high, low]);
        let refused = Message::error_msg(id, OpCode::Query, ResponseCode::FormErr);
        return (flags & 0x80 == 0).then(|| refused.to_vec().ok()).flatten();
    };
    if query.metadata.message_type != MessageType::Query {
        return None;
    }
    let mut answer = Message::response(query.metadata.id, query.metadata.op_code);
    answer.metadata = Metadata::response_from_request(&query.metadata);
    answer.metadata.recursion_available = true;
    if query.edns.is_some() {
        answer.edns = Some(Edns::new());
    }
    answer.metadata.response_code = match query.queries.as_slice() {
        _ if query.metadata.op_code != OpCode::Query => ResponseCode::NotImp,
        [question] if question.query_class != DNSClass::IN => ResponseCode::Refused,
        [question] => {
            answer.add_query(question.clone());
            let (code, data) = answer_to(question, find).await;
            answer
                .answers
                .extend(data.map(|data| Record::from_rdata(question.name.clone(), TTL, data)));
            code
        }
        _ => ResponseCode::FormErr,
    };
    answer.to_vec().ok()
}

async fn answer_to<T: Future<Output = Found>>(
    question: &Query,
    find: impl FnOnce(String) -> T,
) -> (ResponseCode, Option<RData>) {
    let name = &question.name;
    if name.is_root() {
        return (ResponseCode::NoError, None);
    }
    // Names of addresses are no attempt to reach a host.
    if is_reverse(name) {
        return (ResponseCode::NXDomain, None);
    }
    let is_localhost = name.is_localhost();
    let found = if is_localhost {
        Found::Address(Ipv4Addr::LOCALHOST)
    } else {
        let name = name.to_ascii().to_ascii_lowercase();
        find(name.trim_end_matches('.').to_owned()).await
    };
    match (found, question.query_type) {
        (Found::Unknown, _) => (ResponseCode::ServFail, None),
        (Found::Denied, _) => (ResponseCode::NXDomain, None),
        (Found::Address(address), RecordType::A | RecordType::ANY) => {
            (ResponseCode::NoError, Some(RData::A(address.into())))
        }
        (Found::Address(_), RecordType::AAAA) if is_localhost => (
            ResponseCode::NoError,
            Some(RData::AAAA(Ipv6Addr::LOCALHOST.into())),
        ),
        (Found::Address(_), _) => (ResponseCode::NoError, None),
    }
}

fn is_reverse(name: &Name) -> bool {
    name.iter()
        .next_back()
        .is_some_and(|last| last.eq_ignore_ascii_case(b"arpa"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 80, 0, 1);

    fn query(name: &str, kind: RecordType) -> Message {
        let mut message = Message::new(7, MessageType::Query, OpCode::Query);
        message.metadata.recursion_desired = true;
        message.add_query(Query::query(Name::from_ascii(name).expect(name), kind));
        message
    }

    /// Answers as with a rule for `a.example` alone, and a gateway that does not answer for one
    /// name.
    async fn ask(query: &Message) -> Message {
        let bytes = query.to_vec().expect("a message");
        let find = |name: String| async move {
            match name.as_str() {
                "a.example" => Found::Address(ADDRESS),
                "late.example" => Found::Unknown,
                _ => Found::Denied,
            }
        };
        let answer = answer(&bytes, find).await.expect("an answer");
        let answer = Message::from_vec(&answer).expect("a message");
        assert_eq!(
            (answer.metadata.id, answer.metadata.message_type),
            (7, MessageType::Response)
        );
        answer
    }

    #[tokio::test]
    async fn an_allowed_name_has_one_address_and_a_denied_one_is_not_there() {
        use RecordType::A;
        use RecordType::AAAA;
        use RecordType::HTTPS;
        use ResponseCode::NXDomain;
        use ResponseCode::NoError;
        let ours = || Some(RData::A(ADDRESS.into()));
        for (name, kind, code, data) in [
            ("A.Example.", A, NoError, ours()),
            ("a.example", RecordType::ANY, NoError, ours()),
            ("a.example", AAAA, NoError, None),
            ("a.example", HTTPS, NoError, None),
            ("b.example", A, NXDomain, None),
            ("b.example", AAAA, NXDomain, None),
            ("late.example", A, ResponseCode::ServFail, None),
            ("1.0.80.127.in-addr.arpa", RecordType::PTR, NXDomain, None),
            (
                "localhost",
                A,
                NoError,
                Some(RData::A(Ipv4Addr::LOCALHOST.into())),
            ),
            (
                "x.localhost",
                AAAA,
                NoError,
                Some(RData::AAAA(Ipv6Addr::LOCALHOST.into())),
            ),
            (".", RecordType::NS, NoError, None),
        ] {
            let answer = ask(&query(name, kind)).await;
            let found = answer.answers.first().map(|record| record.data.clone());
            assert_eq!(
                (answer.metadata.response_code, found),
                (code, data),
                "{name} {kind}"
            );
            assert!(answer.answers.len() <= 1 && answer.queries.len() == 1);
        }
    }

    #[tokio::test]
    async fn what_is_no_question_for_a_name_is_refused() {
        let mut two = query("a.example", RecordType::A);
        two.add_query(Query::query(Name::root(), RecordType::A));
        let mut update = query("a.example", RecordType::A);
        update.metadata.op_code = OpCode::Status;
        let mut chaos = query("version.bind", RecordType::TXT);
        chaos.queries[0].query_class = DNSClass::CH;
        for (query, code) in [
            (two, ResponseCode::FormErr),
            (update, ResponseCode::NotImp),
            (chaos, ResponseCode::Refused),
        ] {
            let answer = ask(&query).await;
            assert_eq!(answer.metadata.response_code, code, "{query:?}");
            assert!(answer.answers.is_empty());
        }
    }

    #[tokio::test]
    async fn bytes_that_are_no_query_are_refused_or_not_answered() {
        let never = |name: String| async move { panic!("{name} was looked for") };
        let answer_of = async |bytes: &[u8]| answer(bytes, never).await;
        for bytes in [&[][..], &[0, 7], &[0, 7, 0x80, 0]] {
            assert_eq!(answer_of(bytes).await, None, "{bytes:?}");
        }
        // A name that leads in a circle.
        let circle = [0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xc0, 12, 0, 1, 0, 1];
        let refused = answer_of(&circle).await.expect("an answer");
        let refused = Message::from_vec(&refused).expect("a message");
        assert_eq!(
            (refused.metadata.id, refused.metadata.response_code),
            (7, ResponseCode::FormErr)
        );
    }
}
