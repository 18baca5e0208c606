//! Which model a machine gets when nobody names one.

use super::Entry;
use super::Machine;
use super::Options;
use super::plan::HEADROOM;
use super::plan::PROMPT_CACHE;

/// Tokens of context that must fit: less does not hold a coding task.
const CONTEXT: u64 = 8192;

/// Billions of parameters that a processor alone computes fast enough to wait for.
const MOST_ACTIVE: f64 = 9.0;

/// Returns the memory that a model takes with a usable context.
pub(super) fn memory(entry: &Entry) -> u64 {
    // Where nobody says, a guess that is rather high.
    let per_token = entry.kib_per_token.unwrap_or(256) << 10;
    entry.size.saturating_add(per_token.saturating_mul(CONTEXT)).saturating_add((PROMPT_CACHE << 20) + HEADROOM)
}

/// Returns the largest model that fits the machine. The smoke model is none that anybody would choose.
pub(super) fn choose<'a>(entries: impl IntoIterator<Item = &'a Entry>, machine: &Machine, options: &Options) -> Option<&'a Entry> {
    let memory_for_it = options.memory.map_or_else(|| free(machine), crate::event::ByteSize::bytes);
    let is_quick =
        |entry: &&Entry| uses_gpu(machine, options) || entry.active.or(entry.parameters).is_none_or(|billions| billions <= MOST_ACTIVE);
    let fits = |entry: &&Entry| !entry.smoke && entry.size > 0 && memory(entry) <= memory_for_it;
    let rank = |entry: &Entry| (entry.parameters.unwrap_or_default(), entry.size as f64);
    entries.into_iter().filter(fits).filter(is_quick).max_by(|a, b| rank(a).partial_cmp(&rank(b)).unwrap_or(std::cmp::Ordering::Equal))
}

/// Says in one sentence why.
pub(super) fn reason(entry: &Entry, machine: &Machine, options: &Options) -> String {
    let gpu = match &machine.gpu {
        None => format!("no GPU found, so those that compute with more than {MOST_ACTIVE} billion parameters are left out"),
        Some(gpu) if uses_gpu(machine, options) => format!("{gpu} was found, and the model server's image is one that was named for it"),
        Some(gpu) => format!(
            "Podbay's own image does not use the GPU ({gpu}), so those that compute with more than {MOST_ACTIVE} billion parameters are left out"
        ),
    };
    let memory = options.memory.map_or(machine.memory, crate::event::ByteSize::bytes);
    format!("{}: the largest that fits {} of memory with 8k of context; {gpu}", entry.id, gib(memory))
}

/// Podbay's own image computes on the processor; whoever names another does so for the card.
fn uses_gpu(machine: &Machine, options: &Options) -> bool {
    machine.gpu.is_some() && options.image.is_some()
}

/// The rest of the machine lives from something too.
fn free(machine: &Machine) -> u64 {
    machine.memory.saturating_sub((machine.memory / 8).max(1 << 30))
}

pub(super) fn gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / 1_073_741_824.0)
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::built_in;
    use super::*;

    #[track_caller]
    fn check(gib: u64, gpu: Option<&str>, image: Option<&str>, chosen: Option<&str>, because: &str) {
        let machine = Machine { memory: gib << 30, gpu: gpu.map(str::to_owned) };
        let options = Options { image: image.map(str::to_owned), ..Options::default() };
        let entry = choose(built_in(), &machine, &options);
        assert_eq!(entry.map(|entry| entry.id.as_str()), chosen);
        if let Some(entry) = entry {
            let reason = reason(entry, &machine, &options);
            assert!(reason.contains(because) && reason.contains(&format!("{gib}.0 GiB of memory")), "{reason}");
        }
    }

    #[test]
    fn the_choice_follows_memory_and_card() {
        check(2, None, None, None, "");
        check(4, None, None, Some("qwen2.5-coder-1.5b"), "no GPU found");
        check(8, None, None, Some("qwen3.5-9b"), "no GPU found");
        check(16, None, None, Some("gpt-oss-20b"), "no GPU found");
        check(32, None, None, Some("qwen3-coder-30b-a3b"), "no GPU found");
        check(18, Some("T4"), None, Some("gpt-oss-20b"), "does not use the GPU (T4)");
        check(18, Some("T4"), Some("cuda"), Some("devstral-small-2-24b"), "T4 was found");
    }
}
