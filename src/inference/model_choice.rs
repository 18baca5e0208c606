//! The default model for a machine.

use super::Entry;
use super::Gpu;
use super::Machine;
use super::Options;
use super::plan::HEADROOM;
use super::plan::PROMPT_CACHE;
use podbay_event::ByteSize;

/// Tokens of context that must fit in memory: fewer do not hold a coding task.
const CONTEXT: u64 = 8192;

/// Billions of active parameters that a processor alone runs fast enough.
const MOST_ACTIVE: f64 = 9.0;

/// Returns the memory of a model with that context, in bytes.
pub(super) fn memory(entry: &Entry) -> u64 {
    // If unknown, a rather high guess.
    let per_token = entry.kib_per_token.unwrap_or(256) << 10;
    entry
        .size
        .saturating_add(per_token.saturating_mul(CONTEXT))
        .saturating_add((PROMPT_CACHE << 20) + HEADROOM)
}

/// Returns the largest model that fits the machine, other than the smoke model.
pub(super) fn choose<'a>(
    entries: impl IntoIterator<Item = &'a Entry>,
    machine: &Machine,
    options: &Options,
) -> Option<&'a Entry> {
    let memory_for_it = options
        .memory
        .map_or_else(|| free(machine), podbay_event::ByteSize::bytes);
    let card = used_gpu(machine, options)
        .and_then(|gpu| gpu.memory)
        .unwrap_or(0);
    // Layers that do not fit the GPU run on the processor, which slows down the whole.
    let is_quick = |entry: &&Entry| {
        memory(entry) <= card
            || entry
                .active
                .or(entry.parameters)
                .is_none_or(|billions| billions <= MOST_ACTIVE)
    };
    let fits = |entry: &&Entry| !entry.smoke && entry.size > 0 && memory(entry) <= memory_for_it;
    let rank = |entry: &Entry| (entry.parameters.unwrap_or_default(), entry.size as f64);
    entries
        .into_iter()
        .filter(fits)
        .filter(is_quick)
        .max_by(|a, b| {
            rank(a)
                .partial_cmp(&rank(b))
                .unwrap_or(std::cmp::Ordering::Equal)
        })
}

/// Returns the reason in one sentence.
pub(super) fn reason(entry: &Entry, machine: &Machine, options: &Options) -> String {
    let slow =
        format!("those that compute with more than {MOST_ACTIVE} billion parameters are left out");
    let gpu = match (used_gpu(machine, options), &machine.gpu) {
        (_, None) => format!("no GPU found, so {slow}"),
        (
            Some(Gpu {
                name,
                memory: Some(bytes),
            }),
            _,
        ) => {
            format!(
                "{name} has {}, and {slow} where they do not fit it whole",
                ByteSize::new(*bytes).rounded()
            )
        }
        (Some(Gpu { name, memory: None }), _) => {
            format!("{name} was found, but how much memory it has is not known, so {slow}")
        }
        (None, Some(Gpu { name, .. })) => {
            format!("Podbay's own image does not use the GPU ({name}), so {slow}")
        }
    };
    let memory = options
        .memory
        .map_or(machine.memory, podbay_event::ByteSize::bytes);
    format!(
        "{}: the largest that fits {} of memory with 8k of context; {gpu}",
        entry.id,
        ByteSize::new(memory).rounded()
    )
}

/// Returns the GPU, if the server uses it. Podbay's own image uses the processor; another image is
/// assumed to use the GPU.
fn used_gpu<'a>(machine: &'a Machine, options: &Options) -> Option<&'a Gpu> {
    machine.gpu.as_ref().filter(|_| options.image.is_some())
}

/// Some memory is left for the rest of the machine.
fn free(machine: &Machine) -> u64 {
    machine
        .memory
        .saturating_sub((machine.memory / 8).max(1 << 30))
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::built_in;
    use super::*;

    #[track_caller]
    fn check(
        gib: u64,
        gpu: Option<(&str, Option<u64>)>,
        image: Option<&str>,
        chosen: Option<&str>,
        because: &str,
    ) {
        let gpu = gpu.map(|(name, gib)| Gpu {
            name: name.to_owned(),
            memory: gib.map(|gib| gib << 30),
        });
        let machine = Machine {
            memory: gib << 30,
            gpu,
        };
        let options = Options {
            image: image.map(str::to_owned),
            ..Options::default()
        };
        let entry = choose(built_in(), &machine, &options);
        assert_eq!(entry.map(|entry| entry.id.as_str()), chosen);
        if let Some(entry) = entry {
            let reason = reason(entry, &machine, &options);
            assert!(
                reason.contains(because) && reason.contains(&format!("{gib}.0 GiB of memory")),
                "{reason}"
            );
        }
    }

    #[test]
    fn the_default_model_depends_on_memory_and_gpu() {
        check(2, None, None, None, "");
        check(4, None, None, Some("qwen2.5-coder-1.5b"), "no GPU found");
        check(8, None, None, Some("qwen3.5-9b"), "no GPU found");
        check(16, None, None, Some("gpt-oss-20b"), "no GPU found");
        check(32, None, None, Some("qwen3-coder-30b-a3b"), "no GPU found");
        check(
            18,
            Some(("T4", Some(24))),
            None,
            Some("gpt-oss-20b"),
            "does not use the GPU (T4)",
        );
    }

    #[test]
    fn a_model_is_fast_only_if_it_fits_the_gpu_completely() {
        let cuda = Some("cuda");
        check(
            18,
            Some(("T4", Some(24))),
            cuda,
            Some("devstral-small-2-24b"),
            "T4 has 24.0 GiB",
        );
        check(
            18,
            Some(("T4", Some(8))),
            cuda,
            Some("gpt-oss-20b"),
            "where they do not fit it whole",
        );
        check(
            18,
            Some(("T4", None)),
            cuda,
            Some("gpt-oss-20b"),
            "how much memory it has is not known",
        );
    }
}
