//! stub
use crate::engine::Engine;
use tokio_util::sync::CancellationToken;
pub const IMAGE: &str = "podbay/llama-server";
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default)]
/// x
pub struct Options {
    /// Model.
    pub model: Option<String>,
    /// Image.
    pub image: Option<String>,
}
#[derive(Debug, thiserror::Error)]
#[error("x")]
pub struct Error;
impl Error {
    pub fn hint(&self) -> Option<String> {
        None
    }
    pub fn is_usage(&self) -> bool {
        false
    }
}
pub struct ModelServer;
pub struct State {
    pub name: String,
    pub id: String,
    pub started_at: String,
    pub detail: String,
}
impl ModelServer {
    pub fn new(_e: &Engine, _o: &Options, _s: &std::path::Path) -> Self {
        Self
    }
    pub async fn stop(&self, _c: &CancellationToken) -> Result<bool, Error> {
        Ok(false)
    }
    pub async fn state(&self, _c: &CancellationToken) -> Result<Option<State>, Error> {
        Ok(None)
    }
    pub async fn logs(&self, _f: bool, _n: u32, _w: impl FnMut(&[u8]), _c: &CancellationToken) -> Result<(), Error> {
        Ok(())
    }
}
