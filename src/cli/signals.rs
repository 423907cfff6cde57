//! SIGINT and SIGTERM while an operation runs: the first asks it to stop, the second ends the process.

use std::thread;
use std::time::Duration;

use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

use crate::messages::operation::{Cancel, Signal};

/// After the second signal: enough for the answer to be printed, not enough to wait for anybody.
const GRACE: Duration = Duration::from_secs(1);

/// Listens until the process ends. A process that cannot listen dies of the signal, as any other does.
pub fn listen(cancel: Cancel) {
    let listener = thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else { return };
        runtime.block_on(async move {
            let streams = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
            let (Ok(mut interrupt), Ok(mut terminate)) = streams else { return };
            cancel.request(next(&mut interrupt, &mut terminate).await);
            let second = next(&mut interrupt, &mut terminate).await;
            cancel.abandon();
            thread::sleep(GRACE);
            std::process::exit(second.exit_code());
        });
    });
    drop(listener);
}

async fn next(interrupt: &mut Stream, terminate: &mut Stream) -> Signal {
    tokio::select! {
        _ = interrupt.recv() => Signal::Interrupt,
        _ = terminate.recv() => Signal::Terminate,
    }
}
