//! How the project is before a session begins whose changes are pending.
//!
//! Keeping it takes a moment, the first time of a project more than one. So it is done beside the
//! model's first answer, and whatever may change something waits until it is whole: without it
//! nobody could tell later what the session changed.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Error;

/// What came of it, once that is known.
type Kept = Option<Result<(), Arc<Error>>>;

/// Whether it is kept; nobody waits for one that was never begun.
#[derive(Debug, Default)]
pub(super) struct Base(Mutex<Option<Begun>>);

#[derive(Clone, Debug)]
struct Begun {
    kept: watch::Receiver<Kept>,
    /// No session has worked on this review before.
    is_new: bool,
}

/// Tells what comes of it. Where nobody does, it is taken for cancelled.
#[derive(Debug)]
pub(super) struct Beginning(watch::Sender<Kept>);

impl Beginning {
    pub(super) fn end(self, kept: Result<(), Arc<Error>>) {
        // Whoever would have waited may be gone.
        let _ = self.0.send(Some(kept));
    }
}

impl Base {
    pub(super) fn begin(&self, is_new: bool) -> Beginning {
        let (sender, kept) = watch::channel(None);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Begun { kept, is_new });
        Beginning(sender)
    }

    /// Waits until it is kept.
    pub(super) async fn is_kept(&self, cancel: &CancellationToken) -> Result<(), Error> {
        let Some(Begun { mut kept, .. }) = self.begun() else {
            return Ok(());
        };
        tokio::select! {
            // What is known counts, also where somebody wants it all to end.
            biased;
            kept = kept.wait_for(Option::is_some) => match kept.as_deref() {
                Ok(Some(Ok(()))) => Ok(()),
                Ok(Some(Err(source))) => Err(Error::NoBase { source: Arc::clone(source) }),
                Ok(None) | Err(_) => Err(Error::Cancelled),
            },
            () = cancel.cancelled() => Err(Error::Cancelled),
        }
    }

    /// Returns whether nothing can have been changed in this review, ever: it is new, and how the
    /// project is is known not to be kept.
    pub(super) fn is_in_vain(&self) -> bool {
        self.begun().is_some_and(|Begun { kept, is_new }| {
            let has_failed = match &*kept.borrow() {
                Some(kept) => kept.is_err(),
                None => kept.has_changed().is_err(),
            };
            is_new && has_failed
        })
    }

    fn begun(&self) -> Option<Begun> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cancelled() -> CancellationToken {
        let cancel = CancellationToken::new();
        cancel.cancel();
        cancel
    }

    #[tokio::test]
    async fn whoever_may_change_something_waits_until_it_is_kept() {
        let (base, never) = (Arc::new(Base::default()), CancellationToken::new());
        assert!(
            base.is_kept(&never).await.is_ok(),
            "a session that holds nothing back waits for nothing"
        );
        let beginning = base.begin(true);
        let waits = tokio::spawn({
            let base = Arc::clone(&base);
            async move { base.is_kept(&CancellationToken::new()).await }
        });
        tokio::task::yield_now().await;
        assert!(!waits.is_finished() && !base.is_in_vain());
        assert!(matches!(
            base.is_kept(&cancelled()).await,
            Err(Error::Cancelled)
        ));
        beginning.end(Ok(()));
        assert!(
            waits.await.expect("no panic").is_ok()
                && base.is_kept(&cancelled()).await.is_ok()
                && !base.is_in_vain()
        );
    }

    #[tokio::test]
    async fn nothing_is_changed_where_it_could_not_be_kept() {
        let (base, never) = (Base::default(), CancellationToken::new());
        base.begin(true).end(Err(Arc::new(Error::NotStarted {
            problem: "full".to_owned(),
        })));
        for _ in 0..2 {
            let Err(Error::NoBase { source }) = base.is_kept(&never).await else {
                panic!("it is kept")
            };
            assert!(matches!(&*source, Error::NotStarted { .. }) && base.is_in_vain());
        }
        base.begin(false).end(Err(Arc::new(Error::Cancelled)));
        assert!(!base.is_in_vain(), "what was changed before is still there");
        drop(base.begin(true));
        assert!(matches!(base.is_kept(&never).await, Err(Error::Cancelled)) && base.is_in_vain());
    }
}
