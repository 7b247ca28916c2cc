// The page: selects a store and a node, and displays it.

import { colour, count, element, replace } from "/view/dom.js";
import { Tree, matches } from "/view/tree.js";
import { arrayView } from "/view/array.js";
import { tableView } from "/view/table.js";
import { geometryView } from "/view/geometry.js";
import { shown } from "/view/json.js";
import * as server from "/view/server.js";

const main = document.getElementById("main");
const status = document.getElementById("status");
const search = document.getElementById("search");
const treeRoot = document.getElementById("tree");
const tree = new Tree(treeRoot, (path) => go(state.file, path));
const state = { file: null, path: "/", only: null, paths: null, leave: null };

/** The fragment of the URL names the store and the node, so that the URL can be bookmarked and shared. */
function read() {
  const words = new URLSearchParams(location.hash.slice(1));
  return { file: words.get("file"), path: words.get("path") ?? "/", folder: words.get("folder") ?? "" };
}

function address(file, path) {
  const words = new URLSearchParams({ file });
  if (path !== "/") words.set("path", path);
  return `#${words}`;
}

function go(file, path) {
  const next = address(file, path);
  if (location.hash === next) show(); else location.hash = next;
}

function crumbs(file, path) {
  const parts = path.split("/").filter(Boolean);
  const links = [element("a", { href: address(file, "/") }, file)];
  parts.forEach((part, at) => links.push(" / ", element(at === parts.length - 1 ? "b" : "a", { href: address(file, `/${parts.slice(0, at + 1).join("/")}`) }, part)));
  if (!state.only) links.unshift(element("a", { href: "#" }, "stores"), " / ");
  replace(document.getElementById("crumbs"), links);
  document.title = `${parts.at(-1) ?? file} – Hyperslab`;
}

async function show() {
  const wanted = read();
  const file = wanted.file ?? state.only;
  state.leave?.();
  state.leave = null;
  // A folder has no nodes.
  document.querySelector("aside").hidden = !file;
  try {
    if (!file) { await folder(wanted.folder); return; }
    if (file !== state.file) {
      const root = await server.node(file, "/");
      state.file = file;
      // A store that is a single array or table has no other paths.
      state.paths = ["array", "table"].includes(root.kind) ? ["/"] : null;
      search.value = "";
      await tree.load(file, root);
    }
    const node = await server.node(file, wanted.path);
    if (read().path !== wanted.path) return;
    crumbs(file, wanted.path);
    if (!search.value) await tree.reveal(wanted.path);
    await present(file, node);
  } catch (error) {
    replace(main, element("h1", {}, wanted.path), element("p", { class: "error", role: "alert" }, error.message));
  }
}

/** Lists the stores in a folder. */
async function folder(name) {
  state.file = null;
  replace(treeRoot);
  replace(document.getElementById("crumbs"), name || "stores");
  const { entries, next } = await server.files(name);
  const inside = (entry) => (name ? `${name}/${entry.name}` : entry.name);
  const link = (entry) => element("li", {}, element("a", { href: entry.kind === "folder" ? `#${new URLSearchParams({ folder: inside(entry) })}` : address(inside(entry), "/") },
    element("span", {}, entry.kind === "folder" ? `${entry.name}/` : entry.name), element("span", { class: "hint" }, entry.format ?? entry.kind)));
  const facts = element("p", { class: "facts" }), list = element("ul", { class: "files" }), more = element("p");
  let stores = 0;
  const add = (entries, next) => {
    stores += entries.filter((entry) => entry.kind === "store").length;
    facts.textContent = count(stores, "store") + (next === null ? "" : " so far");
    list.append(...entries.map(link));
    const load = async () => { const following = await server.files(name, next); add(following.entries, following.next); };
    replace(more, next !== null && element("button", { type: "button", onclick: load }, "Show more"));
  };
  add(entries, next);
  replace(main, element("h1", {}, name || "Stores"), facts, list, more,
    entries.length === 0 && next === null && element("p", { class: "quiet-note" }, "There is no store in this folder."));
}

const VIEWS = { array: arrayView, table: tableView, geometry: geometryView };

async function present(file, node) {
  const name = node.path === "/" ? file.split("/").pop() : node.path.split("/").pop();
  const head = [element("h1", {}, name), element("p", { class: "facts" }, facts(node).map((fact) => element("span", {}, fact)))];
  const body = element("div");
  replace(main, head, body, attributes(node));
  if (node.error) body.append(element("p", { class: "error", role: "alert" }, node.error));
  main.scrollTop = 0;
  if (VIEWS[node.kind] && !node.error) state.leave = (await VIEWS[node.kind](body, file, node, report)) ?? null;
  else if (node.kind === "group") await members(body, file, node);
}

function facts(node) {
  const list = [element("b", {}, node.kind)];
  if (node.path === "/") list.push(node.format);
  if (node.dtype) list.push(node.dtype);
  if (node.shape) list.push(node.shape.length ? node.shape.join(" × ") : "scalar");
  if (node.decoded) list.push(`decoded to ${node.decoded}`);
  if (node.chunk_shape?.length) list.push(`chunks ${node.chunk_shape.join(" × ")}`);
  if (node.filters?.length) list.push(node.filters.map((filter) => (filter.level === undefined ? filter.name : `${filter.name} ${filter.level}`)).join(", "));
  if (node.rows !== undefined) list.push(count(node.rows, "row"));
  if (node.kinds) list.push(node.kinds.join(", "));
  if (node.target) list.push(`to ${node.target}`);
  return list;
}

async function members(body, file, node) {
  const { total, next, members } = await server.children(file, node.path, 0, 200);
  const above = node.path === "/" ? "" : node.path;
  body.append(element("ul", { class: "files" }, members.map((member) => element("li", {}, element("a", { href: address(file, `${above}/${member.name}`) },
    element("span", {}, member.name), element("span", { class: "hint" }, member.shape ? `${member.dtype}  ${member.shape.join("×") || "scalar"}` : member.kind))))));
  if (total > next) body.append(element("p", { class: "quiet-note" }, `and ${count(total - next, "more node")}`));
  else if (!members.length) body.append(element("p", { class: "quiet-note" }, "This group has no members."));
}

function attributes(node) {
  const entries = Object.entries(node.attributes ?? {});
  if (!entries.length) return [];
  return [element("h2", {}, "Attributes"), element("table", { class: "attributes" },
    element("tbody", {}, entries.map(([name, value]) => element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, shown(value))))))];
}

function report(text) {
  status.textContent = text;
}

search.addEventListener("input", async () => {
  const text = search.value.trim();
  if (!state.file) return;
  if (!text) { await tree.load(state.file, await server.node(state.file, "/")); await tree.reveal(read().path); return; }
  try {
    state.paths ??= await server.paths(state.file);
    if (search.value.trim() === text) replace(treeRoot, matches(state.paths, text, (path) => go(state.file, path)));
  } catch (error) { report(error.message); }
});
search.addEventListener("keydown", (event) => {
  if (event.key === "Escape") { search.value = ""; search.dispatchEvent(new Event("input")); }
  if (event.key === "ArrowDown") treeRoot.querySelector("li")?.focus();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) { event.preventDefault(); search.focus(); }
});

const theme = document.getElementById("theme");
theme.addEventListener("click", () => {
  const dark = colour("--ground").startsWith("#1");
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  try { localStorage.setItem("theme", document.documentElement.dataset.theme); } catch { /* not allowed to keep it */ }
  window.dispatchEvent(new Event("resize"));
});
try { const kept = localStorage.getItem("theme"); if (kept) document.documentElement.dataset.theme = kept; } catch { /* not allowed */ }

window.addEventListener("hashchange", show);
state.only = (await server.about()).store;
await show();
