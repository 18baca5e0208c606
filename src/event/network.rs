use serde::Deserialize;
use serde::Serialize;

use podbay_wire::EgressAccess;
use podbay_wire::EgressAttempt;
use podbay_wire::size;

/// One attempt of a sandbox to reach a host, told when it is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkAttempt {
    /// The name, or what was written where it is none.
    pub host: String,
    /// 0 where none was understood.
    pub port: u16,
    pub access: EgressAccess,
    pub allowed: bool,
    /// The rule that allowed it, or why it was denied.
    pub because: String,
    /// Why it came to nothing although it was allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// With those of the attempts since the last that was told.
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub duration_ms: u64,
    /// How often the session has seen the like of it by now: of many that are alike, not all are
    /// told.
    pub times: u64,
    /// The program that asked, as the sandbox says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}

impl NetworkAttempt {
    pub fn new(attempt: EgressAttempt, times: u64) -> Self {
        Self {
            host: attempt.host,
            port: attempt.port,
            access: attempt.access,
            allowed: attempt.allowed,
            because: attempt.because,
            failure: attempt.failure,
            bytes_sent: attempt.bytes_sent,
            bytes_received: attempt.bytes_received,
            duration_ms: attempt.milliseconds,
            times,
            program: attempt.program,
        }
    }

    /// Says it in a line.
    pub fn words(&self) -> String {
        let place = match &self.program {
            Some(program) => format!("{} ({program})", self.place()),
            None => self.place(),
        };
        let times = match self.times {
            1 => String::new(),
            times => format!(" ({times} times by now)"),
        };
        match (&self.failure, self.allowed) {
            (_, false) => format!("{place} was denied{times}: {}", self.because),
            (Some(failure), true) => {
                format!("{place} was allowed by `{}`: {failure}", self.because)
            }
            (None, true) => format!(
                "{place} was allowed by `{}`: {} sent, {} received",
                self.because,
                size(self.bytes_sent),
                size(self.bytes_received)
            ),
        }
    }

    /// Returns `HOST:PORT`, or the host alone where no port was understood.
    pub fn place(&self) -> String {
        if self.port == 0 {
            self.host.clone()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}
