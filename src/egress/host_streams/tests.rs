use tokio::net::TcpListener;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::*;

/// Two ends that hear each other; the second one dials a port for each stream that is opened.
fn pair(server: u16) -> (Arc<HostStreams>, Arc<HostStreams>, JoinHandle<()>) {
    let (to_controller, mut opened) = mpsc::channel(16);
    let (to_gateway, mut answered) = mpsc::channel(16);
    let gateway = HostStreams::new(to_controller);
    let controller = HostStreams::new(to_gateway);
    let ends = (Arc::clone(&gateway), Arc::clone(&controller));
    let hearing = tokio::spawn(async move {
        loop {
            tokio::select! {
                Some(frame) = answered.recv() => gateway.hear(frame),
                Some(frame) = opened.recv() => match frame.part {
                    EgressHostPart::Open { port } => dial(&controller, frame.stream, port, server),
                    _ => controller.hear(frame),
                },
            }
        }
    });
    (ends.0, ends.1, hearing)
}

fn dial(controller: &Arc<HostStreams>, id: u32, port: u16, server: u16) {
    let Some(stream) = controller.accept(id, port) else {
        return;
    };
    tokio::spawn(async move {
        match TcpStream::connect(("127.0.0.1", server)).await {
            Ok(connected) => {
                stream.opened().await;
                stream.carry(connected).await;
            }
            Err(error) => stream.refuse(error.to_string()),
        }
    });
}

/// Sends back what comes, and ends when that ends.
async fn echo() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("its address").port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = stream.split();
                drop(tokio::io::copy(&mut from, &mut to).await);
                drop(to.shutdown().await);
            });
        }
    });
    port
}

async fn until(what: impl Fn() -> bool) {
    let waiting = async {
        while !what() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting)
        .await
        .expect("in time");
}

#[tokio::test]
async fn bytes_go_both_ways_and_the_end_of_one_is_not_that_of_the_other() {
    let (gateway, controller, _hearing) = pair(echo().await);
    let mut stream = gateway.open(5432).await.expect("a connection");
    let sent: Vec<u8> = (0..1024 * 1024_u32).map(|n| (n % 251) as u8).collect();
    let (mut from, mut to) = tokio::io::split(&mut stream);
    let ((), seen) = tokio::join!(
        async {
            to.write_all(&sent).await.expect("sent");
            to.shutdown().await.expect("ended");
        },
        async {
            let mut seen = Vec::new();
            from.read_to_end(&mut seen).await.expect("an end");
            seen
        }
    );
    assert!(seen == sent, "{} of {}", seen.len(), sent.len());
    until(|| gateway.lock().is_empty() && controller.lock().is_empty()).await;
}

#[tokio::test]
async fn a_stream_that_nobody_reads_holds_a_window_and_stops_no_other_one() {
    let (gateway, controller, _hearing) = pair(echo().await);
    let mut stuck = gateway.open(1).await.expect("a connection");
    let filling = async {
        loop {
            stuck.write_all(&[7; HOST_CHUNK]).await.expect("it is open");
        }
    };
    // The echo of it fills what is there in both directions.
    drop(tokio::time::timeout(Duration::from_millis(500), filling).await);
    for entry in controller.lock().values().chain(gateway.lock().values()) {
        assert!(entry.window.held.load(Ordering::Relaxed) <= HOST_WINDOW);
    }
    let mut other = gateway.open(2).await.expect("a connection");
    other.write_all(b"hello").await.expect("sent");
    let mut seen = [0; 5];
    other.read_exact(&mut seen).await.expect("an echo");
    assert_eq!(&seen, b"hello");
}

#[tokio::test]
async fn what_is_allowed_no_more_is_closed_at_both_ends() {
    let (gateway, controller, _hearing) = pair(echo().await);
    let mut one = gateway.open(1).await.expect("a connection");
    let mut two = gateway.open(2).await.expect("a connection");
    controller.retain(|port| port == 2);
    assert_eq!(one.read(&mut [0]).await.expect("an end"), 0);
    two.write_all(b"x").await.expect("sent");
    assert_eq!(two.read(&mut [0]).await.expect("an echo"), 1);
    until(|| gateway.lock().len() == 1 && controller.lock().len() == 1).await;
}

#[tokio::test]
async fn a_port_at_which_nothing_listens_is_refused_with_the_reason() {
    let port = {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        listener.local_addr().expect("its address").port()
    };
    let (gateway, _, _hearing) = pair(port);
    let refused = gateway.open(port).await.expect_err("nothing listens");
    assert!(refused.contains("refused"), "{refused}");
}

#[tokio::test]
async fn streams_have_a_bound_and_one_that_sends_too_much_is_closed() {
    let (gateway, controller, _hearing) = pair(echo().await);
    let mut open = Vec::new();
    for _ in 0..HOST_STREAMS {
        open.push(gateway.open(1).await.expect("a connection"));
    }
    let refused = gateway.open(1).await.expect_err("there are too many");
    assert!(refused.contains("the most"), "{refused}");
    let big = |stream| EgressHostFrame {
        stream,
        part: EgressHostPart::Data {
            data: Data(vec![0; HOST_CHUNK + 1]),
        },
    };
    controller.hear(big(0));
    assert_eq!(open[0].read(&mut [0]).await.expect("an end"), 0);
    // Nor does credit add up to more than a window.
    for _ in 0..10 {
        controller.hear(EgressHostFrame {
            stream: 1,
            part: EgressHostPart::Credit { bytes: u32::MAX },
        });
    }
    let window = Arc::clone(&controller.lock()[&1].window);
    assert!(window.credit.available_permits() <= HOST_WINDOW as usize);
}
