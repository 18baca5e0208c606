use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use async_recursion::async_recursion as boxed;

use super::Error;
use super::Front;
use super::Place;
use super::Report;
use super::exit_code;
use super::model;
use super::models;
use super::resume::Aim;
use super::sitting::sit_down;
use podbay_engine::Engine;
use podbay_engine::Provision;
use podbay_event::Kind;
use podbay_event::ProgressSink;
use podbay_event::RunStatus;
use podbay_inference as inference;
use podbay_inference::Machine;
use podbay_llm::Sampling;
use podbay_tools::ToolSet;

/// The example that quickstart works on, brought along in the program.
pub(super) const EXAMPLE: [(&str, &str); 4] = [
    ("README.md", include_str!("../../examples/notes/README.md")),
    ("notes.py", include_str!("../../examples/notes/notes.py")),
    (
        "test_notes.py",
        include_str!("../../examples/notes/test_notes.py"),
    ),
    ("notes.txt", include_str!("../../examples/notes/notes.txt")),
];

/// What the model is asked to do: small enough for the smallest model.
const TASK: &str = r#"List the folder ".". Then read the file "README.md". Then answer: what is this project, in one sentence?"#;

/// What quickstart did.
pub struct Quickstart {
    pub report: Report,
    /// The copy of the example it worked on.
    pub folder: PathBuf,
    /// Whether the model was stopped by the limit and counted as a success all the same.
    pub softly: bool,
}

/// Sets everything up and lets a real model do a real task on a copy of an example.
///
/// It counts as done when a call that the model chose ran in the sandbox and a last text came. A model
/// this small may not know when to stop, so here, and only here, a landing at the limit of five
/// turns is a success too; the caller says so.
#[boxed]
pub async fn quickstart(place: &Place, front: &Front) -> Result<Quickstart, Error> {
    let begun = Instant::now();
    let elapsed = || u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let cancel = front.interrupt.run();
    let sink = Arc::clone(&front.sink);
    let progress: ProgressSink = Arc::new(move |step| sink(Kind::Progress(step).into()));
    place.config.sandbox.check().map_err(Error::Sandbox)?;
    model::check_endpoint(&place.config, place.api_key.as_ref())?;
    let engine = Engine::connect(&place.config.engine, cancel)
        .await
        .map_err(Error::Engine)?;
    // The one command that may install what makes base images, because it promises to get there by
    // itself.
    let provision = Provision::new(
        &engine,
        &place.config.engine,
        place.config.offline,
        place.state.locks(),
        &progress,
    )
    .allow_install(true);
    let image = place
        .config
        .sandbox
        .image
        .as_deref()
        .unwrap_or(podbay_sandbox::DEFAULT_IMAGE);
    provision
        .ensure(image, cancel)
        .await
        .map_err(Error::Engine)?;
    if place.config.llm.endpoint.is_none() {
        provision
            .ensure(place.config.inference.image_name(), cancel)
            .await
            .map_err(Error::of_server_image)?;
    }
    let mut place = place.clone();
    let writes_code = choose_model(&mut place, front, &progress).await?;
    let folder = copy_example().map_err(|source| Error::Io {
        doing: "copy the example".to_owned(),
        source,
    })?;
    place.project.clone_from(&folder);
    place.config.agent.max_turns = 5;
    // It is a copy already.
    place.config.sandbox.changes = podbay_sandbox::Changes::Live;
    place.config.agent.show_files = false;
    place.config.agent.show_git = false;
    place.config.agent.show_commands = false;
    place.config.agent.read_instructions = false;
    place.config.tools.set = ToolSet::Small;
    // The same answer every time, and from a model that does not know when to stop no long one.
    place.config.llm.sampling = Sampling::default();
    place.config.llm.temperature = Some(0.0);
    if !writes_code {
        place.config.llm.max_output_tokens = Some(80);
    }
    let mut session = None;
    let tools = ["list_directory", "read_file"];
    let seat = Box::pin(sit_down(
        &place,
        Aim::Task(TASK),
        Some(&tools),
        front,
        cancel,
        &mut session,
    ))
    .await;
    let mut seat = match seat {
        Ok(seat) => seat,
        Err((error, recorder)) => {
            let report = Report::failed(&error, session, elapsed());
            if let Some(recorder) = recorder {
                recorder.emit(report.event());
            }
            // Nothing was done in it.
            if let Some(root) = folder.parent() {
                let _ = std::fs::remove_dir_all(root);
            }
            return Ok(Quickstart {
                report,
                folder,
                softly: false,
            });
        }
    };
    let outcome = seat.agent.run(TASK, &front.interrupt).await;
    let _ = seat.close(front.interrupt.run()).await;
    let n_succeeded = outcome.n_succeeded;
    let mut report = seat.report(outcome, elapsed());
    let softly = report.status == RunStatus::Limit;
    let answered = matches!(report.status, RunStatus::Completed | RunStatus::Limit)
        && !report.response.trim().is_empty();
    if answered && n_succeeded > 0 {
        report.exit_code = exit_code::DONE;
        report.status = RunStatus::Completed;
    } else if answered {
        let problem = "the model answered without using a tool";
        let error = Error::usage(
            problem,
            "try again, or use a larger model: `podbay models list` names some, podbay quickstart --model NAME takes one",
        );
        report.error = Some(error.report());
        report.status = RunStatus::Failed;
        report.exit_code = exit_code::FAILED;
    }
    seat.recorder.emit(report.event());
    Ok(Quickstart {
        report,
        folder,
        softly,
    })
}

/// Chooses the model where nobody did: one that is here, else the machine's default where a hub
/// answers, else the small one that proves the set-up. Returns whether it is one of ours that can
/// write code.
async fn choose_model(
    place: &mut Place,
    front: &Front,
    progress: &ProgressSink,
) -> Result<bool, Error> {
    let config = &mut place.config;
    if config.llm.endpoint.is_some()
        || config
            .inference
            .model
            .as_deref()
            .is_some_and(|name| !name.trim().is_empty())
    {
        return Ok(false);
    }
    let store = models::store(config, &place.state)?;
    if store.has_one() {
        return Ok(true);
    }
    let instead = |why: String| {
        (front.sink)(
            Kind::Warning {
                message: format!(
                    "the small model that only proves the set-up is used, because {why}"
                ),
            }
            .into(),
        );
    };
    let choice = match store.choice(&Machine::detect(&config.inference)) {
        Ok(choice) => choice,
        Err(error) => {
            instead(error.to_string());
            return Ok(false);
        }
    };
    if !store.hub_answers().await.map_err(Error::Inference)? {
        instead(format!(
            "the hub of models ({}) cannot be reached from here",
            config.inference.hub
        ));
        return Ok(false);
    }
    (front.sink)(
        Kind::Warning {
            message: format!("this loads {} (--model names another)", choice.reason),
        }
        .into(),
    );
    match store
        .pull(&choice.id, progress, front.interrupt.run())
        .await
    {
        Ok(listed) => {
            config.inference.model = Some(listed.entry.id);
            Ok(true)
        }
        Err(error @ inference::Error::Cancelled { .. }) => Err(Error::Inference(error)),
        Err(error) => {
            instead(format!("{} could not be loaded: {error}", choice.id));
            Ok(false)
        }
    }
}

/// Makes a fresh copy of the example that stays, for the user to continue.
fn copy_example() -> std::io::Result<PathBuf> {
    let folder = tempfile::Builder::new()
        .prefix("podbay-quickstart-")
        .tempdir()?
        .keep();
    let project = folder.join("notes");
    std::fs::DirBuilder::new().mode(0o755).create(&project)?;
    for (name, content) in EXAMPLE {
        std::fs::write(project.join(name), content)?;
    }
    give_away(&folder)?;
    Ok(project)
}

/// Root's copy is given to the first ordinary user, so that commands in the sandbox need not run as
/// uid 0.
fn give_away(folder: &Path) -> std::io::Result<()> {
    if !nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    let mut paths = vec![folder.to_owned()];
    while let Some(path) = paths.pop() {
        std::os::unix::fs::lchown(&path, Some(1000), Some(1000))?;
        if path.is_dir() {
            paths.extend(
                std::fs::read_dir(&path)?
                    .flatten()
                    .map(|entry| entry.path()),
            );
        }
    }
    Ok(())
}
