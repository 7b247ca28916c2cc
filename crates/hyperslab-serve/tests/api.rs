//! The API of the built-in page: files, members, decoded values; and access with a token.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use hyperslab_serve::ServeOptions;
use serde_json::json;

use common::{folder, get, packed, run, send, server};

#[test]
fn packed_values_are_decoded_for_the_page() {
    run(async {
        let outer = folder();
        packed(&outer.path().join("served/p.nc"));
        let server = server(&outer, ServeOptions::default());
        let node = get(&server, "/api/node?file=p.nc&path=/t").await.json();
        assert_eq!((&node["dtype"], &node["decoded"]), (&json!("int16"), &json!("float64")));
        assert_eq!(get(&server, "/api/node?file=p.nc&path=/ids").await.json().get("decoded"), None);
        let bytes =
            get(&server, "/api/data?file=p.nc&path=/t&format=bin&dtype=safe&selection=0:3").await.body;
        let values: Vec<f64> =
            bytes.chunks_exact(8).map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap())).collect();
        assert!((values[0] - 270.0).abs() < 1e-9 && values[1].is_nan(), "{values:?}");
        let stored = get(&server, "/data?file=p.nc&path=/t").await.json();
        assert_eq!(stored, json!([-315, -999, 5]));
    });
}

#[test]
fn dimensions_without_a_variable_are_no_members() {
    run(async {
        let outer = folder();
        packed(&outer.path().join("served/p.nc"));
        let server = server(&outer, ServeOptions::default());
        let (mut names, mut offset) = (Vec::new(), 0);
        loop {
            let told = get(&server, &format!("/api/children?file=p.nc&offset={offset}&limit=2")).await.json();
            let members = told["members"].as_array().unwrap();
            names.extend(members.iter().map(|member| member["name"].as_str().unwrap().to_owned()));
            offset = told["next"].as_u64().unwrap();
            if told["next"] == told["total"] {
                break;
            }
        }
        names.sort();
        assert_eq!(names, ["ids", "t"]);
        let document = get(&server, "/zarr/p.nc/zarr.json").await.json();
        let metadata = document["consolidated_metadata"]["metadata"].as_object().unwrap();
        assert_eq!(metadata.keys().collect::<Vec<_>>(), ["ids", "t"]);
        assert_eq!(metadata["t"]["dimension_names"], json!(["x"]));
        assert_eq!(get(&server, "/zarr/p.nc/x/zarr.json").await.status, StatusCode::NOT_FOUND);
    });
}

#[test]
fn all_files_of_a_large_folder_are_listed() {
    run(async {
        let outer = folder();
        let inner = outer.path().join("served");
        for number in 0..2050 {
            std::fs::copy(inner.join("a.npy"), inner.join(format!("sub/{number:04}.npy"))).unwrap();
        }
        let server = server(&outer, ServeOptions::default());
        let first = get(&server, "/api/files?folder=sub").await.json();
        let rest = get(&server, &format!("/api/files?folder=sub&offset={}", first["next"])).await.json();
        assert_eq!(rest["next"], json!(null));
        let entries = first["entries"].as_array().unwrap().iter().chain(rest["entries"].as_array().unwrap());
        let names: Vec<&str> = entries.map(|entry| entry["name"].as_str().unwrap()).collect();
        assert_eq!((names.len(), names[0], names[2050]), (2051, "0000.npy", "a.zarr"));
        for wrong in ["a.npy", "a.tet", "none"] {
            let status = get(&server, &format!("/api/files?folder={wrong}")).await.status;
            assert_eq!(status, StatusCode::NOT_FOUND, "{wrong}");
        }
    });
}

#[test]
fn tokens_may_have_any_characters() {
    run(async {
        let outer = folder();
        let token = "a b+c&d;e=t\u{f6}k";
        let server = server(&outer, ServeOptions::default().with_token(token.to_owned()));
        let page = server.page_address("0.0.0.0:8642".parse().unwrap());
        let uri = page.strip_prefix("http://localhost:8642").unwrap();
        let ask = |host: &str, name: header::HeaderName, value: &[u8], uri: &str| {
            let value = axum::http::HeaderValue::from_bytes(value).unwrap();
            Request::builder()
                .uri(uri)
                .header(header::HOST, host)
                .header(name, value)
                .body(Body::empty())
                .unwrap()
        };
        let answer = send(&server, ask("localhost:8642", header::ACCEPT, b"text/html", uri)).await;
        assert_eq!((answer.status, answer.header(header::LOCATION)), (StatusCode::SEE_OTHER, "/"));
        let cookie = answer.header(header::SET_COOKIE).split(';').next().unwrap().to_owned();
        let about = "/api/about";
        for (host, value, status) in [
            ("localhost:8642", cookie.clone(), StatusCode::OK),
            ("localhost:8642", format!("hyperslab_token_8643=other; {cookie}"), StatusCode::OK),
            // The cookie of another server on this host.
            ("localhost:8643", cookie.clone(), StatusCode::UNAUTHORIZED),
        ] {
            let answer = send(&server, ask(host, header::COOKIE, value.as_bytes(), about)).await;
            assert_eq!(answer.status, status, "{host} {value}");
        }
        for scheme in ["Bearer", "bearer", "BEARER"] {
            let value = format!("{scheme} {token}");
            let answer =
                send(&server, ask("localhost", header::AUTHORIZATION, value.as_bytes(), about)).await;
            assert_eq!(answer.status, StatusCode::OK, "{scheme}");
        }
        let wrong = ask("localhost", header::AUTHORIZATION, b"Basic a b+c&d;e", about);
        assert_eq!(send(&server, wrong).await.status, StatusCode::UNAUTHORIZED);
    });
}
