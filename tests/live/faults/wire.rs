//! One connection through a proxy: whole requests one way, whole answers the other, and the faults in between.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};

use socket2::{SockFilter, SockRef, Socket};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::frames::{Answers, Protocol, Request, Requests, Sent};
use super::proxy::Shared;
use super::rules::Fault;

/// A request without an answer yet.
struct Open {
    request: Request,
    fault: Option<Fault>,
}

pub(super) struct Line {
    pub number: u64,
    sockets: [Socket; 2],
    cut: CancellationToken,
    silent: watch::Sender<bool>,
    open: Mutex<VecDeque<Arc<Open>>>,
    to_client: tokio::sync::Mutex<Option<OwnedWriteHalf>>,
}

/// A socket that drops every packet before the kernel has seen it: nothing is acknowledged any more.
pub(super) fn deafen(socket: &Socket) {
    const RETURN_NOTHING: SockFilter = SockFilter::new(0x06, 0, 0, 0);
    socket.attach_filter(&[RETURN_NOTHING]).expect("a filter");
}

pub(super) fn hear(socket: &Socket) {
    let _ = socket.detach_filter();
}

impl Line {
    fn new(number: u64, client: &TcpStream, server: &TcpStream) -> io::Result<Self> {
        Ok(Self {
            number,
            sockets: [SockRef::from(client).try_clone()?, SockRef::from(server).try_clone()?],
            cut: CancellationToken::new(),
            silent: watch::channel(false).0,
            open: Mutex::default(),
            to_client: tokio::sync::Mutex::new(None),
        })
    }

    pub(super) fn cut(&self) {
        self.cut.cancel();
        self.sockets.iter().for_each(|socket| drop(socket.shutdown(std::net::Shutdown::Both)));
    }

    pub(super) fn silence(&self) {
        self.silent.send_replace(true);
        self.sockets.iter().for_each(deafen);
    }

    pub(super) fn restore(&self) {
        self.sockets.iter().for_each(hear);
        self.silent.send_replace(false);
    }

    /// Waits while the connection is silent. None = it is cut.
    async fn audible(&self) -> Option<()> {
        let mut silent = self.silent.subscribe();
        tokio::select! {
            biased;
            () = self.cut.cancelled() => None,
            heard = silent.wait_for(|silent| !silent) => heard.ok().map(drop),
        }
    }

    async fn unless_cut<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.cut.cancelled() => None,
            done = work => Some(done),
        }
    }

    async fn tell_client(&self, bytes: &[u8]) -> Option<()> {
        self.audible().await?;
        let mut out = self.to_client.lock().await;
        self.unless_cut(out.as_mut()?.write_all(bytes)).await?.ok()
    }

    async fn read(&self, from: &mut OwnedReadHalf, buffer: &mut Vec<u8>) -> Option<()> {
        let read = self.unless_cut(from.read_buf(buffer)).await?.ok()?;
        self.audible().await?;
        (read > 0).then_some(())
    }
}

pub(super) async fn serve(client: TcpStream, number: u64, shared: Arc<Shared>) {
    let Ok(server) = TcpStream::connect(&shared.upstream).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let Ok(line) = Line::new(number, &client, &server) else { return };
    let line = Arc::new(line);
    shared.add(&line);
    let (client_in, client_out) = client.into_split();
    let (server_in, server_out) = server.into_split();
    *line.to_client.lock().await = Some(client_out);
    let requests = async {
        let mut server_out = server_out;
        let _ = upward(&line, &shared, client_in, &mut server_out).await;
        drop(server_out);
    };
    let answers = async {
        let _ = downward(&line, &shared, server_in).await;
        line.to_client.lock().await.take();
    };
    tokio::join!(requests, answers);
}

async fn upward(line: &Line, shared: &Shared, mut from: OwnedReadHalf, to: &mut OwnedWriteHalf) -> Option<()> {
    let mut requests = Requests::new(shared.protocol, line.number);
    loop {
        while let Some(sent) = requests.next() {
            match sent {
                Sent::WantsTls => line.tell_client(b"N").await?,
                Sent::Other(bytes) => line.unless_cut(to.write_all(&bytes)).await?.ok()?,
                Sent::Request(request) => request_met(line, shared, request, to).await?,
            }
        }
        line.read(&mut from, &mut requests.buffer).await?;
    }
}

async fn request_met(line: &Line, shared: &Shared, request: Request, to: &mut OwnedWriteHalf) -> Option<()> {
    shared.order.admit(shared.name, line.number, &request);
    let fault = shared.fault(&request);
    match &fault {
        Some(Fault::CutBefore) => {
            line.cut();
            return None;
        }
        Some(Fault::Silence) => line.silence(),
        Some(Fault::Answer(bytes)) => return line.tell_client(bytes).await,
        Some(Fault::Delay(time)) => line.unless_cut(tokio::time::sleep(*time)).await?,
        Some(Fault::Hold(gate)) => line.unless_cut(gate.passed()).await?,
        Some(Fault::Call(run)) => call(run, &request).await,
        Some(
            Fault::LoseAnswer
            | Fault::SwallowAnswer
            | Fault::HalfAnswer
            | Fault::SlowAnswer { .. }
            | Fault::DelayAnswer(_)
            | Fault::HoldAnswer(_)
            | Fault::Replace(_)
            | Fault::Edit(_)
            | Fault::SilenceAnswer
            | Fault::CallAnswer(_),
        )
        | None => {}
    }
    line.audible().await?;
    let bytes = request.bytes.clone();
    line.open.lock().expect("whole").push_back(Arc::new(Open { request, fault }));
    line.unless_cut(to.write_all(&bytes)).await?.ok()
}

async fn call(run: &Arc<dyn Fn(&Request) + Send + Sync>, request: &Request) {
    let (run, request) = (Arc::clone(run), request.clone());
    tokio::task::spawn_blocking(move || run(&request)).await.expect("no panic");
}

async fn downward(line: &Line, shared: &Shared, mut from: OwnedReadHalf) -> Option<()> {
    let mut answers = Answers::new(shared.protocol);
    let mut held = Vec::new();
    loop {
        loop {
            let open = line.open.lock().expect("whole").front().cloned();
            let Some(mut piece) = answers.next(open.as_ref().map(|open| &open.request)) else { break };
            if shared.protocol == Protocol::Kafka {
                shared.keep_here(&mut piece.bytes);
            }
            let waits = open.as_ref().and_then(|open| open.fault.as_ref()).is_some_and(spoils_the_answer);
            if waits {
                held.extend(piece.bytes);
            } else {
                line.tell_client(&piece.bytes).await?;
            }
            if piece.ends
                && let Some(open) = open
            {
                line.open.lock().expect("whole").pop_front();
                if waits && let Some(fault) = &open.fault {
                    answered(line, fault, &open.request, std::mem::take(&mut held)).await?;
                }
            }
        }
        if line.read(&mut from, &mut answers.buffer).await.is_none() {
            // An HTTP answer may end with its connection.
            return line.tell_client(&answers.buffer).await;
        }
    }
}

fn spoils_the_answer(fault: &Fault) -> bool {
    match fault {
        Fault::LoseAnswer
        | Fault::SwallowAnswer
        | Fault::HalfAnswer
        | Fault::SlowAnswer { .. }
        | Fault::DelayAnswer(_)
        | Fault::HoldAnswer(_)
        | Fault::Replace(_)
        | Fault::Edit(_)
        | Fault::SilenceAnswer
        | Fault::CallAnswer(_) => true,
        Fault::CutBefore | Fault::Delay(_) | Fault::Hold(_) | Fault::Answer(_) | Fault::Silence | Fault::Call(_) => {
            false
        }
    }
}

async fn answered(line: &Line, fault: &Fault, request: &Request, answer: Vec<u8>) -> Option<()> {
    match fault {
        Fault::LoseAnswer => {
            line.cut();
            None
        }
        Fault::SwallowAnswer => Some(()),
        Fault::HalfAnswer => {
            line.tell_client(&answer[..answer.len() / 2]).await?;
            // What was written reaches the client before the end does.
            line.to_client.lock().await.take();
            line.cut();
            None
        }
        Fault::SlowAnswer { bytes, every } => {
            for piece in answer.chunks(*bytes) {
                line.tell_client(piece).await?;
                line.unless_cut(tokio::time::sleep(*every)).await?;
            }
            Some(())
        }
        Fault::DelayAnswer(time) => {
            line.unless_cut(tokio::time::sleep(*time)).await?;
            line.tell_client(&answer).await
        }
        Fault::HoldAnswer(gate) => {
            line.unless_cut(gate.passed()).await?;
            line.tell_client(&answer).await
        }
        Fault::Replace(bytes) => line.tell_client(bytes).await,
        Fault::Edit(edit) => line.tell_client(&edit(answer)).await,
        Fault::SilenceAnswer => {
            line.silence();
            line.tell_client(&answer).await
        }
        Fault::CallAnswer(run) => {
            call(run, request).await;
            line.tell_client(&answer).await
        }
        Fault::CutBefore | Fault::Delay(_) | Fault::Hold(_) | Fault::Answer(_) | Fault::Silence | Fault::Call(_) => {
            Some(())
        }
    }
}
