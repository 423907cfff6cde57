//! Whether a connection ends at the server process that answers it. A server announces its process when it takes a connection; a
//! pooler announces a number of its own, and then lets another process answer. The driver gives the announced number to a
//! cancel request alone, so one is written to memory and read back; none is ever sent.

use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf};
use tokio_postgres::Client;
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};

use crate::state::error::StateError;

/// `SSLRequest` of the protocol; a cancel request begins with a code of its own.
const SSL_REQUEST: i32 = 80_877_103;
const CANCEL_REQUEST: i32 = 80_877_102;

/// E420 unless the process `answering` is the one that took the connection.
pub async fn check(client: &Client, answering: i32) -> Result<(), StateError> {
    if announced(client).await == Some(answering) {
        return Ok(());
    }
    Err(StateError::unavailable("another process answers than the one that took the connection")
        .suggest("connect to the server directly, not through a pooler: the lock belongs to one physical connection"))
}

async fn announced(client: &Client) -> Option<i32> {
    let (ours, theirs) = tokio::io::duplex(64);
    let request = client.cancel_token();
    let (_, read) = tokio::join!(request.cancel_query_raw(ours, Memory), read(theirs));
    read.ok()
}

async fn read(mut stream: DuplexStream) -> io::Result<i32> {
    let mut code = head(&mut stream).await?;
    if code == SSL_REQUEST {
        stream.write_all(b"S").await?;
        code = head(&mut stream).await?;
    }
    if code != CANCEL_REQUEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let process = stream.read_i32().await?;
    stream.read_i32().await?;
    Ok(process)
}

async fn head(stream: &mut DuplexStream) -> io::Result<i32> {
    stream.read_i32().await?;
    stream.read_i32().await
}

/// What stands for TLS where nothing leaves the process.
struct Memory;

struct MemoryStream(DuplexStream);

impl TlsConnect<DuplexStream> for Memory {
    type Stream = MemoryStream;
    type Error = io::Error;
    type Future = Ready<io::Result<MemoryStream>>;

    fn connect(self, stream: DuplexStream) -> Self::Future {
        ready(Ok(MemoryStream(stream)))
    }
}

impl TlsStream for MemoryStream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for MemoryStream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_read(context, buf)
    }
}

impl AsyncWrite for MemoryStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_shutdown(context)
    }
}
