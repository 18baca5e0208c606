use std::future::Future;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Error;

/// Waits for one request to the engine, at most `within`; returns at once when `cancel` fires.
pub(super) async fn bounded<T>(
    doing: impl FnOnce() -> String,
    cancel: &CancellationToken,
    within: Duration,
    request: impl Future<Output = Result<T, bollard::errors::Error>>,
) -> Result<T, Error> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(Error::Cancelled { doing: doing() }),
        outcome = tokio::time::timeout(within, request) => match outcome {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(source)) => Err(Error::from_engine(doing(), source)),
            Err(_) => Err(Error::NoAnswer { doing: doing(), within }),
        },
    }
}
