use std::io;
use std::io::Read;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// What ends a walk or a read early: cancellation or a deadline.
#[derive(Debug)]
pub(crate) struct Stop<'a> {
    cancelled: &'a AtomicBool,
    deadline: Option<Instant>,
    late: AtomicBool,
}

impl<'a> Stop<'a> {
    pub(crate) fn new(cancelled: &'a AtomicBool, deadline: Option<Instant>) -> Self {
        Self {
            cancelled,
            deadline,
            late: AtomicBool::new(false),
        }
    }

    /// Returns one that also ends at this time, unless it ends earlier anyway.
    pub(crate) fn until(&self, time: Instant) -> Self {
        Self::new(
            self.cancelled,
            Some(self.deadline.map_or(time, |deadline| deadline.min(time))),
        )
    }

    pub(crate) fn is_set(&self) -> bool {
        if self.cancelled.load(Ordering::Relaxed) || self.late.load(Ordering::Relaxed) {
            return true;
        }
        if self
            .deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
        {
            self.late.store(true, Ordering::Relaxed);
            return true;
        }
        false
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    pub(crate) fn is_late(&self) -> bool {
        self.late.load(Ordering::Relaxed)
    }
}

/// A reader that fails once it is told to stop.
pub(crate) struct Stoppable<'a, R> {
    reader: R,
    stop: &'a Stop<'a>,
}

impl<'a, R> Stoppable<'a, R> {
    pub(crate) fn new(reader: R, stop: &'a Stop<'a>) -> Self {
        Self { reader, stop }
    }
}

impl<R: Read> Read for Stoppable<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_set() {
            // Callers retry on `Interrupted`.
            return Err(io::Error::other("stopped"));
        }
        self.reader.read(buffer)
    }
}
