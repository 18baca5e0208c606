use std::borrow::Cow;

use tokio_util::sync::CancellationToken;

use super::Conversation;
use podbay_event::Usage;
use podbay_llm::Client;
use podbay_session::Fullness;

/// Bytes that a token is taken for, where nobody counts.
const BYTES_PER_TOKEN: u64 = 4;
/// What is counted by the server rather than taken for so many bytes.
const WORTH_COUNTING: usize = 2048;

/// What an image is taken for, in tokens: models make some hundred to some thousand of one.
const IMAGE_TOKENS: u64 = 1000;
/// How an image's address begins in a conversation.
const IMAGE: &str = "\"url\":\"data:image/";

/// How full the model's window is: by what the server counted last, and what was added since.
#[derive(Debug, Default)]
pub(super) struct Gauge {
    /// Bytes of the conversation, and the tokens that the server said they are.
    known: Option<(usize, u64)>,
    /// Bytes of the conversation when the server counted it last, and the tokens it said: what it
    /// has counted can only become more, as long as nothing is written anew.
    counted: Option<(usize, u64)>,
    /// Whether the person was told that the server counted less than before.
    told_shorter: bool,
    /// Bytes of the conversation, and the tokens that it was found to be last, so that nobody
    /// counts the same twice.
    last: Option<(usize, u64)>,
    /// The window, where a refusal told it.
    told_window: Option<u64>,
    warned: u8,
    /// A checkpoint was kept since room was made.
    pub(super) has_checkpoint: bool,
}

impl Gauge {
    /// Goes on from what an earlier run knew. The bytes are those of the conversation before its
    /// last answer, and with it.
    pub(super) fn recall(
        &mut self,
        fullness: &Fullness,
        window: Option<u64>,
        n_bytes: usize,
        n_after: usize,
    ) {
        (self.warned, self.has_checkpoint) = (fullness.warned, fullness.has_checkpoint);
        if let Some(usage) = fullness
            .counted
            .as_ref()
            .filter(|usage| is_possible(usage, window))
        {
            self.counted(usage, n_bytes, n_after);
        }
    }

    /// Takes what the server counted; `n_bytes` is the conversation before the answer, `n_after`
    /// with it.
    pub(super) fn counted(&mut self, usage: &Usage, n_bytes: usize, n_after: usize) {
        if usage.total() > 0 {
            // What was thought and does not stand in the conversation fills no window: a token is
            // one byte at least.
            let answer = usage.completion.min(n_after.saturating_sub(n_bytes) as u64);
            self.known = Some((n_after, usage.prompt.saturating_add(answer)));
            self.last = None;
        }
    }

    /// Takes the server's count of a conversation of so many bytes; returns what it was before
    /// where it became less, once.
    ///
    /// A server that leaves out the beginning of what it cannot read says nothing of it but that.
    /// To be asked only where every message is read as it was sent: a template that leaves out old
    /// thoughts makes less of it too.
    pub(super) fn shorter(&mut self, n_bytes: usize, prompt: u64) -> Option<u64> {
        if prompt == 0 {
            return None;
        }
        let (bytes_before, before) = self.counted.replace((n_bytes, prompt))?;
        let is_shorter = n_bytes >= bytes_before && prompt < before && !self.told_shorter;
        self.told_shorter |= is_shorter;
        is_shorter.then_some(before)
    }

    /// Takes what a refusal says.
    pub(super) fn refused(&mut self, prompt: Option<u64>, window: Option<u64>, n_bytes: usize) {
        self.told_window = window.or(self.told_window);
        self.last = None;
        self.known = prompt.map(|prompt| (n_bytes, prompt)).or(self.known);
    }

    /// Notes that room was made: of so many tokens and bytes so many bytes are left. Until the
    /// server counts again, tokens are taken to have gone as bytes did.
    pub(super) fn shrunk(&mut self, tokens: u64, from: usize, to: usize) {
        let left = u128::from(tokens) * to as u128 / from.max(1) as u128;
        let known = Some((to, u64::try_from(left).unwrap_or(u64::MAX)));
        *self = Self {
            known,
            told_window: self.told_window,
            told_shorter: self.told_shorter,
            ..Self::default()
        };
    }

    /// Notes that the conversation is written otherwise from now on, so that earlier counts say
    /// nothing.
    pub(super) fn retold(&mut self) {
        (self.known, self.counted, self.last) = (None, None, None);
    }

    /// Returns how many tokens the model reads at once, if anybody said.
    pub(super) fn window(&self, client: &Client) -> Option<u64> {
        let set = Some(client.options().context).filter(|tokens| *tokens > 0);
        self.told(client)
            .into_iter()
            .chain(set)
            .min()
            .filter(|window| *window > 0)
    }

    /// Returns the same as the server says it, which the settings may make smaller.
    pub(super) fn told(&self, client: &Client) -> Option<u64> {
        self.told_window.or_else(|| client.probed()?.context)
    }

    /// Returns how many tokens the conversation is. Where nobody has counted any of it yet, the
    /// server is asked for all of it, once.
    pub(super) async fn used(
        &mut self,
        conversation: &Conversation,
        client: &Client,
        cancel: &CancellationToken,
    ) -> u64 {
        if let Some((n_bytes, tokens)) = self.last
            && n_bytes == conversation.prompt().n_bytes()
        {
            return tokens;
        }
        let used = self.count(conversation, client, cancel).await;
        self.last = Some((conversation.prompt().n_bytes(), used));
        used
    }

    async fn count(
        &mut self,
        conversation: &Conversation,
        client: &Client,
        cancel: &CancellationToken,
    ) -> u64 {
        let head = conversation.prompt().head();
        let known = self.known.filter(|(from, _)| head.is_char_boundary(*from));
        let (from, tokens) = known.unwrap_or_default();
        let (rest, n_images) = without_images(&head[from..]);
        let tokens = tokens.saturating_add(n_images * IMAGE_TOKENS);
        let counted = if rest.len() < WORTH_COUNTING {
            None
        } else if known.is_none() && n_images == 0 {
            let counted = client.count_prompt(conversation.prompt(), cancel).await;
            self.known = counted.map(|tokens| (head.len(), tokens));
            counted
        } else {
            client.count(&rest, cancel).await
        };
        tokens.saturating_add(counted.unwrap_or(rest.len() as u64 / BYTES_PER_TOKEN))
    }

    /// Returns the highest threshold that was passed and not warned of yet.
    pub(super) fn passed(&mut self, percent: u64, thresholds: &[u8]) -> Option<u8> {
        let passed = thresholds
            .iter()
            .copied()
            .filter(|at| u64::from(*at) <= percent && *at > self.warned)
            .max()?;
        self.warned = passed;
        Some(passed)
    }
}

/// Returns whether a server can have read as many tokens as it says, and answered: no more than its
/// window holds.
pub(super) fn is_possible(usage: &Usage, window: Option<u64>) -> bool {
    window.is_none_or(|window| window == 0 || usage.prompt <= window)
}

/// Leaves the bytes of images out of a conversation; returns how many there were.
fn without_images(text: &str) -> (Cow<'_, str>, u64) {
    let mut parts = text.split(IMAGE);
    let first = parts.next().unwrap_or_default();
    let (mut rest, mut n_images) = (Cow::Borrowed(first), 0);
    for part in parts {
        n_images += 1;
        rest.to_mut()
            .push_str(part.split_once('"').map_or("", |(_, after)| after));
    }
    (rest, n_images)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_no_text() {
        assert_eq!(
            without_images("a{\"url\":\"data:image/png;base64,QUJD\"}b"),
            ("a{}b".into(), 1)
        );
        assert_eq!(
            without_images("{\"url\":\"http://x\"}"),
            ("{\"url\":\"http://x\"}".into(), 0)
        );
    }

    #[test]
    fn each_threshold_is_warned_of_once() {
        let mut gauge = Gauge::default();
        let all = [70, 76, 80, 95, 99].map(|percent| gauge.passed(percent, &[75, 90]));
        assert_eq!(all, [None, Some(75), None, Some(90), None]);
        gauge.shrunk(1000, 4000, 1000);
        assert_eq!(gauge.known, Some((1000, 250)));
        assert_eq!(gauge.passed(95, &[75, 90]), Some(90));
    }

    #[test]
    fn a_count_that_becomes_less_is_said_once_and_only_where_nothing_was_written_anew() {
        let mut gauge = Gauge::default();
        let counts = [(400, 100), (800, 200), (900, 0), (1200, 190), (1300, 100)]
            .map(|(n_bytes, tokens)| gauge.shorter(n_bytes, tokens));
        assert_eq!(counts, [None, None, None, Some(200), None]);
        let mut gauge = Gauge::default();
        assert_eq!(gauge.shorter(4000, 1000), None);
        gauge.shrunk(1000, 4000, 1000);
        assert_eq!(
            (gauge.shorter(1000, 250), gauge.shorter(1100, 275)),
            (None, None)
        );
        gauge.retold();
        assert_eq!(gauge.shorter(1200, 100), None);
    }

    #[test]
    fn a_count_that_no_window_holds_is_none() {
        let usage = |prompt| Usage {
            prompt,
            cached: 0,
            completion: 20,
            cost_usd: None,
        };
        let possible = [
            (32768, Some(32768)),
            (32769, Some(32768)),
            (u64::from(u32::MAX), None),
            (5, Some(0)),
        ];
        assert_eq!(
            possible.map(|(prompt, window)| is_possible(&usage(prompt), window)),
            [true, false, true, true]
        );
        for (prompt, known) in [(100, Some((440, 110))), (u64::from(u32::MAX), None)] {
            let mut gauge = Gauge::default();
            let fullness = Fullness {
                counted: Some(Usage {
                    completion: 10,
                    ..usage(prompt)
                }),
                ..Fullness::default()
            };
            gauge.recall(&fullness, Some(32768), 400, 440);
            assert_eq!(gauge.known, known);
        }
    }

    #[test]
    fn thoughts_that_do_not_stay_fill_nothing() {
        let mut gauge = Gauge::default();
        gauge.counted(
            &Usage {
                prompt: 100,
                cached: 0,
                completion: 5000,
                cost_usd: None,
            },
            400,
            440,
        );
        assert_eq!(gauge.known, Some((440, 140)));
        gauge.counted(&Usage::default(), 440, 500);
        assert_eq!(
            gauge.known,
            Some((440, 140)),
            "a server that does not count says nothing new"
        );
    }
}
