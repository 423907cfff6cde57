//! The harness against a small server of its own: each fault does what it says, so that a test that uses it can fail.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use super::{Fault, Gate, Moments, Order, Proxy, answer, every, first, nth};

const LONG: Duration = Duration::from_secs(10);

/// Answers every request with its number and request line.
fn server(order: &Order) -> Proxy {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/base", listener.local_addr().unwrap());
    let seen = order.clone();
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let seen = seen.clone();
            std::thread::spawn(move || {
                let mut chunk = [0; 65536];
                let mut got = Vec::new();
                while let Ok(length @ 1..) = client.read(&mut chunk) {
                    got.extend_from_slice(&chunk[..length]);
                    while let Some(end) = got.windows(4).position(|part| part == b"\r\n\r\n") {
                        let head = String::from_utf8(got.drain(..end + 4).collect()).unwrap();
                        let line = head.lines().next().unwrap().to_owned();
                        seen.mark(&format!("served {line}"));
                        let _ = client.write_all(&answer("200 OK", &[], &format!("you said {line}")));
                    }
                }
            });
        }
    });
    Proxy::http(order, &url)
}

/// What one request on a connection of its own gets until the other side closes or says nothing more.
fn ask(proxy: &Proxy, line: &str) -> String {
    let mut stream = TcpStream::connect(proxy.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(700))).unwrap();
    stream.write_all(format!("{line} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n").as_bytes()).unwrap();
    let (mut got, mut chunk) = (Vec::new(), [0; 4096]);
    while let Ok(length @ 1..) = stream.read(&mut chunk) {
        got.extend_from_slice(&chunk[..length]);
    }
    String::from_utf8(got).unwrap()
}

fn served(order: &Order) -> usize {
    order.records().iter().filter(|record| record.what.starts_with("served")).count()
}

#[test]
fn every_fault_of_the_harness_does_what_it_says() {
    let order = Order::default();
    let proxy = server(&order);
    assert_eq!(proxy.url(), format!("http://{}/base", proxy.address()));
    let whole = ask(&proxy, "GET /base/a");
    assert!(whole.ends_with("you said GET /base/a HTTP/1.1"), "{whole}");

    let before = proxy.rule(first(|request| request.what == "POST /cut"), Fault::CutBefore);
    assert_eq!((ask(&proxy, "POST /cut"), served(&order)), (String::new(), 1), "it never arrived");
    proxy.rule(first(|request| request.what == "POST /lose"), Fault::LoseAnswer);
    assert_eq!((ask(&proxy, "POST /lose"), served(&order)), (String::new(), 2), "it arrived, its answer did not");
    proxy.rule(first(|request| request.what == "POST /swallow"), Fault::SwallowAnswer);
    assert_eq!((ask(&proxy, "POST /swallow"), served(&order)), (String::new(), 3));
    proxy.rule(first(|request| request.what == "GET /half"), Fault::HalfAnswer);
    let half = ask(&proxy, "GET /half");
    assert!(half.starts_with("HTTP/1.1 200") && !half.contains("/half"), "{half}");
    proxy.rule(
        first(|request| request.what == "GET /moved"),
        Fault::Answer(answer("302 Found", &[("Location", "/x")], "")),
    );
    assert!(ask(&proxy, "GET /moved").contains("Location: /x"));
    assert_eq!(served(&order), 4, "the server never saw the one that the proxy answered");
    proxy.rule(first(|request| request.what == "GET /other"), Fault::Replace(answer("500 Oops", &[], "")));
    assert!(ask(&proxy, "GET /other").starts_with("HTTP/1.1 500"));
    assert_eq!(served(&order), 5);
    proxy.rule(nth(2, |request| request.what == "GET /second"), Fault::CutBefore);
    let second: Vec<bool> = (0..3).map(|_| ask(&proxy, "GET /second").is_empty()).collect();
    assert_eq!(second, [false, true, false]);
    assert_eq!((before.count(), before.hit(Duration::ZERO)), (1, true));
    let changes: Vec<String> = order.mutations().into_iter().map(|record| record.what).collect();
    assert_eq!(changes, ["POST /cut", "POST /lose", "POST /swallow"], "what changes something, in its order");
}

#[test]
fn a_held_request_waits_for_its_gate_and_a_slow_answer_comes_whole() {
    let order = Order::default();
    let proxy = server(&order);
    let gate = Gate::default();
    let held = proxy.rule(first(|request| request.what == "PUT /held"), Fault::Hold(gate.clone()));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut stream = TcpStream::connect(proxy.address()).unwrap();
            stream.write_all(b"PUT /held HTTP/1.1\r\ncontent-length: 2\r\n\r\nhi").unwrap();
            let mut got = [0; 12];
            stream.read_exact(&mut got).unwrap();
            assert_eq!(&got, b"HTTP/1.1 200");
        });
        assert!(held.hit(LONG));
        order.mark("opened");
        gate.open();
        assert!(order.wait(LONG, |record| record.what.starts_with("served PUT")).is_some());
    });
    let at = |what: &str| order.records().iter().position(|record| record.what.starts_with(what)).unwrap();
    assert!(at("PUT /held") < at("opened") && at("opened") < at("served PUT"), "{:?}", order.records());
    let slow = Fault::SlowAnswer { bytes: 5, every: Duration::from_millis(5) };
    proxy.rule(every(|request| request.what == "GET /slow"), slow);
    assert!(ask(&proxy, "GET /slow").ends_with("GET /slow HTTP/1.1"));
}

#[test]
fn a_link_is_cut_refused_silenced_and_restored() {
    let order = Order::default();
    let proxy = server(&order);
    proxy.refuse();
    assert!(TcpStream::connect(proxy.address()).is_ok_and(|mut stream| stream.read(&mut [0]).unwrap_or(0) == 0));
    proxy.restore();
    assert!(!ask(&proxy, "GET /a").is_empty());

    let mut stream = TcpStream::connect(proxy.address()).unwrap();
    let wait = || order.wait(LONG, |record| record.what == "GET /b").is_some();
    stream.write_all(b"GET /b HTTP/1.1\r\n\r\n").unwrap();
    assert!(wait());
    let mut got = [0; 12];
    stream.read_exact(&mut got).unwrap();
    proxy.silence();
    let begun = served(&order);
    stream.write_all(b"GET /c HTTP/1.1\r\n\r\n").unwrap();
    let new = TcpStream::connect_timeout(&proxy.address().parse().unwrap(), Duration::from_millis(300));
    assert!(new.is_err(), "not even the kernel answers");
    assert_eq!(served(&order), begun);
    proxy.restore();
    assert!(
        order.wait(LONG, |record| record.what.starts_with("served GET /c")).is_some(),
        "what was sent comes through"
    );
    proxy.cut();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(ask(&proxy, "GET /d").contains("/d"));
}

#[test]
fn moments_are_drawn_again_from_their_seed() {
    let mut moments = Moments::new("itself");
    let drawn: Vec<u64> = (0..100).map(|_| moments.below(10)).collect();
    assert!((0..10).all(|value| drawn.contains(&value)), "{drawn:?}");
    assert!((0..100).all(|_| moments.within(Duration::from_millis(3)) < Duration::from_millis(3)));
}
