use serde::Deserialize;
use serde::Serialize;

use super::CallEffect;
use super::CallFacts;
use super::CallFields;
use super::CallKind;
use super::CallNeed;
use super::CallVerb;
use super::FileMemory;
use super::FileScope;
use super::FileUse;
use super::RuleSubject;
use super::TimeLimit;
use super::ToolCall;
use super::ToolFacts;

/// A query or order about the session's background commands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum Processes {
    List,
    /// Reads the end of a command's output.
    Output {
        /// `None`: the command that was started last.
        id: Option<i32>,
        tail_lines: u32,
    },
    Stop {
        id: Option<i32>,
        /// Time between TERM and KILL, in milliseconds.
        grace_ms: u64,
    },
}

impl ToolCall for Processes {
    const TOOLS: &'static [ToolFacts] = &[
        ToolFacts {
            name: "list_processes",
            aliases: &["ListProcesses", "list_background_processes"],
            subject: RuleSubject::Nothing,
            file_use: FileUse::Neither,
        },
        ToolFacts {
            name: "get_process_output",
            aliases: &[
                "GetProcessOutput",
                "BashOutput",
                "process_output",
                "read_process_output",
            ],
            subject: RuleSubject::Nothing,
            file_use: FileUse::Neither,
        },
        ToolFacts {
            name: "stop_process",
            aliases: &["StopProcess", "KillShell", "KillBash", "kill_process"],
            subject: RuleSubject::Nothing,
            file_use: FileUse::Neither,
        },
    ];

    fn facts(&self) -> CallFacts<'_> {
        const READS: (CallEffect, &[CallNeed], TimeLimit) = (
            CallEffect::Nothing,
            &[CallNeed::ReadFiles],
            TimeLimit::Files,
        );
        let (tool, verb, (effect, needs, time)) = match self {
            Self::List => ("list_processes", "list what runs in the background", READS),
            Self::Output { .. } => (
                "get_process_output",
                "read what a background command printed",
                READS,
            ),
            Self::Stop { grace_ms, .. } => {
                let time = TimeLimit::Stop {
                    grace_ms: *grace_ms,
                };
                let stops = (CallEffect::Files, &[CallNeed::RunInSandbox][..], time);
                ("stop_process", "stop a background command", stops)
            }
        };
        CallFacts {
            tool,
            kind: CallKind::Session,
            effect,
            needs,
            paths: Vec::new(),
            scope: FileScope::Named,
            details: Some(Vec::new()),
            weight: 0,
            time,
            memory: FileMemory::Nothing,
            verb: CallVerb::Plain(verb),
        }
    }

    fn fields_mut(&mut self) -> CallFields<'_> {
        CallFields::of(Vec::new())
    }
}
