import React from "react";
import { createRoot } from "react-dom/client";
import { App, H5GroveProvider, createBasicFetcher } from "@h5web/app";
import "@h5web/app/styles.css";
import "./page.css";

const base = new URL(".", document.baseURI).href.replace(/\/$/, "");
const fetcher = createBasicFetcher();

async function ask(path) {
  const response = await fetch(`${base}/${path}`);
  if (!response.ok) throw new Error((await response.json()).message ?? response.statusText);
  return response.json();
}

/** A store in H5Web. */
function Store({ file }) {
  return (
    <H5GroveProvider url={base} filepath={file} fetcher={fetcher}>
      <App propagateErrors={false} />
    </H5GroveProvider>
  );
}

/** The stores of a folder. */
function Folder({ folder, entries }) {
  const inside = (name) => (folder ? `${folder}/${name}` : name);
  return (
    <main className="stores">
      <h1>{folder || "Stores"}</h1>
      <ul>
        {entries.map(({ name, kind, format }) => (
          <li key={name}>
            <a href={kind === "folder" ? `?folder=${encodeURIComponent(inside(name))}` : `?file=${encodeURIComponent(inside(name))}`}>
              <span>{kind === "folder" ? `${name}/` : name}</span>
              <small>{format ?? kind}</small>
            </a>
          </li>
        ))}
      </ul>
      <p>
        <a href="view/">The small page</a>
      </p>
    </main>
  );
}

const words = new URLSearchParams(location.search);
const root = createRoot(document.getElementById("root"));
try {
  const file = words.get("file") ?? (await ask("api/about")).store;
  if (file) {
    document.title = `${file} – Hyperslab`;
    root.render(<Store file={file} />);
  } else {
    const folder = words.get("folder") ?? "";
    root.render(<Folder folder={folder} entries={(await ask(`api/files?folder=${encodeURIComponent(folder)}`)).entries} />);
  }
} catch (error) {
  root.render(<p role="alert">{error.message}</p>);
}
