//! A thread that drives connections, whatever their callers are doing: the end of a connection is seen at once.

use std::future::Future;
use std::sync::mpsc;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::state::error::StateError;

/// Ends with its connections when it is dropped.
#[derive(Debug)]
pub struct Engine {
    handle: Handle,
    _stop: oneshot::Sender<()>,
}

impl Engine {
    /// E420 when the machine gives no thread.
    pub fn start() -> Result<Self, StateError> {
        let no_thread = || StateError::unavailable("no thread could be started for its connection");
        let (stop, stopped) = oneshot::channel();
        let (ready, started) = mpsc::channel();
        std::thread::Builder::new()
            .name("streamt-postgres".to_owned())
            .spawn(move || {
                if let Ok(runtime) = Builder::new_current_thread().enable_all().build()
                    && ready.send(runtime.handle().clone()).is_ok()
                {
                    let _ = runtime.block_on(stopped);
                }
            })
            .map_err(|_| no_thread())?;
        Ok(Self { handle: started.recv().map_err(|_| no_thread())?, _stop: stop })
    }

    /// Runs the future on the caller's thread; its input and output stay with the engine's. Never called inside async code.
    pub fn run<F: Future>(&self, future: F) -> F::Output {
        self.handle.block_on(future)
    }
}
