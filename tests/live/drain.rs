//! A proxy before Kafka that outlives its client: what a killed process had sent is answered to the end, and that end can be waited
//! for.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::OwnedReadHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// Connections that a client has not closed, or whose requests are not all answered.
type Open = Arc<(Mutex<usize>, Condvar)>;

pub struct Drain {
    pub address: String,
    open: Open,
}

impl Drain {
    pub fn start(broker: String) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a mode");
        let address = listener.local_addr().expect("an address");
        let open = Open::default();
        let count = Arc::clone(&open);
        let accept = async move {
            let listener = TcpListener::from_std(listener).expect("a listener");
            while let Ok((client, _)) = listener.accept().await {
                *count.0.lock().expect("whole") += 1;
                let (broker, count) = (broker.clone(), Arc::clone(&count));
                tokio::spawn(async move {
                    serve(client, &broker, address.port()).await;
                    *count.0.lock().expect("whole") -= 1;
                    count.1.notify_all();
                });
            }
        };
        std::thread::spawn(|| {
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(accept)
        });
        Self { address: address.to_string(), open }
    }

    /// Waits until everything that dead clients had sent is answered.
    pub fn answered(&self) {
        let open = self.open.0.lock().expect("whole");
        let waited = self.open.1.wait_timeout_while(open, Duration::from_secs(120), |open| *open > 0).expect("whole");
        assert!(!waited.1.timed_out(), "the broker does not answer");
    }
}

/// Whole frames both ways: a request that was cut short by its client's death never reaches the broker.
async fn serve(client: TcpStream, broker: &str, own: u16) {
    let Ok(server) = TcpStream::connect(broker).await else { return };
    let theirs: u32 = broker.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    let named = [&b"127.0.0.1"[..], &theirs.to_be_bytes()].concat();
    let (mut client_in, mut client_out) = client.into_split();
    let (mut server_in, mut server_out) = server.into_split();
    let progress = Notify::new();
    let unanswered = AtomicUsize::new(0);
    let down = async {
        while let Some(mut frame) = frame(&mut server_in).await {
            let places = frame.windows(named.len()).enumerate().filter(|(_, window)| *window == named);
            for at in places.map(|(at, _)| at + named.len()).collect::<Vec<_>>() {
                frame[at - 4..at].copy_from_slice(&u32::from(own).to_be_bytes());
            }
            let _ = client_out.write_all(&frame).await;
            unanswered.fetch_sub(1, Ordering::SeqCst);
            progress.notify_one();
        }
    };
    let up = async {
        while let Some(frame) = frame(&mut client_in).await {
            unanswered.fetch_add(1, Ordering::SeqCst);
            if server_out.write_all(&frame).await.is_err() {
                return;
            }
        }
        while unanswered.load(Ordering::SeqCst) > 0 {
            progress.notified().await;
        }
    };
    tokio::select! {
        () = down => {}
        () = up => {}
    }
}

/// Length and content.
async fn frame(from: &mut OwnedReadHalf) -> Option<Vec<u8>> {
    let length = from.read_u32().await.ok()?;
    let mut frame = length.to_be_bytes().to_vec();
    frame.resize(4 + length as usize, 0);
    from.read_exact(&mut frame[4..]).await.ok()?;
    Some(frame)
}
