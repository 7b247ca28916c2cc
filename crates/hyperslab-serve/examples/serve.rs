//! Serves a location on a port of this machine: `serve PATH [PORT] [PAGE]`.

use std::path::Path;

use hyperslab_serve::{ServeOptions, Server};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let path = words.first().ok_or("serve PATH [PORT] [PAGE]")?;
    let port: u16 = words.get(1).map_or(Ok(0), |port| port.parse())?;
    let options = ServeOptions::default().with_page(words.get(2).map(Into::into));
    let server = Server::new(Path::new(path), options)?;
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
        println!("{path} is at http://{}/", listener.local_addr()?);
        server.serve(listener).await
    })?;
    Ok(())
}
