// A table: rows page by page.

import { element, replace } from "/view/dom.js";
import { shown } from "/view/json.js";
import * as server from "/view/server.js";

const PAGE = 100;

export async function tableView(body, file, node) {
  const pager = element("div", { class: "controls" }), holder = element("div", { class: "scroll", tabindex: "0" });
  body.append(pager, holder);
  let offset = 0;
  const cell = (value) => (value === null ? "–" : shown(value));
  async function show() {
    const { total, rows, columns } = await server.table(file, node.path, offset, PAGE);
    const named = Object.entries(columns);
    const types = Object.fromEntries((node.columns ?? []).map((column) => [column.name, column.dtype]));
    replace(holder, element("table", {},
      element("thead", {}, element("tr", {}, element("th", { class: "index" }), named.map(([name]) => element("th", { title: types[name] ?? "" }, name)))),
      element("tbody", {}, Array.from({ length: rows }, (_, row) => element("tr", {}, element("td", { class: "index" }, String(offset + row)),
        named.map(([, cells]) => element("td", { class: ["number", "bigint"].includes(typeof cells[row]) ? "" : "text" }, cell(cells[row]))))))));
    const move = (by, label) => element("button", { type: "button", disabled: offset + by < 0 || offset + by >= total, onclick: () => { offset += by; show(); } }, label);
    replace(pager, move(-PAGE, "‹ Earlier"), element("span", {}, `rows ${offset}–${Math.max(offset, offset + rows - 1)} of ${total.toLocaleString("en")}`), move(PAGE, "Later ›"));
  }
  await show();
}
