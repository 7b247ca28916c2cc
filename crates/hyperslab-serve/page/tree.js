// The tree of nodes: loads groups on demand, supports the arrow keys.

import { element, replace, readable } from "/view/dom.js";
import * as server from "/view/server.js";

const PAGE = 200;

export class Tree {
  constructor(root, onSelect) {
    this.root = root;
    this.onSelect = onSelect;
    root.addEventListener("keydown", (event) => this.key(event));
  }

  async load(file, rootNode) {
    this.file = file;
    this.list = element("ul", { role: "tree", "aria-label": `Nodes of ${file}` });
    const top = this.item({ name: file.split("/").pop(), path: "/", ...rootNode });
    this.list.append(top);
    replace(this.root, this.list);
    if (top.hasAttribute("aria-expanded")) await this.expand(top);
  }

  item(node) {
    const opens = node.kind === "group" || (node.kind === "geometry" && node.path === "/");
    const hint = node.shape ? (node.shape.length ? node.shape.join("×") : "scalar") : node.kind === "group" ? "" : node.kind;
    const item = element("li", { role: "treeitem", tabindex: "-1", "aria-selected": "false", "data-path": node.path, class: node.kind === "damaged" ? "bad" : "" },
      element("div", { class: "row", title: node.error ?? node.path },
        element("span", { class: "twist", "aria-hidden": "true" }, opens ? "▶" : ""),
        element("span", { class: "name" }, node.name),
        element("span", { class: "hint" }, hint)));
    item.node = node;
    if (opens) item.setAttribute("aria-expanded", "false");
    item.firstChild.addEventListener("click", (event) => {
      event.stopPropagation();
      if (opens && (event.target.classList.contains("twist") || item.getAttribute("aria-selected") === "true")) this.toggle(item);
      else { if (opens) this.expand(item); this.select(item); }
      item.focus();
    });
    return item;
  }

  async toggle(item) {
    if (item.getAttribute("aria-expanded") === "true") this.collapse(item); else await this.expand(item);
  }

  collapse(item) {
    item.setAttribute("aria-expanded", "false");
    if (item.group) item.group.hidden = true;
  }

  async expand(item) {
    if (!item.hasAttribute("aria-expanded")) return;
    item.setAttribute("aria-expanded", "true");
    if (item.group) { item.group.hidden = false; return; }
    item.group = element("ul", { role: "group" });
    item.append(item.group);
    await this.more(item, 0);
  }

  async more(item, offset) {
    const above = item.node.path === "/" ? "" : item.node.path;
    const { total, next: shown, members } = await server.children(this.file, item.node.path, offset, PAGE);
    item.group.querySelector(":scope > .more")?.remove();
    for (const member of members) item.group.append(this.item({ ...member, path: `${above}/${member.name}` }));
    if (shown < total) {
      const next = element("li", { class: "more", role: "treeitem", tabindex: "-1" },
        element("div", { class: "row" }, `${readable(total - shown)} more…`));
      const load = () => this.more(item, shown);
      next.addEventListener("click", load);
      next.activate = load;
      item.group.append(next);
    }
  }

  select(item, silent = false) {
    for (const other of this.root.querySelectorAll('[aria-selected="true"]')) other.setAttribute("aria-selected", "false");
    for (const other of this.root.querySelectorAll('[tabindex="0"]')) other.tabIndex = -1;
    item.setAttribute("aria-selected", "true");
    item.tabIndex = 0;
    item.firstChild.scrollIntoView({ block: "nearest" });
    if (!silent) this.onSelect(item.node.path);
  }

  /** Expands the groups above a path and selects it. */
  async reveal(path) {
    let at = this.list?.firstElementChild;
    if (!at) return;
    const parts = path.split("/").filter(Boolean);
    let known = "";
    for (const part of parts) {
      await this.expand(at);
      known += `/${part}`;
      const next = [...(at.group?.children ?? [])].find((child) => child.dataset.path === known);
      if (!next) break;
      at = next;
    }
    this.select(at, true);
  }

  visible() {
    return [...this.root.querySelectorAll("li")].filter((item) => item.offsetParent !== null);
  }

  key(event) {
    const item = document.activeElement?.closest("#tree li");
    if (!item) return;
    const all = this.visible(), at = all.indexOf(item);
    const go = (next) => { if (next) { next.focus(); next.firstChild.scrollIntoView({ block: "nearest" }); } };
    switch (event.key) {
      case "ArrowDown": go(all[at + 1]); break;
      case "ArrowUp": go(all[at - 1]); break;
      case "Home": go(all[0]); break;
      case "End": go(all[all.length - 1]); break;
      case "ArrowRight": if (item.getAttribute("aria-expanded") === "false") this.expand(item); else go(item.group?.firstElementChild); break;
      case "ArrowLeft": if (item.getAttribute("aria-expanded") === "true") this.collapse(item); else go(item.parentElement.closest("li")); break;
      case "Enter": case " ": if (item.activate) item.activate(); else { this.select(item); if (event.key === "Enter") this.expand(item); } break;
      default: return;
    }
    event.preventDefault();
  }
}

/** A flat list of the paths that contain a text. */
export function matches(paths, text, onSelect) {
  const wanted = text.toLowerCase();
  const found = paths.filter((path) => path.toLowerCase().includes(wanted)).slice(0, 300);
  if (!found.length) return element("p", { class: "quiet-note", style: "padding: 4px 12px" }, "No node path contains this text.");
  return element("ul", { role: "tree", "aria-label": "Found nodes" }, found.map((path) => {
    const item = element("li", { role: "treeitem", tabindex: "0", "data-path": path },
      element("div", { class: "row", title: path }, element("span", { class: "twist" }), element("span", { class: "name" }, path)));
    item.addEventListener("click", () => onSelect(path));
    item.activate = () => onSelect(path);
    return item;
  }));
}
