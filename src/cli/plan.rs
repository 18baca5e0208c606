//! Plans of a session: the slash command, and what is asked about one.

use std::io;

use super::face::Face;
use podbay_app::Chat;
use podbay_app::Interrupt;
use podbay_event::PlanAnswer;
use podbay_event::PlanDecision;
use podbay_ui::Keyboard;
use podbay_ui::Typed;
use podbay_ui::edit_text;
use podbay_ui::read_message;
use podbay_ui::text;
use podbay_ui::tui;
use podbay_ui::tui::Tui;
use tokio_util::sync::CancellationToken;

/// What a user can do with a plan on the screen; their own words say what is to be different.
const CHOICES: [&str; 3] = [
    "approve: the agent implements it",
    "edit it first",
    "discard it",
];

const NO_PLAN: &str = "There is no plan yet: /plan on, then say what is to be planned.\n";

/// Does what `/plan` asks for; returns the message that has the model implement a plan.
pub(super) async fn obey(
    rest: &str,
    chat: &mut Chat,
    face: &Face,
    interrupt: &Interrupt,
) -> Option<String> {
    let words = match rest {
        "" => state(chat),
        "on" | "off" => {
            let on = rest == "on";
            match chat.set_plan_mode(on, interrupt).await {
                // The event says it.
                Ok(true) => return None,
                Ok(false) => format!("Plan mode is {rest} already.\n"),
                Err(error) => {
                    face.fail(&error);
                    return None;
                }
            }
        }
        "show" => chat.plan_or_answer().map_or_else(
            || NO_PLAN.to_owned(),
            |plan| format!("plan {}:\n{}\n", plan.version, text::clean(&plan.text)),
        ),
        "edit" => edit(chat, face).await,
        "discard" if chat.plan().is_some() => {
            chat.discard_plan();
            return None;
        }
        "implement" if chat.plan_or_answer().is_some() => {
            return match chat.approve_plan(interrupt).await {
                Ok(task) => task,
                Err(error) => {
                    face.fail(&error);
                    None
                }
            };
        }
        "implement" | "discard" => NO_PLAN.to_owned(),
        _ => "/plan takes on, off, show, edit, implement or discard. Stored plans for a TASK are not there yet: /plan on, then the task as a message.\n"
            .to_owned(),
    };
    face.say(&words);
    None
}

/// Says how a plan is decided on that waits.
pub(super) fn waits(chat: &Chat) -> Option<String> {
    let plan = chat.plan().filter(|plan| plan.decision.is_none())?;
    chat.is_planning().then(|| {
        format!(
            "Plan {} waits: /plan implement, edit or discard; or say what is to be different.\n",
            plan.version
        )
    })
}

fn state(chat: &Chat) -> String {
    let mode = if chat.is_planning() { "on" } else { "off" };
    let plan = chat.plan().map_or_else(
        || "no plan yet".to_owned(),
        |plan| {
            let decided = match plan.decision {
                None => "not decided",
                Some(PlanDecision::Approved) => "approved",
                Some(PlanDecision::Revise) => "to be revised",
                Some(PlanDecision::Discarded) => "discarded",
            };
            format!("plan {} ({decided}), /plan show", plan.version)
        },
    );
    format!("plan mode {mode}; {plan}\n")
}

async fn edit(chat: &mut Chat, face: &Face) -> String {
    let Some(plan) = chat.plan_or_answer() else {
        return NO_PLAN.to_owned();
    };
    let edited = match face.tui() {
        Some(tui) => tui.edit(&plan.text).await.ok_or_else(String::new),
        None => edit_in_lines(&plan.text).await,
    };
    match edited {
        Ok(edited) if edited.trim().is_empty() || edited.trim() == plan.text.trim() => {
            "The plan is as it was.\n".to_owned()
        }
        Ok(edited) => {
            chat.change_plan(edited.trim_end());
            "/plan implement approves it.\n".to_owned()
        }
        Err(problem) => format!("{}\n", text::line(&problem)),
    }
}

async fn edit_in_lines(plan: &str) -> Result<String, String> {
    let plan = plan.to_owned();
    tokio::task::spawn_blocking(move || edit_text(&plan, ".md"))
        .await
        .unwrap_or_else(|_| Err("the editor could not be run".to_owned()))
}

/// Asks about a plan that the screen shows; `None`: the user decides later.
pub(super) async fn ask_on_screen(screen: &Tui, plan: &str) -> Option<PlanAnswer> {
    let options = CHOICES.map(str::to_owned);
    let mut edited: Option<String> = None;
    loop {
        let question = if edited.is_some() {
            "Approve the plan as you changed it?"
        } else {
            "Approve this plan? Your own words say what is to be different."
        };
        let chosen = screen.pick(question, &options).await?;
        if chosen == tui::CANCELLED {
            return None;
        }
        return Some(match CHOICES.iter().position(|choice| *choice == chosen) {
            Some(0) => PlanAnswer::Approve { edited },
            Some(1) => {
                let text = edited.as_deref().unwrap_or(plan);
                if let Some(changed) = screen.edit(text).await.as_deref().and_then(changed) {
                    screen.say(&changed);
                    edited = Some(changed);
                }
                continue;
            }
            Some(_) => PlanAnswer::Discard,
            None => PlanAnswer::Revise(Some(chosen)),
        });
    }
}

/// Shows a plan and asks about it, line by line; `None`: the user decides later.
pub(super) async fn ask_in_lines(
    keyboard: &Keyboard,
    plan: &str,
    cancel: &CancellationToken,
) -> Option<PlanAnswer> {
    let mut edited: Option<String> = None;
    super::say(&format!("\n{}\n\n", text::clean(plan.trim_end())));
    loop {
        let question = "[a]pprove, [e]dit, [d]iscard, or say what is to be different (nothing: decide later): ";
        // What was typed before the plan could be read is no answer.
        keyboard.discard();
        let Typed::Line(line) = read_message(keyboard, &mut io::stderr(), question, cancel).await
        else {
            return None;
        };
        return Some(match line.trim() {
            "a" | "A" | "approve" => PlanAnswer::Approve { edited },
            "d" | "D" | "discard" => PlanAnswer::Discard,
            "" => return None,
            "e" | "E" | "edit" => {
                match edit_in_lines(edited.as_deref().unwrap_or(plan)).await {
                    Ok(text) => {
                        if let Some(text) = changed(&text) {
                            super::say(&format!("\n{}\n\n", text::clean(&text)));
                            edited = Some(text);
                        }
                    }
                    Err(problem) => super::say(&format!("{}\n", text::line(&problem))),
                }
                continue;
            }
            words => PlanAnswer::Revise(Some(words.to_owned())),
        });
    }
}

/// Returns a plan as an editor left it; nothing where it is empty.
fn changed(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
