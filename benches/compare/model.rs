//! What a real llama.cpp server says of our requests: how many tokens the first has, and how much
//! of the next it had read before.

use std::net::TcpListener;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use podbay::engine;
use podbay::engine::Engine;
use podbay::engine::Provision;
use podbay::event::ProgressSink;
use podbay::inference;
use podbay::inference::Model;
use podbay::inference::ModelServer;
use podbay::inference::Paths;
use podbay::inference::Store;
use podbay::llm::http;
use podbay::llm::http::Endpoint;
use serde_json::Value;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::Outcome;
use super::place::Place;
use super::place::run;
use super::reuse;
use super::scripted_model::ScriptedModel;
use super::table::Table;

/// The model whose server is asked: small enough for every machine.
const SMOKE: &str = "smollm2-135m";

pub(super) async fn rows(place: &Place, table: &mut Table) -> Outcome<()> {
    let result = measure(place, table).await;
    place.podbay(&["down", "-C", &place.project.to_string_lossy()])?;
    result
}

async fn measure(place: &Place, table: &mut Table) -> Outcome<()> {
    reuse(place, table)?;
    let server = Server::of(place).await?;
    reuse::rows(place, &server, false, table).await?;
    let native = Server::with_tools(&server.model).await?;
    reuse::rows(place, &native, true, table).await?;
    for (set, bar) in [("small", 900), ("standard", 2500)] {
        let constrained = server.tokens(&first_request(place, set, false)?).await?;
        let native = server.tokens(&first_request(place, set, true)?).await?;
        let what = format!(
            "tokens of the first request, set `{set}`, tools told by schema (by native calls: {native})"
        );
        table.figure(
            &what,
            &constrained.to_string(),
            &format!("≤ {bar}"),
            constrained <= bar && native <= bar,
        );
    }
    Ok(())
}

/// Prompt tokens that the server found in its cache, of all that the request before had.
fn reuse(place: &Place, table: &mut Table) -> Outcome<()> {
    // The one task that the small model is known to call tools for, turn after turn.
    let output = place
        .command(&["quickstart", "--output", "jsonl", "--model", SMOKE])
        .stderr(Stdio::null())
        .output()?;
    let mut prompts: Vec<(u64, u64)> = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let event: Value = serde_json::from_str(line)?;
        if event["type"] == "assistant_message" {
            let number = |name: &str| event["usage"][name].as_u64().unwrap_or(0);
            prompts.push((number("prompt"), number("cached")));
        }
    }
    if prompts.len() < 2 {
        return Err(format!(
            "the small model answered {} times only, so nothing can be said of its cache",
            prompts.len()
        )
        .into());
    }
    let before: u64 = prompts[..prompts.len() - 1]
        .iter()
        .map(|(prompt, _)| prompt)
        .sum();
    // What the server keeps of its own answers is not counted.
    let cached: u64 = prompts
        .windows(2)
        .map(|pair| pair[1].1.min(pair[0].0))
        .sum();
    let percent = 100.0 * cached as f64 / before as f64;
    let what = format!(
        "prompt tokens reused, real llama-server, a run of {} turns",
        prompts.len()
    );
    table.figure(&what, &format!("{percent:.1} %"), "≥ 99 %", percent >= 99.0);
    Ok(())
}

/// Returns the first request of a run, with nothing in the user's message.
fn first_request(place: &Place, set: &str, native: bool) -> Outcome<Value> {
    let script = ScriptedModel::new().says("Done.");
    let model = if native {
        script
    } else {
        script.without_tools()
    }
    .start_blocking();
    let folder = place.project.to_string_lossy().into_owned();
    place.podbay(&[
        "run",
        "-C",
        &folder,
        "--endpoint",
        &model.endpoint(),
        "--tools",
        set,
        "nothing",
    ])?;
    let mut request = model
        .requests()
        .into_iter()
        .next()
        .ok_or("there was no request")?;
    let messages = request["messages"]
        .as_array_mut()
        .ok_or("a request without messages")?;
    messages.retain(|message| message["role"] == "system");
    messages.push(json!({"role": "user", "content": ""}));
    Ok(request)
}

fn client(endpoint: &Endpoint) -> Outcome<reqwest::Client> {
    Ok(http::client(
        &endpoint.settings(Duration::from_secs(5), None),
    )?)
}

/// A server of the small model.
pub(super) struct Server {
    client: reqwest::Client,
    endpoint: Endpoint,
    key: String,
    model: Model,
    /// The container of one that the bench started itself, removed with it.
    container: Option<String>,
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(container) = &self.container {
            let _ = run("docker", &["rm", "-f", container]);
        }
    }
}

impl Server {
    /// The one that the run before left running.
    async fn of(place: &Place) -> Outcome<Self> {
        let cancel = CancellationToken::new();
        let progress: ProgressSink = Arc::new(|step| eprintln!("{}: {}", step.task, step.detail));
        let (engine_options, options) = (
            engine::Options::default(),
            inference::Options {
                model: Some(SMOKE.to_owned()),
                ..inference::Options::default()
            },
        );
        let engine = Engine::connect(&engine_options, &cancel).await?;
        let paths = Paths::new(&place.state);
        let provision = Provision::new(&engine, &engine_options, false, paths.locks(), &progress);
        let image = provision.ensure(options.image_name(), &cancel).await?;
        let model = Store::new(&options, &paths, false)?
            .resolve(&progress, &cancel)
            .await?;
        let serving = ModelServer::new(&engine, &options, &paths)
            .ensure(&image, &model, &progress, &cancel)
            .await?;
        let client = client(&serving.endpoint)?;
        let (endpoint, key) = (serving.endpoint.clone(), serving.key.expose().to_owned());
        Ok(Self {
            client,
            endpoint,
            key,
            model,
            container: None,
        })
    }

    /// One of its own with a template that knows tools, so that they are told natively.
    async fn with_tools(model: &Model) -> Outcome<Self> {
        let template = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/benches/compare/tools.jinja:/tools.jinja:ro"
        );
        let file = format!(
            "{}:/model.gguf:ro",
            model
                .files
                .first()
                .ok_or("the model has no file")?
                .display()
        );
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let (container, address) = (
            format!("podbay-bench-tools-{}", std::process::id()),
            format!("127.0.0.1:{port}"),
        );
        let options = [
            "run",
            "-d",
            "--name",
            &container,
            "-p",
            &format!("{address}:8080"),
            "-v",
            &file,
            "-v",
            template,
        ];
        let words = [
            "podbay/llama-server",
            "-m",
            "/model.gguf",
            "--host",
            "0.0.0.0",
            "--port",
            "8080",
            "-c",
            "8192",
            "-np",
            "1",
        ];
        let words = [
            &options[..],
            &words,
            &["--jinja", "--chat-template-file", "/tools.jinja"],
        ]
        .concat();
        let endpoint = Endpoint::parse(&format!("http://{address}"))?;
        run("docker", &words)?;
        let client = client(&endpoint)?;
        let server = Self {
            client,
            endpoint,
            key: String::new(),
            model: model.clone(),
            container: Some(container.clone()),
        };
        for _ in 0..600 {
            if server
                .client
                .get(server.endpoint.at_root("/health"))
                .send()
                .await
                .is_ok_and(|answer| answer.status().is_success())
            {
                return Ok(server);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Err("the model server did not come up within a minute".into())
    }

    /// Counts a request as the model reads it. The template of the small model leaves out tools,
    /// which are counted as their JSON.
    async fn tokens(&self, request: &Value) -> Outcome<usize> {
        let filled = self
            .ask("/apply-template", &json!({"messages": request["messages"]}))
            .await?;
        let mut text = filled["prompt"]
            .as_str()
            .ok_or("the server did not fill its template")?
            .to_owned();
        if let Some(tools) = request.get("tools") {
            text.push_str(&tools.to_string());
        }
        let counted = self.ask("/tokenize", &json!({"content": text})).await?;
        Ok(counted["tokens"]
            .as_array()
            .ok_or("the server did not count")?
            .len())
    }

    /// Has it read a request; returns how many tokens that are, and how many of them it had read
    /// before.
    pub(super) async fn read(&self, request: &Value) -> Outcome<(u64, u64)> {
        let mut request = request.clone();
        for (name, value) in [("stream", json!(false)), ("max_tokens", json!(1))] {
            request[name] = value;
        }
        for name in ["stream_options", "return_progress"] {
            request
                .as_object_mut()
                .ok_or("a request is an object")?
                .remove(name);
        }
        let answer = self.ask("/v1/chat/completions", &request).await?;
        let number = |value: &Value| value.as_u64().ok_or("the server did not count");
        Ok((
            number(&answer["usage"]["prompt_tokens"])?,
            number(&answer["timings"]["cache_n"])?,
        ))
    }

    async fn ask(&self, path: &str, body: &Value) -> Outcome<Value> {
        let request = self
            .client
            .post(self.endpoint.at_root(path))
            .bearer_auth(&self.key);
        let request = request
            .header("content-type", "application/json")
            .body(body.to_string());
        Ok(serde_json::from_slice(
            &request.send().await?.error_for_status()?.bytes().await?,
        )?)
    }
}
