//! Tests the server's responses through its router.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::Path;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use hyperslab_serve::{ServeOptions, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tower::ServiceExt;

use common::{folder, get, request, run, send, server, write_npy};

#[test]
fn values_have_lengths_tags_and_ranges() {
    run(async {
        let outer = folder();
        let server = server(&outer, ServeOptions::default());
        let uri = "/data?file=a.npy&path=/&format=bin&selection=1,2:5";
        let answer = get(&server, uri).await;
        assert_eq!((answer.status, answer.floats()), (StatusCode::OK, vec![8.0, 9.0, 10.0]));
        assert_eq!(answer.header(header::CONTENT_LENGTH), "12");
        let tag = answer.header(header::ETAG).to_owned();
        let again =
            send(&server, request(uri).header(header::IF_NONE_MATCH, &tag).body(Body::empty()).unwrap())
                .await;
        assert_eq!((again.status, again.body.len()), (StatusCode::NOT_MODIFIED, 0));
        let part =
            send(&server, request(uri).header(header::RANGE, "bytes=4-7").body(Body::empty()).unwrap()).await;
        assert_eq!((part.status, part.floats()), (StatusCode::PARTIAL_CONTENT, vec![9.0]));
        assert_eq!(part.header(header::CONTENT_RANGE), "bytes 4-7/12");
        let beyond =
            send(&server, request(uri).header(header::RANGE, "bytes=12-").body(Body::empty()).unwrap()).await;
        assert_eq!(beyond.status, StatusCode::RANGE_NOT_SATISFIABLE);
        let head = send(&server, request(uri).method(Method::HEAD).body(Body::empty()).unwrap()).await;
        assert_eq!((head.body.len(), head.header(header::CONTENT_LENGTH)), (0, "12"));
    });
}

#[test]
fn a_file_that_changes_is_read_again() {
    run(async {
        let outer = folder();
        let server = server(&outer, ServeOptions::default());
        let uri = "/data?file=a.npy&path=/&format=bin&selection=0,0:2";
        let before = get(&server, uri).await;
        assert_eq!(before.floats(), [0.0, 1.0]);
        write_npy(&outer.path().join("served/a.npy"), &[4, 6], 100.0);
        let tag = before.header(header::ETAG);
        let after =
            send(&server, request(uri).header(header::IF_NONE_MATCH, tag).body(Body::empty()).unwrap()).await;
        assert_eq!((after.status, after.floats()), (StatusCode::OK, vec![100.0, 101.0]));
        std::fs::remove_file(outer.path().join("served/a.npy")).unwrap();
        assert_eq!(get(&server, uri).await.status, StatusCode::NOT_FOUND);
    });
}

#[test]
fn nothing_outside_the_folder_is_reachable() {
    run(async {
        let outer = folder();
        #[cfg(unix)]
        for (target, link) in [("../secret.npy", "link.npy"), ("..", "up"), ("a.npy", "inner.npy")] {
            std::os::unix::fs::symlink(target, outer.path().join("served").join(link)).unwrap();
        }
        let absolute = outer.path().join("secret.npy").display().to_string();
        let server = server(&outer, ServeOptions::default());
        let names = [
            "../secret.npy",
            "..%2Fsecret.npy",
            "%2e%2e/secret.npy",
            "%2e%2e%2fsecret.npy",
            "sub/../../secret.npy",
            &absolute,
            "link.npy",
            "up/secret.npy",
            "..%5Csecret.npy",
            "a.npy%00",
            "./../secret.npy",
            "....//secret.npy",
            "",
        ];
        for name in names {
            for endpoint in
                ["meta", "attr", "data", "paths", "stats", "api/node", "api/children", "api/table"]
            {
                let answer = get(&server, &format!("/{endpoint}?file={name}&path=/")).await;
                assert!(answer.status.is_client_error(), "{endpoint} {name}: {}", answer.status);
                let told = String::from_utf8_lossy(&answer.body).into_owned();
                assert!(!told.contains(outer.path().to_str().unwrap()), "{endpoint} {name}: {told}");
            }
            for prefix in ["zarr", "zarr-numcodecs", "view"] {
                let answer = get(&server, &format!("/{prefix}/{name}/zarr.json")).await;
                assert!(answer.status.is_client_error(), "{prefix} {name}: {}", answer.status);
            }
        }
        assert_eq!(get(&server, "/meta?file=a.npy&path=/").await.status, StatusCode::OK);
        #[cfg(unix)]
        assert_eq!(get(&server, "/meta?file=inner.npy&path=/").await.status, StatusCode::OK);
        // The listing shows only what can be opened.
        let listed = get(&server, "/api/files").await.json();
        let names: Vec<&str> =
            listed["entries"].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap()).collect();
        assert_eq!(
            names,
            if cfg!(unix) {
                vec!["a.npy", "a.tet", "inner.npy", "sub"]
            } else {
                vec!["a.npy", "a.tet", "sub"]
            }
        );
        assert!(get(&server, "/api/files?folder=..").await.status.is_client_error());
    });
}

#[cfg(unix)]
#[test]
fn links_inside_a_directory_store_do_not_lead_out() {
    run(async {
        let outer = folder();
        let store = outer.path().join("served/sub/a.zarr");
        let document = walk(&store).into_iter().find(|path| path.ends_with("zarr.json")).unwrap();
        std::fs::copy(&document, outer.path().join("copy.json")).unwrap();
        let server = server(&outer, ServeOptions::default());
        assert_eq!(get(&server, "/meta?file=sub/a.zarr&path=/").await.status, StatusCode::OK);
        std::fs::remove_file(store.join("zarr.json")).unwrap();
        std::os::unix::fs::symlink(outer.path().join("copy.json"), store.join("zarr.json")).unwrap();
        let fresh = self::server(&outer, ServeOptions::default());
        assert!(get(&fresh, "/meta?file=sub/a.zarr&path=/").await.status.is_client_error());
    });
}

#[cfg(unix)]
fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn wrong_hosts_tokens_and_origins_are_rejected() {
    run(async {
        let outer = folder();
        let options = ServeOptions::default()
            .with_token("0123456789abcdef".to_owned())
            .with_cors(vec!["https://example.org".into()])
            .with_hosts(vec!["data.example".into()]);
        let server = server(&outer, options);
        let ask = |host: &str, extra: Option<(header::HeaderName, &str)>, uri: &str| {
            let mut request = Request::builder().uri(uri).header(header::HOST, host);
            if let Some((name, value)) = extra {
                request = request.header(name, value);
            }
            request.body(Body::empty()).unwrap()
        };
        let bearer = Some((header::AUTHORIZATION, "Bearer 0123456789abcdef"));
        let uri = "/meta?file=a.npy&path=/";
        for host in
            ["localhost", "127.0.0.1:8642", "[::1]:8642", "192.168.1.5", "data.example:80", "x.localhost"]
        {
            assert_eq!(send(&server, ask(host, bearer.clone(), uri)).await.status, StatusCode::OK, "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", ""] {
            let status = send(&server, ask(host, bearer.clone(), uri)).await.status;
            assert_eq!(status, StatusCode::MISDIRECTED_REQUEST, "{host}");
        }
        let nameless = Request::builder().uri(uri).body(Body::empty()).unwrap();
        assert_eq!(send(&server, nameless).await.status, StatusCode::MISDIRECTED_REQUEST);
        for wrong in [
            None,
            Some((header::AUTHORIZATION, "Bearer 0123456789abcdeX")),
            Some((header::COOKIE, "hyperslab_token=")),
        ] {
            assert_eq!(send(&server, ask("localhost", wrong, uri)).await.status, StatusCode::UNAUTHORIZED);
        }
        for path in ["/", "/view/", "/view/app.js", "/zarr/a.npy/zarr.json", "/api/files", "/nothing"] {
            assert_eq!(
                send(&server, ask("localhost", None, path)).await.status,
                StatusCode::UNAUTHORIZED,
                "{path}"
            );
        }
        let cookie = Some((header::COOKIE, "other=1; hyperslab_token=0123456789abcdef"));
        assert_eq!(send(&server, ask("localhost", cookie, uri)).await.status, StatusCode::OK);
        let page = ask("localhost", Some((header::ACCEPT, "text/html")), "/?token=0123456789abcdef&x=1");
        let page = send(&server, page).await;
        assert_eq!((page.status, page.header(header::LOCATION)), (StatusCode::SEE_OTHER, "/?x=1"));
        assert!(page.header(header::SET_COOKIE).contains("HttpOnly; SameSite=Strict"));
        // A disallowed origin gets no CORS headers; an allowed one may read.
        let token = "/meta?file=a.npy&path=/&token=0123456789abcdef";
        let other =
            send(&server, ask("localhost", Some((header::ORIGIN, "https://evil.example")), token)).await;
        assert_eq!(other.header(header::ACCESS_CONTROL_ALLOW_ORIGIN), "");
        let own = send(&server, ask("localhost", Some((header::ORIGIN, "https://example.org")), token)).await;
        assert_eq!(own.header(header::ACCESS_CONTROL_ALLOW_ORIGIN), "https://example.org");
    });
}

#[test]
fn requests_that_are_too_large_are_rejected() {
    run(async {
        let outer = folder();
        write_npy(&outer.path().join("served/large.npy"), &[3000, 1000], 0.0);
        let server = server(&outer, ServeOptions::default().with_memory(16 << 20));
        let long = format!("/meta?file=a.npy&path=/{}", "x".repeat(20_000));
        assert_eq!(get(&server, &long).await.status, StatusCode::URI_TOO_LONG);
        for method in [Method::POST, Method::PUT, Method::DELETE] {
            let request = request("/meta?file=a.npy").method(method).body(Body::from(vec![0; 1000])).unwrap();
            assert_eq!(send(&server, request).await.status, StatusCode::METHOD_NOT_ALLOWED);
        }
        let whole = get(&server, "/data?file=large.npy&path=/").await;
        assert_eq!(whole.status, StatusCode::PAYLOAD_TOO_LARGE);
        assert!(whole.json()["message"].as_str().unwrap().contains("select less"));
        let part = get(&server, "/data?file=large.npy&path=/&selection=0:3,0:2").await;
        assert_eq!(part.json(), serde_json::json!([[0.0, 1.0], [1000.0, 1001.0], [2000.0, 2001.0]]));
        for wrong in
            ["selection=a", "selection=0,0,0", "selection=9999", "format=x", "dtype=x", "flatten=maybe"]
        {
            let answer = get(&server, &format!("/data?file=a.npy&path=/&{wrong}")).await;
            assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{wrong}");
        }
    });
}

#[test]
fn large_answers_stream_with_their_length() {
    run(async {
        let outer = folder();
        write_npy(&outer.path().join("served/large.npy"), &[3000, 1000], 0.0);
        // The memory limit is far below the size of the response.
        let server = server(&outer, ServeOptions::default().with_memory(256 << 20));
        let answer = get(&server, "/data?file=large.npy&path=/&format=bin").await;
        assert_eq!(answer.header(header::CONTENT_LENGTH), "12000000");
        assert!(answer.floats().into_iter().eq((0..3_000_000).map(|i| i as f32)));
        let saved = get(&server, "/data?file=large.npy&path=/&format=npy").await;
        assert_eq!(saved.header(header::CONTENT_LENGTH), saved.body.len().to_string());
        assert!(saved.header(header::CONTENT_DISPOSITION).contains("data.npy"));
        assert!(saved.body.ends_with(&answer.body));
    });
}

#[test]
fn every_store_is_a_zarr_store() {
    run(async {
        let outer = folder();
        let server = server(&outer, ServeOptions::default());
        for (store, array) in [("a.tet", "data"), ("sub/a.zarr", "data")] {
            let root = get(&server, &format!("/zarr/{store}/zarr.json")).await.json();
            // A single array may be at the root or in a group.
            let (document, place) = match root["consolidated_metadata"]["metadata"].as_object() {
                Some(below) => (below[array].clone(), format!("{store}/{array}")),
                None => (root.clone(), store.to_owned()),
            };
            assert_eq!(document["shape"], serde_json::json!([4, 6]), "{store}");
            let chunk = get(&server, &format!("/zarr/{place}/c/0/0")).await;
            assert_eq!(chunk.status, StatusCode::OK, "{store}");
            for missing in ["c/9/9", "c/0", "c/0/0/0", "c/00/0", "c/-1/0", "x/zarr.json", "zarr.json/x"] {
                let status = get(&server, &format!("/zarr/{place}/{missing}")).await.status;
                assert_eq!(status, StatusCode::NOT_FOUND, "{store} {missing}");
            }
        }
    });
}

#[test]
fn pages_are_served_with_a_policy() {
    run(async {
        let outer = folder();
        let server = server(&outer, ServeOptions::default());
        assert_eq!(get(&server, "/").await.body, b"ok");
        let page = get(&server, "/view/").await;
        assert_eq!(page.header(header::CONTENT_TYPE), "text/html; charset=utf-8");
        assert!(page.header(header::CONTENT_SECURITY_POLICY).contains("script-src 'self'"));
        for name in ["app.js", "style.css", "tree.js", "geometry.js"] {
            assert_eq!(get(&server, &format!("/view/{name}")).await.status, StatusCode::OK, "{name}");
        }
        for name in ["/view/../Cargo.toml", "/view/%2e%2e/Cargo.toml", "/index.html", "/etc/passwd"] {
            assert_eq!(get(&server, name).await.status, StatusCode::NOT_FOUND, "{name}");
        }
    });
}

#[test]
fn a_disconnected_client_frees_its_thread() {
    run(async {
        let outer = folder();
        write_npy(&outer.path().join("served/large.npy"), &[3000, 1000], 0.0);
        let options = ServeOptions::default().with_workers(1).with_timeout(Duration::from_secs(30));
        let server = server(&outer, options);
        for _ in 0..3 {
            // The only thread works on a response of many blocks, none of which the client reads.
            let uri = "/data?file=large.npy&path=/&format=bin";
            let response = server.router().oneshot(request(uri).body(Body::empty()).unwrap()).await.unwrap();
            assert_eq!(response.status(), StatusCode::OK);
            drop(response);
            let after = get(&server, "/data?file=a.npy&path=/&format=bin&selection=0,0:2").await;
            assert_eq!((after.status, after.floats()), (StatusCode::OK, vec![0.0, 1.0]));
        }
    });
}

#[test]
fn stalled_readers_do_not_block_others() {
    run(async {
        let outer = folder();
        write_npy(&outer.path().join("served/large.npy"), &[3000, 1000], 0.0);
        let options = ServeOptions::default().with_workers(1).with_timeout(Duration::from_secs(30));
        let server = server(&outer, options);
        let mut stalled = Vec::new();
        for _ in 0..3 {
            let uri = "/data?file=large.npy&path=/&format=bin";
            let response = server.router().oneshot(request(uri).body(Body::empty()).unwrap()).await.unwrap();
            assert_eq!(response.status(), StatusCode::OK);
            stalled.push(response);
            let after = get(&server, "/data?file=a.npy&path=/&format=bin&selection=0,0:2").await;
            assert_eq!((after.status, after.floats()), (StatusCode::OK, vec![0.0, 1.0]));
        }
        // The stalled clients can still read their responses.
        for response in stalled {
            let body = response.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(body.len(), 12_000_000);
        }
    });
}

/// Starts a server on a port and connects to it with a small buffer.
async fn connected(server: Server) -> (tokio::net::TcpStream, std::net::SocketAddr) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(server.serve(listener));
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    (socket.connect(address).await.unwrap(), address)
}

#[test]
fn slow_clients_are_disconnected() {
    run(async {
        let outer = folder();
        write_npy(&outer.path().join("served/large.npy"), &[3000, 1000], 0.0);
        let options = ServeOptions::default()
            .with_connections(1)
            .with_timeout(Duration::from_secs(1))
            .with_header_timeout(Duration::from_millis(300));
        let (mut half, address) = connected(server(&outer, options)).await;
        let mut answer = Vec::new();
        half.write_all(b"GET /api/about HTTP/1.1\r\nHost: loc").await.unwrap();
        // The only connection is closed, so that the next client is served.
        let _ = half.read_to_end(&mut answer).await;
        assert!(!answer.starts_with(b"HTTP/1.1 200"));
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let mut slow = socket.connect(address).await.unwrap();
        let uri = "/data?file=large.npy&path=/&format=bin";
        slow.write_all(format!("GET {uri} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).await.unwrap();
        // A client that reads nothing keeps the connection only for a limited time.
        let mut next = tokio::net::TcpStream::connect(address).await.unwrap();
        next.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        next.read_to_end(&mut answer).await.unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
        let mut sent = Vec::new();
        let _ = slow.read_to_end(&mut sent).await;
        assert!(sent.len() < 12_000_000);
    });
}

#[test]
fn a_range_of_another_version_gives_the_whole_body() {
    run(async {
        let outer = folder();
        let server = server(&outer, ServeOptions::default());
        let uri = "/data?file=a.npy&path=/&format=bin&selection=1,2:5";
        let tag = get(&server, uri).await.header(header::ETAG).to_owned();
        for (version, status) in [
            (tag.as_str(), StatusCode::PARTIAL_CONTENT),
            ("\"other\"", StatusCode::OK),
            ("Tue, 01 Jan 2030 00:00:00 GMT", StatusCode::OK),
        ] {
            let request = request(uri).header(header::RANGE, "bytes=4-7").header(header::IF_RANGE, version);
            let answer = send(&server, request.body(Body::empty()).unwrap()).await;
            let expected = if status == StatusCode::OK { vec![8.0, 9.0, 10.0] } else { vec![9.0] };
            assert_eq!((answer.status, answer.floats()), (status, expected), "{version}");
        }
    });
}

/// An array of 2^62 cells, of which one chunk of four is written.
#[test]
fn statistics_of_unwritten_cells_cost_nothing() {
    run(async {
        let outer = folder();
        let array = outer.path().join("served/huge.zarr");
        std::fs::create_dir_all(array.join("c")).unwrap();
        let document = serde_json::json!({
            "zarr_format": 3, "node_type": "array", "shape": [1_u64 << 62], "data_type": "int16", "fill_value": -3,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        });
        std::fs::write(array.join("zarr.json"), document.to_string()).unwrap();
        let cells: Vec<u8> = [5_i16, 900, 0, 1].iter().flat_map(|cell| cell.to_le_bytes()).collect();
        std::fs::write(array.join("c/1000000"), cells).unwrap();
        let server = server(&outer, ServeOptions::default());
        let stats = get(&server, "/stats?file=huge.zarr&path=/").await.json();
        assert_eq!((stats["min"].as_i64(), stats["max"].as_i64()), (Some(-3), Some(900)), "{stats}");
        assert_eq!(
            (&stats["strict_positive_min"], &stats["positive_min"]),
            (&1.into(), &0.into()),
            "{stats}"
        );
        assert!(stats["std"].as_f64().unwrap() < 1.0, "{stats}");
    });
}

#[test]
fn a_root_array_is_shown_as_a_group_member() {
    run(async {
        let outer = folder();
        let server = server(&outer, ServeOptions::default());
        let root = get(&server, "/meta?file=a.npy&path=/").await.json();
        assert_eq!((&root["kind"], &root["children"][0]["name"]), (&"group".into(), &"data".into()));
        assert_eq!(root["children"][0]["shape"], serde_json::json!([4, 6]));
        let alone = get(&server, "/meta?file=a.npy&path=/data").await.json();
        assert_eq!((&alone["kind"], &alone["name"]), (&"dataset".into(), &"data".into()));
        assert_eq!(get(&server, "/paths?file=a.npy").await.json(), serde_json::json!(["/", "/data"]));
        assert_eq!(get(&server, "/attr?file=a.npy&path=/data").await.json(), serde_json::json!({}));
        for path in ["/data", "/"] {
            let values = get(&server, &format!("/data?file=a.npy&path={path}&selection=0,1:3")).await.json();
            assert_eq!(values, serde_json::json!([1.0, 2.0]));
            assert_eq!(get(&server, &format!("/stats?file=a.npy&path={path}")).await.json()["max"], 23.0);
        }
        for missing in ["/x", "/data/x"] {
            assert_eq!(
                get(&server, &format!("/meta?file=a.npy&path={missing}")).await.status,
                StatusCode::NOT_FOUND
            );
        }
    });
}

#[test]
fn invalid_options_prevent_the_start() {
    let outer = folder();
    let no_store = outer.path().join("text");
    std::fs::write(&no_store, "root:x:0:0").unwrap();
    assert!(Server::new(&no_store, ServeOptions::default()).is_err());
    let served = outer.path().join("served");
    for (options, words) in [
        (ServeOptions::default().with_page(outer.path().join("missing")), "index.html is missing"),
        (ServeOptions::default().with_page(served.clone()), "index.html is missing"),
        (ServeOptions::default().with_cors(vec!["notanorigin".into()]), "not an origin"),
    ] {
        let error = Server::new(&served, options).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    run(async {
        let server = server(&outer, ServeOptions::default());
        let twice = request("/").header(header::HOST, "evil.example").body(Body::empty()).unwrap();
        assert_eq!(send(&server, twice).await.status, StatusCode::BAD_REQUEST);
    });
}
