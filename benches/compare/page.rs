//! The page with the tables: one for each storage driver, since that decides what starting a
//! program in a container costs, and one for what needs no engine.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::Outcome;

pub(super) const PAGE: &str = "docs/performance.md";
const END: &str = "<!-- end of measured -->";

/// What the figures were measured on.
pub(super) struct Machine {
    pub(super) storage: String,
    /// In a few general words.
    pub(super) text: String,
}

impl Machine {
    pub(super) fn look(cgroup: u8) -> Self {
        let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
        let ask = |format: &str| {
            let output = Command::new("docker")
                .args(["info", "--format", format])
                .output();
            output
                .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
                .unwrap_or_default()
        };
        let memory = ask("{{.MemTotal}}")
            .parse::<f64>()
            .map_or(0.0, |bytes| bytes / 1024f64.powi(3));
        let storage = ask("{{.Driver}}");
        let text = format!(
            "{cores} cores, {memory:.0} GiB of memory, Docker {}, cgroup v{cgroup}, storage driver {storage}, Linux {}",
            ask("{{.ServerVersion}}"),
            ask("{{.KernelVersion}}")
                .split('-')
                .next()
                .unwrap_or_default()
        );
        Self { storage, text }
    }
}

/// Replaces the table of that name, that of a storage driver or another, which this bench writes.
pub(super) fn write(name: &str, bench: &str, table: &str) -> Outcome<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = fs::read_to_string(&path)?;
    let begin = format!("<!-- measured on {name}: written by `cargo bench --bench {bench}` -->");
    let missing = || {
        format!(
            "{PAGE} has no table for {name}: write the lines `{begin}` and `{END}` where it belongs"
        )
    };
    let (before, rest) = page.split_once(&begin).ok_or_else(missing)?;
    let (_old, after) = rest.split_once(END).ok_or_else(missing)?;
    fs::write(&path, format!("{before}{begin}\n\n{table}\n{END}{after}"))?;
    Ok(())
}
