//! The first start: asks once which model answers and how much the agent decides by itself, and
//! writes the answers into the user's settings.

use std::fs;
use std::io;
use std::io::IsTerminal;
use std::io::Write;
use std::path::PathBuf;

use super::args::SessionFlags;
use super::face::is_dumb;
use super::review;
use super::settings;
use super::setup::Setup;
use podbay_app as app;
use podbay_app::FREEDOMS;
use podbay_app::Interrupt;
use podbay_app::ModelOffer;
use podbay_app::State;
use podbay_config::Config;
use podbay_config::Origin;
use podbay_ui::Keyboard;
use podbay_ui::Typed;
use podbay_ui::read_message;
use podbay_ui::text;
use podbay_ui::tui::StartChoice;
use podbay_ui::tui::StartOption;
use podbay_ui::tui::StartView;

/// Settings that answer one of the questions.
const ANSWERS: [&str; 8] = [
    "llm.endpoint",
    "llm.provider",
    "llm.model",
    "inference.model",
    "policy.autonomy",
    "policy.chat_autonomy",
    "sandbox.changes",
    "sandbox.chat_changes",
];

/// How often a wrong answer is asked again, in lines.
const TRIES: u32 = 5;

/// Asks at the first start; returns whether settings were written.
pub(super) async fn ask_once(
    flags: &SessionFlags,
    setup: &Setup,
    is_full: bool,
    keyboard: &Keyboard,
    interrupt: &Interrupt,
) -> Result<bool, app::Error> {
    if !is_first(flags, setup) {
        return Ok(false);
    }
    let has_key = |variable: &str| std::env::var_os(variable).is_some_and(|key| !key.is_empty());
    let offers = app::model_offers(&setup.config, &setup.state, &has_key, interrupt.run()).await;
    let view = view(&offers);
    let choice = if is_full {
        let tui = review::open(setup, interrupt)?;
        let choice = tokio::select! {
            choice = tui.first_start(view) => choice,
            () = interrupt.run().cancelled() => None,
        };
        tui.close();
        choice
    } else {
        in_lines(&view, keyboard, interrupt).await
    };
    if interrupt.is_ended() {
        return Ok(false);
    }
    // Also where nothing was chosen: it is asked once.
    if let Err(error) = fs::write(marker(&setup.state), "") {
        tracing::debug!(%error, "the first start is not noted");
    }
    let Some(choice) = choice else {
        super::say(
            "Nothing was set: the chat asks before each change. `podbay config edit` changes that.\n",
        );
        return Ok(false);
    };
    let path = settings::write_all(&answers(&choice, &offers))?;
    super::say(&format!(
        "The answers are in {}\n",
        text::line(&path.display().to_string())
    ));
    Ok(true)
}

/// Returns whether this is a first start at a terminal, and nothing that is asked is set.
fn is_first(flags: &SessionFlags, setup: &Setup) -> bool {
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal() && !is_dumb();
    let model = &flags.place.model;
    let is_flagged = flags.mode.is_some()
        || flags.autonomy.is_some()
        || flags.preset.is_some()
        || flags.changes.is_some()
        || flags.resume.is_some()
        || flags.go_on
        || model.endpoint.is_some()
        || model.provider.is_some()
        || model.model.is_some();
    let origins = &setup.settings.loaded.origins;
    is_terminal
        && !is_flagged
        && !app::is_attached(&setup.config)
        && ANSWERS
            .iter()
            .all(|key| *origins.of(key) == Origin::Default)
        && !marker(&setup.state).exists()
}

fn marker(state: &State) -> PathBuf {
    state.root().join("first-start")
}

fn view(offers: &[ModelOffer]) -> StartView {
    let model = |offer: &ModelOffer| {
        let (title, detail) = offer.words();
        StartOption {
            title,
            detail,
            asks_for_model: offer.asks_for_model(),
        }
    };
    StartView {
        models: offers.iter().map(model).collect(),
        freedoms: FREEDOMS
            .iter()
            .map(|freedom| StartOption {
                title: freedom.title.to_owned(),
                detail: freedom.detail.to_owned(),
                asks_for_model: false,
            })
            .collect(),
        file: settings::user_path_words(),
    }
}

/// Returns the settings that were chosen.
fn answers(choice: &StartChoice, offers: &[ModelOffer]) -> Vec<(String, String)> {
    let model = choice.model.and_then(|n| offers.get(n));
    let mut all = model.map_or_else(Vec::new, |offer| offer.settings(&choice.name));
    if let Some(freedom) = FREEDOMS.get(choice.freedom) {
        all.extend(freedom.settings());
    }
    all
}

/// Asks the same without a screen.
async fn in_lines(
    view: &StartView,
    keyboard: &Keyboard,
    interrupt: &Interrupt,
) -> Option<StartChoice> {
    let mut choice = StartChoice {
        model: None,
        name: String::new(),
        freedom: 0,
    };
    if !view.models.is_empty() {
        let n = pick("Which model answers?", &view.models, keyboard, interrupt).await?;
        choice.model = Some(n);
        if view.models[n].asks_for_model {
            choice.name = line("Name of the model: ", keyboard, interrupt).await?;
            if choice.name.is_empty() {
                return None;
            }
        }
    }
    let question = "How much does the agent decide by itself?";
    choice.freedom = pick(question, &view.freedoms, keyboard, interrupt).await?;
    Some(choice)
}

/// Asks for one of these by its number; nothing typed is the first one.
async fn pick(
    question: &str,
    options: &[StartOption],
    keyboard: &Keyboard,
    interrupt: &Interrupt,
) -> Option<usize> {
    let mut words = format!("\n{question}\n");
    for (n, option) in (1..).zip(options) {
        words.push_str(&format!(
            "  {n}. {}\n     {}\n",
            text::line(&option.title),
            text::line(&option.detail)
        ));
    }
    super::say(&words);
    for _ in 0..TRIES {
        let answer = line("Number [1]: ", keyboard, interrupt).await?;
        if answer.is_empty() {
            return Some(0);
        }
        match answer.parse::<usize>() {
            Ok(n) if (1..=options.len()).contains(&n) => return Some(n - 1),
            _ => super::say(&format!("Type a number from 1 to {}.\n", options.len())),
        }
    }
    None
}

async fn line(question: &str, keyboard: &Keyboard, interrupt: &Interrupt) -> Option<String> {
    let mut err = io::stderr();
    match read_message(keyboard, &mut err, question, interrupt.run()).await {
        Typed::Line(line) => Some(line.trim().to_owned()),
        Typed::End | Typed::Cancelled => {
            let _ = writeln!(err);
            None
        }
    }
}

/// Has the settings of chats alone hold, where no flag says otherwise. Returns whether turns are
/// reviewed.
pub(super) fn suit_chat(config: &mut Config, flags: &SessionFlags, is_autonomy_flag: bool) -> bool {
    if flags.mode.is_none()
        && !is_autonomy_flag
        && let Some(autonomy) = config.policy.chat_autonomy
    {
        config.policy.autonomy = Some(autonomy);
    }
    let named = flags.changes.is_some();
    if !named && let Some(changes) = config.sandbox.chat_changes {
        config.sandbox.changes = changes;
    }
    (named || config.sandbox.chat_changes.is_some())
        && config.sandbox.changes == app::Changes::Review
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_app::Autonomy;
    use podbay_app::Changes;

    #[test]
    fn settings_of_chats_win_over_those_of_all_and_flags_over_both() {
        let config = |chat_autonomy, chat_changes| {
            let mut config = Config::default();
            config.policy.autonomy = Some(Autonomy::Unattended);
            config.policy.chat_autonomy = chat_autonomy;
            config.sandbox.chat_changes = chat_changes;
            config
        };
        let flags = SessionFlags::default();
        let mut one = config(None, None);
        assert!(!suit_chat(&mut one, &flags, false), "the default is a turn");
        assert_eq!(one.policy.autonomy, Some(Autonomy::Unattended));
        let mut one = config(Some(Autonomy::Ask), Some(Changes::Review));
        assert!(suit_chat(&mut one, &flags, false));
        assert_eq!(one.policy.autonomy, Some(Autonomy::Ask));
        let mut one = config(Some(Autonomy::Ask), Some(Changes::Live));
        assert!(!suit_chat(&mut one, &flags, true));
        assert_eq!(
            (one.policy.autonomy, one.sandbox.changes),
            (Some(Autonomy::Unattended), Changes::Live)
        );
    }
}
