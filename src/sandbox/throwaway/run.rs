//! One run: a sandbox is made, the files are written, the code runs, the sandbox is removed.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Language;
use crate::Error;
use crate::Sandbox;
use crate::Spec;
use crate::docker::discard;
use crate::docker::start;
use crate::kept::Way;
use crate::link;
use crate::link::Link;
use podbay_wire::BytesPath;
use podbay_wire::Call;
use podbay_wire::CommandEnded;
use podbay_wire::End;
use podbay_wire::Fault;
use podbay_wire::Hook;
use podbay_wire::Output;
use podbay_wire::WriteFile;
use podbay_wire::keep::FindOrder;
use podbay_wire::message::Stream;

/// How long one file may take to be written.
const FILE: Duration = Duration::from_secs(10);
/// How long the guest may take beyond the code's time, to end its processes and to answer.
const BEYOND: Duration = Duration::from_secs(5);

/// Receives what code prints, each stream by itself.
type OnOutput<'a> = Box<dyn FnMut(Stream, &[u8]) + Send + 'a>;

/// Code for a throw-away sandbox.
#[derive(Clone, Debug)]
pub struct ThrowawayCode {
    pub language: &'static Language,
    pub code: String,
    /// Its whole standard input.
    pub stdin: String,
    /// Files beside it: path, relative to the folder that it runs in, and content.
    pub files: Vec<(String, String)>,
    /// Variables: name and value.
    pub environment: Vec<(String, String)>,
    pub timeout: Duration,
    /// Time between TERM and KILL.
    pub grace: Duration,
    /// How many bytes of output are sent; the rest is discarded.
    pub output_bytes: u64,
    /// Whether it reaches the hosts that the session may reach now; else it reaches none.
    pub network: bool,
}

impl Sandbox {
    /// Runs code in a sandbox of its own, made from `spec`, and removes that. What it prints goes
    /// to `on_chunk`, each stream by itself. The session's own sandbox is not touched.
    pub async fn run_throwaway(
        &self,
        spec: &Spec,
        code: ThrowawayCode,
        on_chunk: OnOutput<'_>,
        cancel: &CancellationToken,
    ) -> Result<Output, Error> {
        let Way::Engine(made) = &self.inner.way else {
            return Err(Error::Setting {
                key: "sandbox.backend",
                problem: "beside a sandbox that Podbay did not start it makes no other".to_owned(),
            });
        };
        debug_assert!(spec.is_apart());
        let spec = if code.network {
            spec.in_network_of(&made.newest())
        } else {
            spec.clone()
        };
        // No volume of it begins with anything.
        let is_laid_out = CancellationToken::new();
        is_laid_out.cancel();
        let running = start(
            &made.engine,
            &spec,
            &made.labels,
            &FindOrder::default(),
            self.inner.options.start_timeout.duration(),
            &is_laid_out,
            cancel,
        )
        .await?;
        let output = run(&running.link, code, on_chunk, cancel).await;
        discard(&made.engine, &running).await;
        Ok(output)
    }
}

async fn run(
    link: &Link,
    code: ThrowawayCode,
    on_chunk: impl FnMut(Stream, &[u8]) + Send,
    cancel: &CancellationToken,
) -> Output {
    let own = code.language.file.clone();
    if code.files.iter().any(|(path, _)| is_same(path, &own)) {
        return Output::Fault(Fault::Invalid {
            field: "files".to_owned(),
            problem: format!("`{own}` is where the code itself lies; give that file another name"),
        });
    }
    for (path, content) in code.files.into_iter().chain([(own, code.code)]) {
        let write = Call::WriteFile(WriteFile {
            path: BytesPath::from_text(&path),
            content,
            append: false,
            // All that is there is the code's own.
            protected: true,
            known: None,
        });
        match link.call(write, |_, _| {}, cancel, FILE).await {
            Ok(Output::Written(_)) => {}
            Ok(output) => return believed(output),
            Err(error) => return ended(error),
        }
    }
    let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let deadline = code.timeout + code.grace + BEYOND;
    // Like a hook it has its own input, two streams and always the same folder.
    let call = Call::Hook(Hook {
        command: code.language.command.clone(),
        input: code.stdin,
        environment: code.environment,
        timeout_ms: ms(code.timeout),
        grace_ms: ms(code.grace),
        output_bytes: code.output_bytes,
        rules: Vec::new(),
    });
    match link.call(call, on_chunk, cancel, deadline).await {
        Ok(output) => believed(output),
        Err(error) => ended(error),
    }
}

fn is_same(path: &str, own: &str) -> bool {
    let rest = path.strip_prefix("/workspace").unwrap_or(path);
    rest.trim_start_matches(['/', '.']) == own
}

/// Returns what is taken from the answer of such a guest: how a command ended, or why there was
/// none. Nothing of it is about the session's own sandbox.
fn believed(output: Output) -> Output {
    match output {
        Output::Command(
            ended @ CommandEnded {
                end: End::Exited { .. } | End::Signaled { .. } | End::Cancelled,
                ..
            },
        ) => Output::Command(CommandEnded {
            working_directory: None,
            // The advice to leave them running is of no use here.
            n_survivors: 0,
            note: None,
            ..ended
        }),
        Output::Fault(Fault::BoxEnded { problem }) => stopped(problem),
        Output::Fault(fault) => Output::Fault(fault),
        _ => stopped("it gave an answer of another kind".to_owned()),
    }
}

fn ended(error: link::Error) -> Output {
    match error.into_fault() {
        Ok(fault) => believed(Output::Fault(fault)),
        Err(error) => stopped(error.to_string()),
    }
}

fn stopped(problem: String) -> Output {
    Output::Fault(Fault::Io {
        doing: "run the code in a sandbox of its own".to_owned(),
        problem,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_wire::Moved;

    #[test]
    fn a_guest_says_nothing_about_the_sessions_own_sandbox() {
        let moved = Output::Moved(Moved { path: "/".into() });
        let gone = Output::Fault(Fault::BoxEnded {
            problem: "it is over".to_owned(),
        });
        let runs = Output::Command(CommandEnded::plain(End::Running { pid: 1 }));
        for output in [moved, gone, runs] {
            assert!(
                matches!(believed(output.clone()), Output::Fault(Fault::Io { .. })),
                "{output:?}"
            );
        }
        let done = CommandEnded {
            working_directory: Some("elsewhere".into()),
            n_survivors: 3,
            output_bytes: 7,
            ..CommandEnded::plain(End::Exited { code: 2 })
        };
        let Output::Command(kept) = believed(Output::Command(done)) else {
            panic!("a command that ended");
        };
        assert_eq!((kept.working_directory, kept.n_survivors), (None, 0));
        assert_eq!((kept.end, kept.output_bytes), (End::Exited { code: 2 }, 7));
    }

    #[test]
    fn the_file_of_the_code_is_known_by_any_path_to_it() {
        for path in ["main.py", "./main.py", "/workspace/main.py"] {
            assert!(is_same(path, "main.py"), "{path}");
        }
        for path in ["a/main.py", "main.pyc", "other/../x.py"] {
            assert!(!is_same(path, "main.py"), "{path}");
        }
    }
}
