use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Error;
use super::bench::Bench;
use crate::event::ProgressSink;
use crate::event::Secret;
use crate::llm::Client;
use crate::llm::Endpoint;
use crate::llm::Probed;

/// Gets a model that answers: the endpoint where one is named, else our own server.
pub(super) async fn connect(
    bench: &Bench,
    key: Option<Secret>,
    _progress: &ProgressSink,
    cancel: &CancellationToken,
) -> Result<(Client, Probed), Error> {
    let options = &bench.config.llm;
    let endpoint = options.endpoint.clone().unwrap_or_default();
    let endpoint = Endpoint::parse(&endpoint).map_err(|error| Error::Model(error.into()))?;
    let client = Client::new(endpoint, key, options.clone()).map_err(Error::Model)?;
    let probed = client.probe(cancel, Duration::from_secs(10)).await.map_err(Error::Model)?;
    Ok((client, probed))
}
