//! `tet serve`: a read-only web server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use hyperslab::{EncryptionKey, Error, OpenOptions, Result};
use hyperslab_serve::{ServeOptions, Server, random_token};

use crate::args::{DemoArgs, ServeArgs};
use crate::{Answer, output, paint};

pub(crate) fn run(args: &ServeArgs) -> Result<Answer> {
    let path = match &args.path {
        Some(path) => path.clone(),
        None => demo()?,
    };
    let server = Server::new(&path, options(args)?)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_name("serve").build();
    let runtime = runtime.map_err(|source| Error::io("server", source))?;
    runtime.block_on(async {
        let address = SocketAddr::new(args.host, args.port);
        let failed = |source| Error::io(address.to_string(), source);
        let listener = tokio::net::TcpListener::bind(address).await.map_err(failed)?;
        let page = server.page_address(listener.local_addr().map_err(failed)?);
        // The reader of the address may close the pipe; the server continues.
        let _ = print_address(&server, &path, &page);
        if args.open {
            open_browser(&page);
        }
        server.serve(listener).await.map_err(failed)
    })?;
    Ok(Answer::Yes)
}

/// The folder of the samples.
fn demo() -> Result<PathBuf> {
    let folder = super::demo::default_folder();
    // The sample that is created last.
    if !folder.join("cells.zv").exists() {
        super::demo::run(&DemoArgs { folder: Some(folder.clone()) })?;
    }
    Ok(folder)
}

fn options(args: &ServeArgs) -> Result<ServeOptions> {
    let mut token = args.token.clone().filter(|token| !token.is_empty());
    if token.is_none() && !args.host.is_loopback() && !args.insecure {
        token = Some(random_token()?);
    }
    let open = OpenOptions::default()
        .with_key(EncryptionKey::from_environment()?)
        .with_remote(super::remote_options(&args.storage)?);
    Ok(ServeOptions::default()
        .with_memory(args.memory << 20)
        .with_timeout(Duration::from_secs(args.timeout))
        .with_token(token)
        .with_cors(args.cors.clone())
        .with_hosts(args.allow_host.clone())
        .with_page(args.page.clone())
        .with_open(open))
}

fn print_address(server: &Server, path: &std::path::Path, page: &str) -> Result<()> {
    let base = page.split('?').next().unwrap_or(page);
    let store = server.only_store().unwrap_or("NAME");
    output::print(|out| {
        writeln!(out, "{} is at {}", paint::strong(hyperslab::location_name(path)), paint::command(page))?;
        writeln!(out, "as Zarr at {base}zarr/{store}")?;
        writeln!(out, "Stop with Ctrl-C.")?;
        out.flush()
    })
}

/// Opens the page with the system's browser. The address was printed, so failing is not an error.
fn open_browser(page: &str) {
    let (program, first): (&str, &[&str]) = match std::env::consts::OS {
        "macos" => ("open", &[]),
        "windows" => ("cmd", &["/C", "start", ""]),
        _ => ("xdg-open", &[]),
    };
    let started =
        Command::new(program).args(first).arg(page).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    drop(started);
}
