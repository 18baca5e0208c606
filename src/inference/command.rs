use std::fs;
use std::path::Path;
use std::thread::available_parallelism;

use super::Error;
use super::Model;
use super::Options;
use super::plan::common_arguments;
use super::plan::size;

/// Returns the command line of the model server for a container that is started by something else,
/// such as compose.
///
/// It is the command line of our own container, except that the server listens on `socket` and may
/// use the container's memory.
pub fn command(
    model: &Model,
    options: &Options,
    socket: &Path,
    key: &Path,
) -> Result<Vec<String>, Error> {
    let text = |path: &Path| {
        path.to_str()
            .map(str::to_owned)
            .ok_or_else(|| Error::Unsupported {
                problem: format!(
                    "the path `{}` is not UTF-8, and the server takes no other",
                    path.display()
                ),
            })
    };
    let first = model
        .files
        .first()
        .expect("a model that was opened has a file");
    let n_threads = options.threads.unwrap_or_else(|| {
        available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1))
    });
    let (context, _) = size(model, memory(), options)?;
    let mut argv = vec![
        options.program.clone(),
        "-m".to_owned(),
        text(first)?,
        "--alias".to_owned(),
        model.name.clone(),
    ];
    argv.extend(["--host".to_owned(), text(socket)?]);
    argv.extend(common_arguments(
        options,
        context,
        n_threads.clamp(1, 1024),
        &text(key)?,
    ));
    Ok(argv)
}

/// Returns the memory limit of this container in bytes; 0 if unknown.
fn memory() -> u64 {
    let limits = [
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    ];
    let limit = limits
        .iter()
        .find_map(|path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok());
    let machine = fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| total(&text))
        .unwrap_or(0);
    match limit {
        Some(limit) if machine == 0 || limit < machine => limit,
        _ => machine,
    }
}

fn total(meminfo: &str) -> Option<u64> {
    let kib: u64 = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?
        .trim()
        .strip_suffix("kB")?
        .trim()
        .parse()
        .ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_listens_on_the_socket_alone_and_reads_its_key_from_a_file() {
        let model = Model {
            name: "m".into(),
            files: vec!["/m/m.gguf".into()],
            identities: vec![(1, 1)],
            size: 1 << 20,
            changed: 0,
            context: Some(2048),
            bytes_per_token: Some(1024),
            is_smoke: false,
            note: None,
        };
        let options = Options {
            threads: Some(2),
            ..Options::default()
        };
        let argv = command(
            &model,
            &options,
            Path::new("/run/llama/s.sock"),
            Path::new("/run/key/key"),
        )
        .expect("a command line");
        let line = argv.join(" ");
        assert!(
            line.starts_with(
                "llama-server -m /m/m.gguf --alias m --host /run/llama/s.sock --jinja "
            ),
            "{line}"
        );
        assert!(
            line.contains("--api-key-file /run/key/key -c 2048 -t 2 ") && !line.contains("--port"),
            "{line}"
        );
    }

    #[test]
    fn the_machines_memory_is_read() {
        assert_eq!(
            total("MemTotal:       24682416 kB\nMemFree: 1 kB\n"),
            Some(24_682_416 << 10)
        );
        assert_eq!(total("nothing"), None);
    }
}
