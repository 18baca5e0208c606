use std::pin::Pin;
use std::sync::Arc;
use std::sync::Mutex;
use std::task::Context;
use std::task::Poll;

use async_recursion::async_recursion as boxed;
use bollard::container::LogOutput;
use bollard::models::ExecConfig;
use bollard::query_parameters::AttachContainerOptionsBuilder;
use bytes::Bytes;
use futures::Stream;
use futures::StreamExt;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::ReadBuf;
use tokio_util::io::StreamReader;
use tokio_util::sync::CancellationToken;

use super::ContainerId;
use super::Engine;
use super::Error;
use super::bounded::bounded;

/// Most bytes of a program's stderr that are kept to explain its end.
const MOST_DIAGNOSTICS: usize = 8 * 1024;

type Output = StreamReader<Pin<Box<dyn Stream<Item = std::io::Result<Bytes>> + Send>>, Bytes>;

/// A program's stdin and stdout as one stream. Its stderr is kept separately, up to a bound.
pub struct Attached {
    output: Output,
    input: Pin<Box<dyn AsyncWrite + Send>>,
    diagnostics: Arc<Mutex<Vec<u8>>>,
}

impl Attached {
    fn new(
        output: Pin<Box<dyn Stream<Item = Result<LogOutput, bollard::errors::Error>> + Send>>,
        input: Pin<Box<dyn AsyncWrite + Send>>,
    ) -> Self {
        let diagnostics = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&diagnostics);
        let stdout = output.filter_map(move |part| {
            let out = match part {
                Ok(LogOutput::StdErr { message }) => {
                    let mut kept = kept
                        .lock()
                        .expect("nothing panics while it holds this lock");
                    let room = MOST_DIAGNOSTICS.saturating_sub(kept.len());
                    kept.extend_from_slice(&message[..message.len().min(room)]);
                    None
                }
                Ok(other) => Some(Ok(other.into_bytes())),
                Err(error) => Some(Err(std::io::Error::other(error))),
            };
            std::future::ready(out)
        });
        Self {
            output: StreamReader::new(Box::pin(stdout)),
            input,
            diagnostics,
        }
    }

    /// Returns a handle to the stderr output; it outlives the stream.
    pub fn diagnostics(&self) -> impl Fn() -> String + Send + Sync + 'static {
        let kept = Arc::clone(&self.diagnostics);
        move || {
            String::from_utf8_lossy(
                &kept
                    .lock()
                    .expect("nothing panics while it holds this lock"),
            )
            .into_owned()
        }
    }
}

impl AsyncRead for Attached {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.output).poll_read(context, buffer)
    }
}

impl AsyncWrite for Attached {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        self.input.as_mut().poll_write(context, bytes)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        self.input.as_mut().poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        self.input.as_mut().poll_shutdown(context)
    }
}

impl Engine {
    /// Attaches to a container before it is started, so that no byte is missed.
    #[boxed]
    pub async fn attach(
        &self,
        id: &ContainerId,
        cancel: &CancellationToken,
    ) -> Result<Attached, Error> {
        let options = AttachContainerOptionsBuilder::default()
            .stream(true)
            .stdin(true)
            .stdout(true)
            .stderr(true)
            .build();
        let doing = || format!("attach to the container {}", id.short());
        let attached = bounded(
            doing,
            cancel,
            self.timeout,
            self.docker.attach_container(&id.0, Some(options)),
        )
        .await?;
        Ok(Attached::new(attached.output, attached.input))
    }

    /// Starts a second program in a running container, attached and without a terminal.
    #[boxed]
    pub async fn exec(
        &self,
        id: &ContainerId,
        user: &str,
        command: &[&str],
        cancel: &CancellationToken,
    ) -> Result<Attached, Error> {
        let config = ExecConfig {
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            tty: Some(false),
            privileged: Some(false),
            user: Some(user.to_owned()),
            working_dir: Some("/".to_owned()),
            cmd: Some(command.iter().map(|&part| part.to_owned()).collect()),
            ..ExecConfig::default()
        };
        let doing = || format!("start a program in the container {}", id.short());
        let exchange = async {
            let made = self.docker.create_exec(&id.0, config).await?;
            self.docker.start_exec(&made.id, None).await
        };
        match bounded(doing, cancel, self.timeout, exchange).await? {
            bollard::exec::StartExecResults::Attached { output, input } => {
                Ok(Attached::new(output, input))
            }
            bollard::exec::StartExecResults::Detached => Err(Error::Answer {
                doing: doing(),
                status: 200,
                message: "it was started without its streams".to_owned(),
            }),
        }
    }
}
