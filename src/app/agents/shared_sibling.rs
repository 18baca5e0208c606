use std::sync::Arc;

use tokio::sync::Mutex;

use podbay_sandbox::Sandbox;
use podbay_sandbox::Sibling;

/// The read-only sandbox that all agents of a session have in common which only read, as long as
/// there is such an agent.
#[derive(Default)]
pub(crate) struct SharedSibling(Mutex<Users>);

#[derive(Default)]
struct Users {
    sibling: Option<Arc<Sibling>>,
    n: usize,
}

impl SharedSibling {
    /// Returns the sandbox for one more agent, which leaves when it has ended. `None`: that of the
    /// session is read-only itself, or Podbay did not start it.
    pub(super) async fn join(&self, sandbox: &Sandbox) -> Option<Arc<Sibling>> {
        let mut users = self.0.lock().await;
        if users.sibling.is_none() && !sandbox.is_read_only() {
            users.sibling = sandbox.sibling().map(Arc::new);
            if let Some(sibling) = &users.sibling {
                // While the model reads its task.
                sibling.begin_soon();
            }
        }
        let sibling = users.sibling.clone()?;
        users.n += 1;
        Some(sibling)
    }

    /// Ends the sandbox with the last of its agents.
    pub(super) async fn leave(&self) {
        let mut users = self.0.lock().await;
        users.n = users.n.saturating_sub(1);
        if users.n == 0
            && let Some(sibling) = users.sibling.take()
        {
            sibling.close().await;
        }
    }
}
