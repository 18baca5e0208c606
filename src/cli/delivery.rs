use std::io;
use std::io::Write;
use std::sync::Arc;
use std::sync::Mutex;

use serde::Serialize;

use podbay_app as app;
use podbay_ui as ui;

/// The standard output, with a memory: what cannot be written does not stop what is under way, and
/// is told at the end.
///
/// Clones share the memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Delivery {
    failed: Arc<Mutex<Option<io::Error>>>,
}

impl Delivery {
    /// Says whether everything was delivered. A reader that went away has what it wanted, so that
    /// counts as delivered.
    pub(super) fn end(&self) -> Result<(), app::Error> {
        self.attempt(Write::flush);
        match self
            .failed
            .lock()
            .expect("nothing panics while it holds this lock")
            .take()
        {
            Some(source) if source.kind() != io::ErrorKind::BrokenPipe => Err(undelivered(source)),
            _ => Ok(()),
        }
    }

    fn attempt(&self, write: impl FnOnce(&mut io::StdoutLock<'static>) -> io::Result<()>) {
        let mut failed = self
            .failed
            .lock()
            .expect("nothing panics while it holds this lock");
        if failed.is_none() {
            *failed = write(&mut io::stdout().lock()).err();
        }
    }
}

impl Write for Delivery {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.attempt(|out| out.write_all(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.attempt(Write::flush);
        Ok(())
    }
}

/// Returns the error of a result that could not be written.
pub(super) fn undelivered(source: io::Error) -> app::Error {
    app::Error::Io {
        doing: "write the result to the standard output".to_owned(),
        source,
    }
}

/// Writes a whole result.
pub(super) fn deliver(text: &str) -> Result<(), app::Error> {
    let mut delivery = Delivery::default();
    // It keeps its own errors.
    let _ = delivery.write_all(text.as_bytes());
    delivery.end()
}

/// Writes a result as one JSON object.
pub(super) fn deliver_json(result: &impl Serialize) -> Result<(), app::Error> {
    let mut delivery = Delivery::default();
    // It keeps its own errors.
    let _ = ui::json::result(&mut delivery, result);
    delivery.end()
}
