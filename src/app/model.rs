use std::time::Duration;
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::Error;
use super::bench::Bench;
use podbay_agent::Failure;
use podbay_config::Config;
use podbay_event::GIVEN_UP;
use podbay_event::Progress;
use podbay_event::ProgressSink;
use podbay_event::Secret;
use podbay_event::Unit;
use podbay_inference::ModelServer;
use podbay_inference::Paths;
use podbay_inference::Serving;
use podbay_inference::Store;
use podbay_llm as llm;
use podbay_llm::Client;
use podbay_llm::Endpoint;
use podbay_llm::Options;
use podbay_llm::Price;
use podbay_llm::ProbeResult;

/// Between two looks for a server that is being started.
const PAUSE: Duration = Duration::from_millis(200);

/// A model that answers.
pub(super) struct Found {
    pub(super) client: Client,
    pub(super) probed: ProbeResult,
    /// Where the server is ours: what we ask of it costs nobody anything.
    pub(super) own: Option<(ModelServer, Serving)>,
    /// What a user should know about this model, and about the list it may be from.
    pub(super) notes: Vec<String>,
}

/// Gets a model that answers: the endpoint where one is named, else a server of our own.
pub(super) async fn connect(
    bench: &Bench,
    key: Option<Secret>,
    progress: &ProgressSink,
    cancel: &CancellationToken,
) -> Result<Found, Error> {
    let options = &bench.config.llm;
    if let Some(endpoint) = &options.endpoint {
        let endpoint = Endpoint::parse(endpoint).map_err(|error| Error::Model(error.into()))?;
        let (client, probed) = wait_for(bench, &endpoint, key.as_ref(), progress, cancel).await?;
        return Ok(Found {
            client,
            probed,
            own: None,
            notes: Vec::new(),
        });
    }
    check(bench)?;
    let server = &bench.config.inference;
    let paths = paths(bench);
    let provision = bench.provision(progress)?;
    let image = async {
        provision
            .ensure(server.image_name(), cancel)
            .await
            .map_err(Error::of_server_image)
    };
    let model = async {
        Store::new(server, &paths, bench.config.offline)?
            .resolve(progress, cancel)
            .await
    };
    let model = async { model.await.map_err(Error::Inference) };
    let (image, model) = tokio::try_join!(image, model)?;
    let notes: Vec<String> = model
        .note
        .iter()
        .cloned()
        .chain(super::models::model_mistakes(&bench.config))
        .collect();
    let own = ModelServer::new(bench.engine()?, server, &paths);
    let serving = own
        .ensure(&image, &model, progress, cancel)
        .await
        .map_err(Error::Inference)?;
    let notes = [notes, serving.warnings.clone()].concat();
    // What one's own server does costs nothing; said only where somebody counts.
    let price = if bench.config.agent.max_cost > 0.0 && !options.price.is_known() {
        Price::FREE
    } else {
        options.price
    };
    let options = &Options {
        price,
        ..options.clone()
    };
    let answer = probe(
        serving.endpoint.clone(),
        Some(serving.key.clone()),
        options,
        server.probe_timeout.duration(),
        cancel,
    )
    .await;
    let (client, probed) = answer.map_err(|error| match error {
        Error::Model(error) if error.is_of_server() => Error::of_agent(Failure::Model(error), true),
        other => other,
    })?;
    Ok(Found {
        client,
        probed,
        own: Some((own, serving)),
        notes,
    })
}

pub(super) fn paths(bench: &Bench) -> Paths {
    Paths::new(bench.state.root())
}

/// Refuses an endpoint that no client can be made for, before anything is started; asks nobody.
pub(super) fn check_endpoint(config: &Config, key: Option<&Secret>) -> Result<(), Error> {
    let Some(endpoint) = &config.llm.endpoint else {
        return Ok(());
    };
    let endpoint = Endpoint::parse(endpoint).map_err(|error| Error::Model(error.into()))?;
    Client::new(endpoint, key.cloned(), config.llm.clone())
        .map(drop)
        .map_err(Error::Model)
}

/// Refuses a sandbox that Podbay did not start where no model is named: no server can be started
/// then.
pub(super) fn check(bench: &Bench) -> Result<(), Error> {
    if bench.socket().is_some() && bench.config.llm.endpoint.is_none() {
        Err(not_named())
    } else {
        Ok(())
    }
}

/// The error of a sandbox that Podbay did not start where no model is named.
pub(super) fn not_named() -> Error {
    Error::usage(
        "no model is named, and with `sandbox.backend = attach` no model server is started",
        "name one with --endpoint or `llm.endpoint`",
    )
}

/// Probes an endpoint, again and again while its server loads the model, for as long as one of ours
/// may take for that.
///
/// Beside a sandbox that Podbay did not start also while nothing listens there: both come up
/// together.
async fn wait_for(
    bench: &Bench,
    endpoint: &Endpoint,
    key: Option<&Secret>,
    progress: &ProgressSink,
    cancel: &CancellationToken,
) -> Result<(Client, ProbeResult), Error> {
    let options = &bench.config.llm;
    let begun = Instant::now();
    let loaded_by = begun + bench.config.inference.start_timeout.duration();
    let started_by = begun
        + bench.socket().map_or(Duration::ZERO, |_| {
            bench.config.sandbox.start_timeout.duration()
        });
    let mut waits = false;
    let step = |finished| Progress {
        task: "the server loads its model".to_owned(),
        done: 0,
        total: None,
        unit: Unit::Steps,
        detail: format!("{} s", begun.elapsed().as_secs()),
        finished,
    };
    loop {
        match probe(
            endpoint.clone(),
            key.cloned(),
            options,
            options.probe_timeout(),
            cancel,
        )
        .await
        {
            Err(Error::Model(llm::Error::Unreachable { .. })) if Instant::now() < started_by => {}
            Err(Error::Model(llm::Error::ModelLoading { .. })) if Instant::now() < loaded_by => {
                waits = true;
                progress(step(false));
            }
            other => {
                if waits {
                    let end = step(true);
                    progress(if other.is_ok() {
                        end
                    } else {
                        Progress {
                            detail: GIVEN_UP.to_owned(),
                            ..end
                        }
                    });
                }
                return match other {
                    // All that it was waited for, not the last look alone.
                    Err(Error::Model(llm::Error::ModelLoading { endpoint, .. })) => {
                        Err(Error::Model(llm::Error::ModelLoading {
                            endpoint,
                            waited: begun.elapsed(),
                        }))
                    }
                    other => other,
                };
            }
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            () = cancel.cancelled() => return Err(Error::Interrupted),
        }
    }
}

async fn probe(
    endpoint: Endpoint,
    key: Option<Secret>,
    options: &Options,
    within: Duration,
    cancel: &CancellationToken,
) -> Result<(Client, ProbeResult), Error> {
    let client = Client::new(endpoint, key, options.clone()).map_err(Error::Model)?;
    let probed = client.probe(cancel, within).await.map_err(Error::Model)?;
    Ok((client, probed))
}
