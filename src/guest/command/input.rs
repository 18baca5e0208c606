use std::collections::VecDeque;
use std::io;

use super::Source;
use crate::call_channel::CallChannel;
use crate::stdio::Pipe;

/// Where the user's input goes.
pub(crate) enum Input {
    Nowhere,
    Pipe(Pipe),
    /// To the first source, which is a terminal.
    Terminal,
}

/// Queued input; the host learns that a piece is consumed when its last byte is.
pub(super) struct InputQueue {
    pub(super) input: Input,
    pub(super) pending: VecDeque<Piece>,
    /// How much of the first piece is written.
    pub(super) at: usize,
    pub(super) ended: bool,
}

pub(super) struct Piece {
    pub(super) data: Vec<u8>,
    /// The host gave credit for it; the end of a terminal's input is made here.
    pub(super) is_from_host: bool,
}

impl InputQueue {
    /// Writes what the command can take now.
    pub(super) fn write(&mut self, sources: &[Source], line: &mut CallChannel) {
        /// EOF character of a terminal's line discipline.
        const END_OF_INPUT: u8 = 4;

        while let Some(piece) = self.pending.front() {
            let rest = &piece.data[self.at..];
            let written = match sink(&self.input, sources) {
                Some(sink) => sink.try_write(rest),
                None => Ok(rest.len()),
            };
            match written {
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                    ) =>
                {
                    return;
                }
                Ok(n_written) if n_written < rest.len() => self.at += n_written,
                // Written completely, or the reader is gone: the host may send more in both cases.
                Ok(_) | Err(_) => {
                    if piece.is_from_host {
                        line.consumed(piece.data.len());
                    }
                    self.pending.pop_front();
                    self.at = 0;
                }
            }
        }
        if self.ended {
            self.ended = false;
            match &self.input {
                Input::Pipe(_) => self.input = Input::Nowhere,
                Input::Terminal => {
                    self.pending.push_back(Piece {
                        data: vec![END_OF_INPUT],
                        is_from_host: false,
                    });
                    self.write(sources, line);
                }
                Input::Nowhere => {}
            }
        }
    }
}

/// Returns the pipe or terminal that takes the input.
pub(super) fn sink<'call>(input: &'call Input, sources: &'call [Source]) -> Option<&'call Pipe> {
    match input {
        Input::Nowhere => None,
        Input::Pipe(pipe) => Some(pipe),
        Input::Terminal => sources.first().map(|source| &source.pipe),
    }
}
