use std::borrow::Cow;

use tokio_util::sync::CancellationToken;

use super::Conversation;
use podbay_event::Usage;
use podbay_llm::Client;
use podbay_session::Fullness;

/// Tokens that a model is taken to read at once where neither its server nor the settings say how
/// many: what the smallest that can work with tools do.
pub(super) const ASSUMED_WINDOW: u64 = 8192;
/// Estimated bytes per token, without a count.
const BYTES_PER_TOKEN: u64 = 4;
/// Texts of at least this many bytes are counted by the server instead of estimated.
const WORTH_COUNTING: usize = 2048;

/// Estimated tokens of an image: models use some hundred to some thousand.
const IMAGE_TOKENS: u64 = 1000;
/// How an image's URL begins in a conversation.
const IMAGE: &str = "\"url\":\"data:image/";

/// Measures how full the model's window is: the server's last count, plus an estimate of what was
/// added since.
#[derive(Debug, Default)]
pub(super) struct WindowGauge {
    /// Size of the conversation in bytes, and its tokens as counted by the server.
    known: Option<(usize, u64)>,
    /// Size in bytes at the server's last count, and the count: it can only grow as long as nothing
    /// is rewritten.
    counted: Option<(usize, u64)>,
    /// Whether the user was told that the server counted fewer tokens than before.
    reported_shorter: bool,
    /// Size in bytes and tokens of the last result, so that the same conversation is not counted
    /// twice.
    last: Option<(usize, u64)>,
    /// The window size reported in a refusal.
    reported_window: Option<u64>,
    warned: u8,
}

impl WindowGauge {
    /// Restores the state of an earlier run. The sizes are those of the conversation before its
    /// last answer, and including it.
    pub(super) fn recall(
        &mut self,
        fullness: &Fullness,
        window: Option<u64>,
        n_bytes: usize,
        n_after: usize,
    ) {
        self.warned = fullness.warned;
        if let Some(usage) = fullness
            .counted
            .as_ref()
            .filter(|usage| is_possible(usage, window))
        {
            self.counted(usage, n_bytes, n_after);
        }
    }

    /// Records the server's count; `n_bytes` is the size of the conversation before the answer,
    /// `n_after` including it.
    pub(super) fn counted(&mut self, usage: &Usage, n_bytes: usize, n_after: usize) {
        if usage.total() > 0 {
            // Reasoning that is not kept in the conversation does not fill the window: a token has
            // at least one byte.
            let answer = usage.completion.min(n_after.saturating_sub(n_bytes) as u64);
            self.known = Some((n_after, usage.prompt.saturating_add(answer)));
            self.last = None;
        }
    }

    /// Records the server's count for a conversation of `n_bytes`; returns the previous count if it
    /// was larger, once.
    /// A server that drops the beginning of a too long conversation gives no other sign. Only
    /// meaningful if every message is read as it was sent: a template that drops old reasoning
    /// makes it shorter too.
    pub(super) fn shorter(&mut self, n_bytes: usize, prompt: u64) -> Option<u64> {
        if prompt == 0 {
            return None;
        }
        let (bytes_before, before) = self.counted.replace((n_bytes, prompt))?;
        let is_shorter = n_bytes >= bytes_before && prompt < before && !self.reported_shorter;
        self.reported_shorter |= is_shorter;
        is_shorter.then_some(before)
    }

    /// Records the sizes given in a refusal.
    pub(super) fn refused(&mut self, prompt: Option<u64>, window: Option<u64>, n_bytes: usize) {
        self.reported_window = window.or(self.reported_window);
        self.last = None;
        self.known = prompt.map(|prompt| (n_bytes, prompt)).or(self.known);
    }

    /// Records a compaction from `from` to `to` bytes. Until the next count, tokens are assumed to
    /// shrink like bytes.
    pub(super) fn record_shrink(&mut self, tokens: u64, from: usize, to: usize) {
        let left = u128::from(tokens) * to as u128 / from.max(1) as u128;
        let known = Some((to, u64::try_from(left).unwrap_or(u64::MAX)));
        *self = Self {
            known,
            reported_window: self.reported_window,
            reported_shorter: self.reported_shorter,
            ..Self::default()
        };
    }

    /// Records that the conversation was rewritten, so that earlier counts are invalid.
    pub(super) fn rewritten(&mut self) {
        (self.known, self.counted, self.last) = (None, None, None);
    }

    /// Returns the size of the window in tokens, if known.
    pub(super) fn window(&self, client: &Client) -> Option<u64> {
        let set = Some(client.options().context).filter(|tokens| *tokens > 0);
        self.told(client)
            .into_iter()
            .chain(set)
            .min()
            .filter(|window| *window > 0)
    }

    /// Returns the size as the server reports it, which the settings may reduce.
    pub(super) fn told(&self, client: &Client) -> Option<u64> {
        self.reported_window.or_else(|| client.probed()?.context)
    }

    /// Returns how many tokens the conversation has. Without any earlier count the server is asked
    /// to count all of it, once.
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

    /// Returns the highest exceeded threshold without a warning so far.
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

/// Returns whether the server's count is plausible: no more tokens than its window holds.
pub(super) fn is_possible(usage: &Usage, window: Option<u64>) -> bool {
    window.is_none_or(|window| window == 0 || usage.prompt <= window)
}

/// Removes the image data from a conversation; returns how many images there were.
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
    fn an_image_is_not_counted_as_text() {
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
    fn each_threshold_causes_one_warning() {
        let mut gauge = WindowGauge::default();
        let all = [70, 76, 80, 95, 99].map(|percent| gauge.passed(percent, &[75, 90]));
        assert_eq!(all, [None, Some(75), None, Some(90), None]);
        gauge.record_shrink(1000, 4000, 1000);
        assert_eq!(gauge.known, Some((1000, 250)));
        assert_eq!(gauge.passed(95, &[75, 90]), Some(90));
    }

    #[test]
    fn a_smaller_count_is_reported_once_unless_rewritten() {
        let mut gauge = WindowGauge::default();
        let counts = [(400, 100), (800, 200), (900, 0), (1200, 190), (1300, 100)]
            .map(|(n_bytes, tokens)| gauge.shorter(n_bytes, tokens));
        assert_eq!(counts, [None, None, None, Some(200), None]);
        let mut gauge = WindowGauge::default();
        assert_eq!(gauge.shorter(4000, 1000), None);
        gauge.record_shrink(1000, 4000, 1000);
        assert_eq!(
            (gauge.shorter(1000, 250), gauge.shorter(1100, 275)),
            (None, None)
        );
        gauge.rewritten();
        assert_eq!(gauge.shorter(1200, 100), None);
    }

    #[test]
    fn a_count_beyond_the_window_is_ignored() {
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
            let mut gauge = WindowGauge::default();
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
    fn dropped_reasoning_does_not_fill_the_window() {
        let mut gauge = WindowGauge::default();
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
