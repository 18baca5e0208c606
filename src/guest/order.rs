//! Messages between the serving process, the spawner and a supervisor.
//!
//! Both ends are the same program, so the encoding is the simplest that works: lengths and bytes.
//! Not JSON, because arguments are bytes, and 120 KB of them must fit a socket's buffer. A longer
//! order lies in a file in memory, whose descriptor is sent instead.

use std::fs::File;
use std::io;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use nix::sys::memfd::MFdFlags;
use nix::sys::memfd::memfd_create;

use super::gate::KnownProgram;
use podbay_wire::AskedProgram;
use podbay_wire::Denied;
use podbay_wire::ExecRule;
use podbay_wire::Programs;
use podbay_wire::WriteGate;

/// Longest message; a socket's buffer takes 208 KiB.
pub(super) const MAX_ORDER: usize = 192 * 1024;

/// The message in place of a longer one, which lies in the second of the descriptors sent along. No
/// order begins so.
pub(super) const IN_FILE: [u8; 1] = [0xff];

/// Longest order in a file.
const MAX_IN_FILE: u64 = 4 << 20;

/// Puts an order into a file in memory.
pub(super) fn into_file(order: &[u8]) -> io::Result<OwnedFd> {
    if order.len() as u64 > MAX_IN_FILE {
        return Err(io::ErrorKind::ArgumentListTooLong.into());
    }
    let file = memfd_create(c"order", MFdFlags::MFD_CLOEXEC)?;
    let mut file = File::from(file);
    file.write_all(order)?;
    Ok(file.into())
}

/// Reads an order out of such a file.
pub(super) fn out_of_file(file: OwnedFd) -> io::Result<Vec<u8>> {
    let file = File::from(file);
    let length = file.metadata()?.len();
    if length > MAX_IN_FILE {
        return Err(io::ErrorKind::ArgumentListTooLong.into());
    }
    let mut order = vec![0; usize::try_from(length).unwrap_or(0)];
    file.read_exact_at(&mut order, 0)?;
    Ok(order)
}

/// A program to start. Its descriptors are sent along: control socket, standard input, output,
/// error, working directory and, where `report` says so, one more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Order {
    /// The first is also looked up in `PATH`, unless `program` is set.
    pub(super) argv: Vec<Vec<u8>>,
    /// The file to execute where it differs from `argv[0]`; empty otherwise.
    pub(super) program: Vec<u8>,
    /// `NAME=value`, the whole environment.
    pub(super) environment: Vec<Vec<u8>>,
    /// Its standard input is a terminal that becomes its controlling one.
    pub(super) terminal: bool,
    /// It may extend no file and write to none: the disk is full.
    pub(super) no_writing: bool,
    /// The number of the sixth descriptor in the command; 0: there is none.
    pub(super) report: u32,
    /// The programs that it starts go through the [gate](super::gate).
    pub(super) gated: bool,
    /// The rules of the gate.
    pub(super) rules: Vec<ExecRule>,
    /// The files that the rules name.
    pub(super) programs: Vec<KnownProgram>,
    /// The project is an overlay in which the kernel renames no folder of the lower layer: the
    /// supervisor does.
    pub(super) renames: bool,
    /// It is held at its first write; `None`: it writes without a question.
    pub(super) write_gate: Option<WriteGate>,
    /// The project's folder, where writes are asked about.
    pub(super) workspace: Vec<u8>,
}

impl Order {
    /// Returns the value of a variable of its environment; `name` ends with `=`.
    pub(super) fn variable(&self, name: &[u8]) -> Option<&[u8]> {
        self.environment
            .iter()
            .find_map(|variable| variable.strip_prefix(name))
    }

    /// Returns whether the supervisor renames folders in the kernel's place.
    pub(super) fn may_rename(&self) -> bool {
        self.renames && !self.no_writing
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![
            u8::from(self.terminal)
                | u8::from(self.no_writing) << 1
                | u8::from(self.gated) << 2
                | u8::from(self.renames) << 3,
        ];
        bytes.extend(self.report.to_ne_bytes());
        put(&mut bytes, &self.program);
        put_list(&mut bytes, &self.argv);
        put_list(&mut bytes, &self.environment);
        put(&mut bytes, &self.workspace);
        put(
            &mut bytes,
            &serde_json::to_vec(&(&self.rules, &self.programs, &self.write_gate))
                .expect("plain data always has a JSON form"),
        );
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Order> {
        let (&flags, mut rest) = bytes.split_first()?;
        let report = take_word(&mut rest)?;
        let program = take(&mut rest)?;
        let argv = take_list(&mut rest)?;
        let environment = take_list(&mut rest)?;
        let workspace = take(&mut rest)?;
        let (rules, programs, write_gate) = serde_json::from_slice(&take(&mut rest)?).ok()?;
        let (terminal, no_writing, gated, renames) = (
            flags & 1 != 0,
            flags & 2 != 0,
            flags & 4 != 0,
            flags & 8 != 0,
        );
        let all = rest.is_empty();
        all.then_some(Order {
            argv,
            program,
            environment,
            terminal,
            no_writing,
            report,
            gated,
            rules,
            programs,
            renames,
            write_gate,
            workspace,
        })
    }
}

fn put(bytes: &mut Vec<u8>, item: &[u8]) {
    bytes.extend((item.len() as u32).to_ne_bytes());
    bytes.extend(item);
}

fn put_list(bytes: &mut Vec<u8>, items: &[Vec<u8>]) {
    bytes.extend((items.len() as u32).to_ne_bytes());
    for item in items {
        put(bytes, item);
    }
}

fn take_word(rest: &mut &[u8]) -> Option<u32> {
    let (word, tail) = rest.split_first_chunk::<4>()?;
    *rest = tail;
    Some(u32::from_ne_bytes(*word))
}

fn take(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let length = take_word(rest)? as usize;
    let (item, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(item.to_vec())
}

fn take_list(rest: &mut &[u8]) -> Option<Vec<Vec<u8>>> {
    let n_items = take_word(rest)?;
    (0..n_items).map(|_| take(rest)).collect()
}

/// An order to a supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopOrder {
    /// Send TERM to everything.
    Term,
    /// Kill everything.
    Kill,
    /// Kill everything, and stop all other processes of the sandbox meanwhile: a fork bomb creates
    /// processes faster than they are found.
    KillAtOnce,
}

impl StopOrder {
    pub(super) fn encode(self) -> [u8; 1] {
        match self {
            StopOrder::Term => *b"T",
            StopOrder::Kill => *b"K",
            StopOrder::KillAtOnce => *b"A",
        }
    }

    pub(super) fn decode(byte: u8) -> Option<StopOrder> {
        match byte {
            b'T' => Some(StopOrder::Term),
            b'K' => Some(StopOrder::Kill),
            b'A' => Some(StopOrder::KillAtOnce),
            _ => None,
        }
    }
}

/// The host's answer to a supervisor's question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) question: u32,
    pub(super) go_on: bool,
}

impl Answer {
    pub(super) fn encode(self) -> [u8; 5] {
        let [first, second, third, fourth] = self.question.to_ne_bytes();
        [
            if self.go_on { b'Y' } else { b'N' },
            first,
            second,
            third,
            fourth,
        ]
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (&tag, question) = bytes.split_first()?;
        let go_on = match tag {
            b'Y' => true,
            b'N' => false,
            _ => return None,
        };
        Some(Self {
            question: u32::from_ne_bytes(question.try_into().ok()?),
            go_on,
        })
    }
}

/// Where a start failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The order was not understood.
    Order,
    /// A fork failed.
    Fork,
    /// Descriptors, directory, terminal or limits could not be set up.
    Prepare,
    /// It must be held at its first write, and the kernel does not ask about writes here.
    Hold,
    /// The exec failed.
    Execute,
}

impl Stage {
    fn code(self) -> i32 {
        match self {
            Stage::Order => 0,
            Stage::Fork => 1,
            Stage::Prepare => 2,
            Stage::Execute => 3,
            Stage::Hold => 4,
        }
    }

    pub(super) fn from_code(code: i32) -> Option<Stage> {
        [
            Stage::Order,
            Stage::Fork,
            Stage::Prepare,
            Stage::Execute,
            Stage::Hold,
        ]
        .into_iter()
        .find(|stage| stage.code() == code)
    }
}

/// What a supervisor (or, without one, the spawner) reports about its command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Report {
    Started {
        supervisor: i32,
        pid: i32,
    },
    Failed {
        stage: Stage,
        errno: i32,
    },
    /// The programs that the command has started; right before its end.
    Ran {
        programs: Programs,
        denied: Vec<Denied>,
    },
    Ended {
        status: i32,
        n_survivors: i32,
    },
    /// A program waits for permission to continue.
    Asks {
        question: u32,
        program: Box<AskedProgram>,
    },
}

impl Report {
    pub(super) fn encode(&self) -> Vec<u8> {
        let (tag, first, second) = match self {
            Report::Started { supervisor, pid } => (b'S', *supervisor, *pid),
            Report::Failed { stage, errno } => (b'F', stage.code(), *errno),
            Report::Ended {
                status,
                n_survivors,
            } => (b'E', *status, *n_survivors),
            Report::Ran { programs, denied } => {
                let json = serde_json::to_vec(&(programs, denied))
                    .expect("plain data always has a JSON form");
                return [b"R".to_vec(), json].concat();
            }
            Report::Asks { question, program } => {
                let json = serde_json::to_vec(&(question, program))
                    .expect("plain data always has a JSON form");
                return [b"Q".to_vec(), json].concat();
            }
        };
        [&[tag][..], &first.to_ne_bytes(), &second.to_ne_bytes()].concat()
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Report> {
        let (&tag, rest) = bytes.split_first()?;
        if tag == b'R' {
            return serde_json::from_slice(rest)
                .ok()
                .map(|(programs, denied)| Report::Ran { programs, denied });
        }
        if tag == b'Q' {
            return serde_json::from_slice(rest)
                .ok()
                .map(|(question, program)| Report::Asks { question, program });
        }
        let (first, rest) = rest.split_first_chunk::<4>()?;
        let first = i32::from_ne_bytes(*first);
        let second = i32::from_ne_bytes(rest.try_into().ok()?);
        match tag {
            b'S' => Some(Report::Started {
                supervisor: first,
                pid: second,
            }),
            b'F' => Some(Report::Failed {
                stage: Stage::from_code(first)?,
                errno: second,
            }),
            b'E' => Some(Report::Ended {
                status: first,
                n_survivors: second,
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use podbay_wire::Because;
    use podbay_wire::ExecEffect;
    use podbay_wire::ExecScope;

    use super::*;

    #[test]
    fn a_long_order_goes_through_a_file() {
        let order = Order {
            argv: vec![vec![b'x'; 100 << 10]; 20],
            ..Order::default()
        };
        let bytes = order.encode();
        assert!(bytes.len() > MAX_ORDER && bytes[..1] != IN_FILE);
        let file = into_file(&bytes).expect("a file in memory");
        let back = out_of_file(file).expect("readable");
        assert_eq!(Order::decode(&back), Some(order));
        let error = into_file(&vec![0; 5 << 20]).expect_err("too long");
        assert_eq!(error.kind(), io::ErrorKind::ArgumentListTooLong);
    }

    #[test]
    fn orders_round_trip_with_any_bytes() {
        let order = Order {
            argv: vec![b"printf".to_vec(), vec![], vec![0xff, b'\n']],
            program: b"/bin/printf".to_vec(),
            environment: vec![b"A=b".to_vec()],
            terminal: true,
            no_writing: false,
            report: 9,
            gated: false,
            renames: false,
            write_gate: None,
            workspace: b"/workspace".to_vec(),
            rules: vec![ExecRule {
                effect: ExecEffect::Deny,
                words: vec![vec!["git".to_owned()]],
                more: true,
                options_between: false,
                unless: Vec::new(),
                scope: ExecScope::Anywhere,
                rule: "x".to_owned(),
                justification: String::new(),
            }],
            programs: vec![KnownProgram {
                name: "git".to_owned(),
                device: 1,
                inode: 2,
                build: Some(vec![0xff]),
            }],
        };
        assert_eq!(Order::decode(&order.encode()), Some(order.clone()));
        let other = Order {
            terminal: false,
            no_writing: true,
            gated: true,
            renames: true,
            write_gate: Some(WriteGate {
                unasked: vec!["*.o".to_owned()],
            }),
            ..order.clone()
        };
        assert_eq!(Order::decode(&other.encode()), Some(other));
        let bytes = order.encode();
        for cut in 0..bytes.len() {
            assert_eq!(Order::decode(&bytes[..cut]), None, "cut at {cut}");
        }
    }

    #[test]
    fn reports_round_trip() {
        for report in [
            Report::Started {
                supervisor: 7,
                pid: 8,
            },
            Report::Failed {
                stage: Stage::Execute,
                errno: 2,
            },
            Report::Failed {
                stage: Stage::Hold,
                errno: 38,
            },
            Report::Ran {
                programs: Programs {
                    listed: Vec::new(),
                    n_more: 5,
                },
                denied: vec![Denied {
                    argv: vec!["x".into()],
                    truncated: true,
                    count: 1,
                    because: Because::Unnamed,
                    killed: false,
                }],
            },
            Report::Ended {
                status: 0x8b,
                n_survivors: 3,
            },
            Report::Asks {
                question: 3,
                program: Box::new(AskedProgram {
                    argv: vec!["x".into()],
                    truncated: false,
                    directory: "/".into(),
                    file: "/x".into(),
                    rule: "y".into(),
                    write: None,
                }),
            },
        ] {
            assert_eq!(Report::decode(&report.encode()), Some(report));
        }
        for answered in [
            Answer {
                question: 70_000,
                go_on: true,
            },
            Answer {
                question: 0,
                go_on: false,
            },
        ] {
            assert_eq!(Answer::decode(&answered.encode()), Some(answered));
        }
        assert_eq!(
            (Answer::decode(b"T"), Answer::decode(b"Y123")),
            (None, None)
        );
        assert_eq!(
            (
                Report::decode(b"E123"),
                Report::decode(b"R{"),
                Report::decode(b"")
            ),
            (None, None, None)
        );
    }
}
