//! A TCP proxy in front of one server, on a thread of its own; it ends with its value.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use socket2::{SockRef, Socket};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::frames::{Protocol, Request};
use super::order::Order;
use super::rules::{Armed, Fault, Hit, Rule};
use super::wire::{self, Line};

pub(super) struct Shared {
    pub name: &'static str,
    pub upstream: String,
    pub protocol: Protocol,
    pub order: Order,
    own_port: u16,
    rules: Mutex<Vec<Armed>>,
    lines: Mutex<Vec<Weak<Line>>>,
    refusing: AtomicBool,
    connections: AtomicU64,
}

impl Shared {
    pub(super) fn add(&self, line: &Arc<Line>) {
        let mut lines = self.lines.lock().expect("whole");
        lines.retain(|line| line.strong_count() > 0);
        lines.push(Arc::downgrade(line));
    }

    fn each(&self, act: impl Fn(&Line)) {
        self.lines.lock().expect("whole").iter().filter_map(Weak::upgrade).for_each(|line| act(&line));
    }

    pub(super) fn fault(&self, request: &Request) -> Option<Fault> {
        self.rules.lock().expect("whole").iter().find_map(|armed| armed.meets(request))
    }

    /// A broker names itself in its answers; clients must come back through the proxy.
    pub(super) fn keep_here(&self, frame: &mut [u8]) {
        let Ok(upstream) = self.upstream.parse::<SocketAddr>() else { return };
        let port = |port: u16| u32::from(port).to_be_bytes();
        let wanted = [upstream.ip().to_string().as_bytes(), &port(upstream.port())].concat();
        let places: Vec<usize> =
            frame.windows(wanted.len()).enumerate().filter(|(_, part)| *part == wanted).map(|(at, _)| at).collect();
        for at in places {
            let end = at + wanted.len();
            frame[end - 4..end].copy_from_slice(&port(self.own_port));
        }
    }
}

pub struct Proxy {
    shared: Arc<Shared>,
    address: String,
    path: String,
    listener: Socket,
    _stop: oneshot::Sender<()>,
}

impl Proxy {
    /// In front of `host:port`, or of the server of a PostgreSQL URL. Connections are plain: give the program `sslmode=disable`
    /// or `prefer`.
    pub fn postgres(order: &Order, server: &str) -> Self {
        let server = server.rsplit_once('@').map_or(server, |(_, rest)| rest);
        let server = server.split('/').next().expect("an address");
        Self::start("postgres", Protocol::Postgres, order, server, "")
    }

    /// In front of a Kafka broker, `127.0.0.1:port`.
    pub fn kafka(order: &Order, broker: &str) -> Self {
        Self::start("kafka", Protocol::Kafka, order, broker, "")
    }

    /// In front of `http://host:port/path`.
    pub fn http(order: &Order, url: &str) -> Self {
        let rest = url.strip_prefix("http://").expect("plain http");
        let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        Self::start("http", Protocol::Http, order, host, path)
    }

    fn start(name: &'static str, protocol: Protocol, order: &Order, upstream: &str, path: &str) -> Self {
        let std = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        std.set_nonblocking(true).expect("a listener");
        let address = std.local_addr().expect("an address");
        let listener = SockRef::from(&std).try_clone().expect("a listener");
        let shared = Arc::new(Shared {
            name,
            upstream: upstream.to_owned(),
            protocol,
            order: order.clone(),
            own_port: address.port(),
            rules: Mutex::default(),
            lines: Mutex::default(),
            refusing: AtomicBool::new(false),
            connections: AtomicU64::new(0),
        });
        let (stop, stopped) = oneshot::channel::<()>();
        let serves = Arc::clone(&shared);
        std::thread::Builder::new()
            .name(format!("proxy-{name}"))
            .spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
                runtime.block_on(async move {
                    let listener = TcpListener::from_std(std).expect("a listener");
                    tokio::select! {
                        _ = stopped => {}
                        () = accept(&listener, &serves) => {}
                    }
                });
                runtime.shutdown_timeout(Duration::from_millis(10));
            })
            .expect("a thread");
        Self { shared, address: address.to_string(), path: path.to_owned(), listener, _stop: stop }
    }

    /// `127.0.0.1:port`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The URL of an HTTP server, its path included.
    pub fn url(&self) -> String {
        format!("http://{}{}", self.address, self.path)
    }

    /// A PostgreSQL URL with this proxy as its server.
    pub fn dsn(&self, dsn: &str) -> String {
        let (user, rest) = dsn.rsplit_once('@').expect("a user");
        let path = rest.find('/').map_or("", |at| &rest[at..]);
        format!("{user}@{}{path}", self.address)
    }

    /// Arms a fault; the first armed rule that a request meets decides.
    pub fn rule(&self, rule: Rule, fault: Fault) -> Hit {
        let (armed, hit) = Armed::new(rule, fault);
        self.shared.rules.lock().expect("whole").push(armed);
        hit
    }

    pub fn disarm(&self) {
        self.shared.rules.lock().expect("whole").clear();
    }

    /// Ends every connection; new ones are accepted.
    pub fn cut(&self) {
        self.shared.each(Line::cut);
    }

    /// New connections are closed at once.
    pub fn refuse(&self) {
        self.shared.refusing.store(true, Ordering::SeqCst);
    }

    /// Every connection, and every new one, goes silent: nothing arrives, nothing is acknowledged, nothing is closed.
    pub fn silence(&self) {
        wire::deafen(&self.listener);
        self.shared.each(Line::silence);
    }

    /// Ends `refuse` and `silence`; what is silent and was not cut goes on.
    pub fn restore(&self) {
        self.shared.refusing.store(false, Ordering::SeqCst);
        wire::hear(&self.listener);
        self.shared.each(Line::restore);
    }

    /// Connections so far.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::SeqCst)
    }
}

async fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    loop {
        let Ok((client, _)) = listener.accept().await else { continue };
        let number = shared.connections.fetch_add(1, Ordering::SeqCst) + 1;
        if shared.refusing.load(Ordering::SeqCst) {
            continue;
        }
        tokio::spawn(wire::serve(client, number, Arc::clone(shared)));
    }
}
