//! Assembles tool calls from their pieces, and repairs what servers get wrong about ids and
//! indices.

use std::collections::HashMap;
use std::collections::HashSet;

use serde::de::IgnoredAny;

use crate::provider::half::Halved;
use crate::provider::half::Joint;
use crate::provider::pieces::ArgumentPieces;
use crate::provider::pieces::Settled;
use crate::provider::sameness::is_same_text;
use podbay_event::ToolCall;

/// Maximum number of calls in one answer.
pub(crate) const MAX_CALLS: usize = 64;
/// Maximum bytes of one call's arguments.
pub(crate) const MAX_ARGUMENTS: usize = 1024 * 1024;
/// Maximum bytes of all arguments in one answer.
const MAX_TOTAL: usize = 4 * 1024 * 1024;
/// Maximum bytes of a tool's name.
const MAX_NAME: usize = 256;

/// A piece of one call.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    pub(crate) index: Option<u64>,
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) arguments: Halved,
}

impl Piece {
    /// Returns whether it contains nothing about any call.
    pub(crate) fn is_empty(&self) -> bool {
        self.id.is_none() && self.name.is_none() && self.arguments.is_empty()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Calls {
    list: Vec<Call>,
    by_index: HashMap<u64, usize>,
    /// How many calls from the first on were reported as complete.
    n_ready: usize,
    n_bytes: usize,
    n_dropped: usize,
    too_long: bool,
    /// Pieces belong to a dropped call.
    dropping: bool,
}

#[derive(Debug, Default)]
struct Call {
    /// Its index according to the server.
    index: Option<u64>,
    id: String,
    name: String,
    arguments: ArgumentPieces,
    joint: Joint,
    /// The id with which it was reported as complete.
    told: Option<String>,
}

impl Call {
    /// Returns whether it may be the call with this id.
    fn may_be(&self, id: &str) -> bool {
        self.id.is_empty() || id.is_empty() || self.id == id
    }
}

impl Calls {
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Takes a piece; returns the name of a call that it begins.
    pub(crate) fn take(&mut self, piece: Piece) -> Option<String> {
        // A piece with a name begins a call; further pieces may refer to it by id.
        let known_id = piece
            .id
            .as_deref()
            .filter(|id| !id.is_empty() && piece.name.as_deref().is_none_or(str::is_empty));
        let by_id = || known_id.and_then(|id| self.list.iter().position(|call| call.id == id));
        let known = match piece.index {
            Some(index) => self.by_index.get(&index).copied(),
            None => by_id().or_else(|| self.list.len().checked_sub(1)),
        };
        let id = piece.id.unwrap_or_default();
        let name = piece.name.unwrap_or_default();
        let text = piece.arguments.text();
        // Some servers repeat a complete call: at its index, or by its id if they send no index.
        let is_again = |call: &Call| {
            name == call.name && call.arguments.is_whole() && call.arguments.repeats(text)
        };
        let in_place = known
            .map(|at| &self.list[at])
            .filter(|call| id.is_empty() || id == call.id);
        let by_id = self
            .list
            .iter()
            .filter(|call| piece.index.is_none() && !id.is_empty() && id == call.id);
        if in_place.into_iter().chain(by_id).any(is_again) {
            return None;
        }
        // Some servers give every call the index 0, or none at all: a new id with a name, or a
        // second name after arguments, is a new call, and so is a name with an object after a
        // complete one.
        let at = known.filter(|&at| {
            let call = &self.list[at];
            let other_id = !id.is_empty() && !call.id.is_empty() && id != call.id;
            let begins_object = text.trim_start().starts_with('{');
            let is_another = !name.is_empty()
                && begins_object
                && call.arguments.is_whole()
                && !call.arguments.says_nothing();
            // Everything so far, with its name again each time.
            let is_more = name == call.name && call.arguments.is_begun_by(text);
            let is_named_anew = !name.is_empty() && !call.arguments.text().is_empty() && !is_more;
            let renamed = piece.index.is_none() && is_named_anew && (id.is_empty() || other_id);
            !(renamed || other_id && !name.is_empty() || is_another)
        });
        let at = if let Some(at) = at {
            if self.dropping && piece.index.is_none() {
                return None;
            }
            at
        } else {
            if self.list.len() == MAX_CALLS {
                // A new index with a name is a new call; the rest continues a dropped one.
                self.n_dropped += usize::from(!name.is_empty());
                self.dropping = true;
                return None;
            }
            self.list.push(Call {
                index: piece.index,
                ..Call::default()
            });
            self.list.len() - 1
        };
        if let Some(index) = piece.index {
            self.by_index.insert(index, at);
        }
        let call = &mut self.list[at];
        if call.id.is_empty() {
            call.id = id;
        }
        let begins = call.name.is_empty() && !name.is_empty();
        if begins || piece.index.is_some() && call.arguments.text().is_empty() {
            more_of_name(&mut call.name, &name);
        }
        let arguments = call.joint.join(&piece.arguments);
        let n_before = call.arguments.len();
        let room =
            MAX_ARGUMENTS.min(MAX_TOTAL.saturating_sub(self.n_bytes) + call.arguments.text().len());
        self.too_long |= !call.arguments.push(&arguments, room);
        self.n_bytes = self.n_bytes - n_before + call.arguments.len();
        begins.then(|| call.name.clone())
    }

    /// Returns the next complete call, once, and none before all preceding ones: if an index leaves
    /// a gap, the missing call may still come, and no more are reported.
    /// It keeps this id and name, unless another call of the conversation has the id.
    pub(crate) fn next_ready(&mut self) -> Option<ToolCall> {
        let (before, rest) = self.list.split_at_mut(self.n_ready);
        let next = before.last().map_or(0, |last| {
            last.index.map_or(0, |index| index.saturating_add(1))
        });
        let is_next = |call: &Call| call.index.is_none_or(|index| index <= next);
        // One that repeats another may still get its own id.
        let is_again = |call: &Call| {
            before.iter().any(|other| {
                other.name == call.name
                    && call.may_be(&other.id)
                    && call.arguments.repeats(other.arguments.text())
            })
        };
        let call = rest.first_mut().filter(|call| {
            !call.name.is_empty() && call.arguments.is_whole() && is_next(call) && !is_again(call)
        })?;
        let is_free = is_good_id(&call.id)
            && before
                .iter()
                .all(|other| other.told.as_ref() != Some(&call.id));
        let id = if is_free {
            call.id.clone()
        } else {
            random_id()
        };
        call.told = Some(id.clone());
        self.n_ready += 1;
        Some(ToolCall {
            id,
            name: call.name.clone(),
            arguments: call.arguments.text().to_owned(),
        })
    }

    /// Removes the calls with unterminated arguments, where the answer was truncated; returns name
    /// and arguments of the last one.
    pub(crate) fn take_half(&mut self) -> Option<(String, String)> {
        let half = |call: &Call| match call.arguments.settle(true) {
            // Arguments other than an object are complete if they are valid JSON.
            Settled::One(text) if serde_json::from_str::<IgnoredAny>(&text).is_err() => Some(text),
            Settled::One(_) | Settled::Several(_) | Settled::Growing => None,
        };
        let last = self
            .list
            .iter()
            .rev()
            .find_map(|call| Some((call.name.clone(), half(call)?)))?;
        self.list.retain(|call| half(call).is_none());
        Some(last)
    }

    /// Returns the calls in the order of their indices, each with an id unique in the conversation,
    /// and what was dropped or is ambiguous. `is_cut`: the answer was truncated.
    pub(crate) fn finish(
        mut self,
        is_cut: bool,
        is_taken: impl Fn(&str) -> bool,
    ) -> (Vec<ToolCall>, Option<String>) {
        // Missing or equal indices say nothing about the order.
        let indices: HashSet<u64> = self.list.iter().filter_map(|call| call.index).collect();
        if indices.len() == self.list.len() {
            self.list.sort_by_key(|call| call.index);
        }
        let mut seen: HashSet<String> = HashSet::new();
        let mut calls: Vec<ToolCall> = Vec::with_capacity(self.list.len());
        let mut faults = Vec::new();
        // The server's ids of each.
        let mut said: Vec<(String, String)> = Vec::new();
        for mut call in self.list {
            self.too_long |= !call.arguments.push(&call.joint.end(), MAX_ARGUMENTS);
            let texts = match call.arguments.settle(is_cut || self.too_long) {
                Settled::One(text) => vec![text],
                Settled::Several(texts) => texts,
                Settled::Growing => {
                    faults.push(format!(
                        "The arguments of {} came as several objects, each of which is more of the one before, so it was not called. Call it \
                         once, with one object.",
                        call.name
                    ));
                    continue;
                }
            };
            // A call without a name, or with the same, and without an id of its own repeats another
            // one, under whatever index.
            let is_again = |text: &str| {
                let mut others = calls.iter().zip(&said);
                let is_named_so =
                    |name: &str| call.name == name || call.name.is_empty() && call.id.is_empty();
                others.any(|(other, (name, id))| {
                    is_named_so(name) && call.may_be(id) && is_same_text(&other.arguments, text)
                })
            };
            let texts: Vec<String> = texts.into_iter().filter(|text| !is_again(text)).collect();
            let given_id = call.id.clone();
            let mut own_id = Some(call.told.unwrap_or(call.id));
            for arguments in texts {
                if calls.len() == MAX_CALLS {
                    self.n_dropped += 1;
                    continue;
                }
                let mut id = own_id.take().unwrap_or_default();
                while !is_good_id(&id) || is_taken(&id) || seen.contains(&id) {
                    id = random_id();
                }
                seen.insert(id.clone());
                said.push((call.name.clone(), given_id.clone()));
                calls.push(ToolCall {
                    id,
                    name: call.name.clone(),
                    arguments,
                });
            }
        }
        if self.n_dropped > 0 {
            faults.push(format!(
                "At most {MAX_CALLS} tool calls fit in one reply; the other {} were dropped.",
                self.n_dropped
            ));
        }
        if self.too_long {
            faults.push(format!("The arguments of a tool call were cut: they may be {MAX_ARGUMENTS} bytes long at most."));
        }
        (calls, (!faults.is_empty()).then(|| faults.join(" ")))
    }
}

/// Adds to a name: the rest, or everything so far. Servers that repeat a whole name with each piece
/// add nothing.
fn more_of_name(name: &mut String, piece: &str) {
    if piece.starts_with(name.as_str()) {
        piece.clone_into(name);
    } else {
        name.push_str(piece);
    }
    name.truncate(name.floor_char_boundary(MAX_NAME));
}

fn is_good_id(id: &str) -> bool {
    (1..=128).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Returns nine letters and digits: required by Mistral's templates, and accepted by every server.
fn random_id() -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut bytes = [0_u8; 9];
    getrandom::fill(&mut bytes).expect("the kernel gives random bytes once it has booted");
    bytes
        .iter()
        .map(|byte| char::from(ALPHABET[usize::from(byte % 32)]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(index: Option<u64>, id: &str, name: &str, arguments: &str) -> Piece {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Piece {
            index,
            id: text(id),
            name: text(name),
            arguments: arguments.to_owned().into(),
        }
    }

    #[track_caller]
    fn check(pieces: Vec<Piece>, expected: &[(&str, &str, &str)]) {
        let mut calls = Calls::default();
        for piece in pieces {
            calls.take(piece);
        }
        let (calls, fault) = calls.finish(false, |id| id == "taken");
        assert_eq!(fault, None);
        assert_eq!(calls.len(), expected.len());
        let mut ids: Vec<&str> = calls.iter().map(|call| call.id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), calls.len(), "ids are unique");
        for (call, (id, name, arguments)) in calls.iter().zip(expected) {
            assert_eq!(
                (call.name.as_str(), call.arguments.as_str()),
                (*name, *arguments)
            );
            assert!(
                if *id == "?" {
                    call.id.len() == 9
                } else {
                    call.id == *id
                },
                "{}",
                call.id
            );
        }
    }

    #[test]
    fn pieces_are_joined_by_index_despite_gaps() {
        check(
            vec![
                piece(Some(7), "a", "bash", ""),
                piece(Some(2), "b", "grep", "{"),
                piece(Some(7), "", "", "{\"x\""),
                piece(Some(2), "", "", "}"),
                piece(Some(7), "a", "bash", ":1}"),
            ],
            &[("b", "grep", "{}"), ("a", "bash", "{\"x\":1}")],
        );
    }

    #[test]
    fn calls_are_ordered_and_ready_by_their_indices() {
        let mut calls = Calls::default();
        let mut ready = Vec::new();
        for (index, id) in [(0, "a"), (2, "c"), (1, "b"), (3, "d")] {
            calls.take(piece(Some(index), id, "read", "{}"));
            ready.extend(std::iter::from_fn(|| calls.next_ready()).map(|call| call.id));
        }
        assert_eq!(
            ready,
            ["a"],
            "c must wait for b, and nobody knows then what is still to come"
        );
        let (calls, _) = calls.finish(false, |_| false);
        assert_eq!(
            calls
                .iter()
                .map(|call| call.id.as_str())
                .collect::<Vec<_>>(),
            ["a", "b", "c", "d"]
        );
        let mut calls = Calls::default();
        calls.take(piece(Some(1), "b", "read", "{}"));
        assert_eq!(calls.next_ready(), None);
        // Indices without information.
        let some = vec![
            piece(Some(1), "x", "a", "{}"),
            piece(None, "y", "b", "{}"),
            piece(Some(0), "z", "c", "{}"),
        ];
        check(
            some,
            &[("x", "a", "{}"), ("y", "b", "{}"), ("z", "c", "{}")],
        );
        let same = vec![
            piece(Some(1), "x", "a", "{}"),
            piece(Some(1), "y", "b", "{}"),
            piece(Some(0), "z", "c", "{}"),
        ];
        check(
            same,
            &[("x", "a", "{}"), ("y", "b", "{}"), ("z", "c", "{}")],
        );
    }

    #[test]
    fn a_placeholder_object_is_replaced_by_the_real_one() {
        for begin in ["{}", " {} "] {
            let pieces = vec![
                piece(Some(0), "a", "bash", begin),
                piece(Some(0), "", "", "{\"c\":"),
                piece(Some(0), "", "", "1}"),
            ];
            check(pieces, &[("a", "bash", "{\"c\":1}")]);
        }
        check(
            vec![
                piece(Some(0), "a", "git_status", "{}"),
                piece(Some(0), "", "", ""),
            ],
            &[("a", "git_status", "{}")],
        );
    }

    #[test]
    fn missing_equal_and_taken_ids_are_replaced() {
        check(
            vec![
                piece(Some(0), "", "a", "{}"),
                piece(Some(1), "x", "b", "{}"),
                piece(Some(2), "x", "c", "{}"),
            ],
            &[("?", "a", "{}"), ("x", "b", "{}"), ("?", "c", "{}")],
        );
        check(
            vec![
                piece(Some(0), "taken", "a", "{}"),
                piece(Some(1), "bad id\n", "b", "{}"),
            ],
            &[("?", "a", "{}"), ("?", "b", "{}")],
        );
    }

    #[test]
    fn calls_without_or_with_equal_indices_are_distinguished() {
        check(
            vec![
                piece(None, "x", "a", "{}"),
                piece(None, "y", "b", "{"),
                piece(None, "", "", "}"),
            ],
            &[("x", "a", "{}"), ("y", "b", "{}")],
        );
        check(
            vec![piece(None, "", "a", "{}"), piece(None, "", "b", "{}")],
            &[("?", "a", "{}"), ("?", "b", "{}")],
        );
        check(
            vec![
                piece(Some(0), "x", "a", "{}"),
                piece(Some(0), "y", "b", "{}"),
            ],
            &[("x", "a", "{}"), ("y", "b", "{}")],
        );
        let whole = |arguments: &str| piece(Some(0), "", "a", arguments);
        check(
            vec![whole("{\"p\":1}"), whole("{\"p\":2}")],
            &[("?", "a", "{\"p\":1}"), ("?", "a", "{\"p\":2}")],
        );
        check(
            vec![whole("{\"p\":1}"), whole("{\"p\":1}"), whole("")],
            &[("?", "a", "{\"p\":1}")],
        );
        let again = || piece(Some(0), "x", "a", "{\"p\":1}");
        check(vec![again(), again()], &[("x", "a", "{\"p\":1}")]);
        for index in [Some(0), None] {
            let so_far = |arguments: &str| piece(index, "", "a", arguments);
            check(
                vec![so_far("{\"p\""), so_far("{\"p\":1"), so_far("{\"p\":1}")],
                &[("?", "a", "{\"p\":1}")],
            );
        }
    }

    #[test]
    fn a_call_repeated_under_another_index_counts_once() {
        let first = || {
            vec![
                piece(Some(0), "x", "read", "{\"path\":"),
                piece(Some(0), "", "", "\"a\",\"limit\":5}"),
            ]
        };
        let expected = [("x", "read", "{\"path\":\"a\",\"limit\":5}")];
        for again in [
            vec![piece(Some(1), "", "read", "{\"path\":\"a\",\"limit\":5}")],
            vec![piece(
                Some(1),
                "x",
                "read",
                "{ \"limit\": 5.0, \"path\": \"a\" }",
            )],
            vec![
                piece(Some(7), "", "read", "{\"path\":"),
                piece(Some(7), "", "", "\"a\",\"limit\":5}"),
            ],
            vec![
                piece(Some(1), "x", "read", ""),
                piece(Some(1), "", "", "{\"limit\":5,\"path\":\"a\"}"),
            ],
            vec![piece(None, "", "read", "{\"path\":\"a\",\"limit\":5.0}")],
        ] {
            let mut calls = Calls::default();
            let mut ready = Vec::new();
            for piece in first().into_iter().chain(again) {
                calls.take(piece);
                ready.extend(std::iter::from_fn(|| calls.next_ready()));
            }
            assert_eq!(ready.len(), 1, "it knows of once");
            let (calls, fault) = calls.finish(false, |_| false);
            assert_eq!((calls.len(), fault), (1, None), "{calls:?}");
            assert_eq!(
                (
                    calls[0].id.as_str(),
                    calls[0].name.as_str(),
                    calls[0].arguments.as_str()
                ),
                expected[0]
            );
        }
        // Another id, another name and other arguments are another call.
        for other in [
            piece(Some(1), "y", "read", "{\"path\":\"a\",\"limit\":5}"),
            piece(Some(1), "", "list", "{\"path\":\"a\",\"limit\":5}"),
            piece(Some(1), "", "read", "{\"path\":\"a\",\"limit\":6}"),
            piece(Some(1), "", "read", "{\"path\":\"a\",\"limit\":\"5\"}"),
        ] {
            let arguments = other.arguments.text().to_owned();
            let (id, name) = (
                other.id.clone().unwrap_or("?".to_owned()),
                other.name.clone().expect("has one"),
            );
            check(
                first().into_iter().chain([other]).collect(),
                &[expected[0], (&id, &name, &arguments)],
            );
        }
    }

    #[test]
    fn a_name_in_pieces_is_joined() {
        let named = |name: &str, arguments: &str| piece(Some(0), "x", name, arguments);
        let expected = [("x", "read_file", "{}")];
        check(
            vec![named("read_", ""), named("file", ""), named("", "{}")],
            &expected,
        );
        check(
            vec![
                named("read_", ""),
                piece(Some(0), "", "fi", ""),
                piece(Some(0), "", "le", "{}"),
            ],
            &expected,
        );
        // Everything so far each time, or the whole with each piece.
        check(
            vec![named("read", ""), named("read_file", ""), named("", "{}")],
            &expected,
        );
        check(
            vec![
                named("read_file", ""),
                named("read_file", "{"),
                named("read_file", "}"),
            ],
            &expected,
        );
        // After arguments it is no longer a name.
        check(vec![named("read_file", "{"), named("file", "}")], &expected);
        check(
            vec![named(&"n".repeat(200), ""), named(&"m".repeat(200), "")],
            &[("x", &("n".repeat(200) + &"m".repeat(56)), "")],
        );
    }

    #[test]
    fn a_call_is_ready_once_it_and_all_before_it_are_complete() {
        let mut calls = Calls::default();
        let mut ready = Vec::new();
        for (index, id, name, arguments) in [
            (0, "", "grep", ""),
            (1, "x", "read", "{\"path\": \"a\"}"),
            (0, "", "", "{\"pattern\": \"}"),
            (0, "late", "", "\"}"),
            (2, "x", "read", "{}"),
            (1, "", "", " "),
            (3, "y", "list", ""),
            (4, "z", "read", "{}"),
        ] {
            calls.take(piece(Some(index), id, name, arguments));
            ready.extend(std::iter::from_fn(|| calls.next_ready()));
        }
        let told: Vec<(&str, &str)> = ready
            .iter()
            .map(|call| (call.name.as_str(), call.arguments.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                ("grep", "{\"pattern\": \"}\"}"),
                ("read", "{\"path\": \"a\"}"),
                ("read", "{}")
            ]
        );
        assert!(
            ready[0].id == "late" && ready[1].id == "x" && ready[2].id.len() == 9,
            "{ready:?}"
        );
        let (calls, _) = calls.finish(false, |_| false);
        assert!(
            calls[0] == ready[0] && calls[2] == ready[2],
            "they are the same in the end: {calls:?}"
        );
        assert_eq!(
            (calls[1].id.as_str(), calls[1].arguments.as_str()),
            ("x", "{\"path\": \"a\"} "),
            "unless something was added"
        );
    }

    #[test]
    fn a_truncated_call_is_removed_and_complete_ones_stay() {
        let mut calls = Calls::default();
        for (index, name, arguments) in [
            (0, "read", "{\"path\": \"a\"}"),
            (1, "odd", "\"{}\""),
            (2, "none", ""),
            (3, "write", "{\"path\": \"b\", \"content\": \"x"),
        ] {
            calls.take(piece(Some(index), "", name, arguments));
        }
        assert_eq!(
            calls.take_half().map(|(name, _)| name).as_deref(),
            Some("write")
        );
        assert_eq!(calls.take_half(), None);
        let (calls, fault) = calls.finish(false, |_| false);
        assert_eq!(
            (
                calls
                    .iter()
                    .map(|call| call.name.as_str())
                    .collect::<Vec<_>>(),
                fault
            ),
            (vec!["read", "odd"], None)
        );
    }

    #[test]
    fn number_and_size_of_calls_are_bounded_and_reported() {
        let mut calls = Calls::default();
        for index in 0..1000 {
            calls.take(piece(Some(index), "", "a", &format!("{{\"n\":{index}}}")));
        }
        let (list, fault) = calls.finish(false, |_| false);
        assert_eq!(
            (list.len(), fault.as_deref()),
            (
                64,
                Some("At most 64 tool calls fit in one reply; the other 936 were dropped.")
            )
        );

        let mut calls = Calls::default();
        for _ in 0..20 {
            calls.take(piece(Some(0), "", "a", &"\u{e9}".repeat(300_000)));
        }
        calls.take(piece(Some(1), "", &"n".repeat(10_000), ""));
        let (list, fault) = calls.finish(false, |_| false);
        assert_eq!(
            list.iter()
                .map(|call| (call.name.len(), call.arguments.len()))
                .collect::<Vec<_>>(),
            [(1, MAX_ARGUMENTS), (256, 0)]
        );
        assert!(fault.expect("a fault").contains("were cut"));
    }
}
