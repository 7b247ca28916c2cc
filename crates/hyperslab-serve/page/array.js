// The view of an array: a picture or a line with sliders for the other dimensions, or a table of values.

import { colour, dateText, element, onFrame, readable, replace } from "/view/dom.js";
import { lines, picture } from "/view/draw.js";
import { names, range } from "/view/colour.js";
import { shown } from "/view/json.js";
import * as server from "/view/server.js";

/** The maximum number of cells per axis in a picture. Longer axes are read with a step. */
const MAX_CELLS = 1200;
const MAX_POINTS = 1 << 18;
const MAX_ROWS = 200, MAX_COLUMNS = 60;

export async function arrayView(body, file, node, report) {
  const shape = node.shape ?? [];
  if (node.shape === null || node.chunk_index === "null") { body.append(element("p", { class: "quiet-note" }, "This array has a null dataspace.")); return; }
  if (shape.includes(0)) { body.append(element("p", { class: "quiet-note" }, "This array has no elements.")); return; }
  if (!shape.length) { body.append(element("pre", { class: "value", "data-value": "" }, shown(await server.values(file, node)))); return; }
  const view = new ArrayView(body, file, node, report);
  await view.start();
  return () => view.leave();
}

class ArrayView {
  constructor(body, file, node, report) {
    Object.assign(this, { body, file, node, report });
    this.shape = node.shape;
    this.numeric = server.typed(node) !== null;
    this.at = this.shape.map((extent) => Math.floor((extent - 1) / 2));
    const long = this.shape.map((extent, axis) => axis).filter((axis) => this.shape[axis] > 1);
    const axes = long.length ? long : [this.shape.length - 1];
    this.x = axes.at(-1);
    this.y = axes.length > 1 ? axes.at(-2) : null;
    this.at[this.x] = 0;
    this.mode = !this.numeric ? "values" : this.y === null ? "line" : "picture";
    this.map = "viridis";
    this.robust = true;
    this.square = true;
    this.logarithmic = false;
    this.coordinates = new Map();
    this.instant = instants(node);
    this.draw = onFrame(() => this.update());
    this.resized = () => this.draw();
  }

  async start() {
    this.tabs = element("div", { class: "tabs", role: "tablist" });
    this.controls = element("div", { class: "controls" });
    this.sliders = element("div", { class: "sliders" });
    this.canvas = element("canvas", { role: "img", tabindex: "0", "data-canvas": "" });
    this.figure = element("figure", {}, this.canvas);
    this.probe = element("div", { class: "probe", "data-probe": "" });
    this.sampled = element("p", { class: "quiet-note", "data-sampled": "" });
    this.table = element("div");
    replace(this.body, this.tabs, this.controls, this.sliders, this.figure, this.probe, this.sampled, this.table);
    this.canvas.addEventListener("mousemove", (event) => this.point(event.offsetX, event.offsetY));
    this.canvas.addEventListener("click", (event) => this.point(event.offsetX, event.offsetY));
    window.addEventListener("resize", this.resized);
    this.build();
    await this.update();
  }

  leave() {
    window.removeEventListener("resize", this.resized);
    this.pending?.abort();
  }

  name(axis) {
    return this.node.dimensions?.[axis] ?? `axis ${axis}`;
  }

  build() {
    const modes = this.numeric ? (this.y === null ? ["line", "values"] : ["picture", "line", "values"]) : ["values"];
    replace(this.tabs, modes.map((mode) => element("button", { role: "tab", type: "button", "aria-selected": String(mode === this.mode), onclick: () => { this.mode = mode; this.build(); this.draw(); } }, mode[0].toUpperCase() + mode.slice(1))));
    const choose = (label, value, set, without) => element("label", {}, label, element("select", { onchange: (event) => { set(Number(event.target.value)); this.build(); this.draw(); } },
      this.shape.map((extent, axis) => axis).filter((axis) => axis !== without).map((axis) => element("option", { value: axis, selected: axis === value }, this.name(axis)))));
    const check = (label, key) => element("label", {}, element("input", { type: "checkbox", checked: this[key], onchange: (event) => { this[key] = event.target.checked; this.draw(); } }), label);
    const flat = this.mode !== "line" && this.y !== null;
    replace(this.controls,
      this.shape.length > 1 && choose(this.mode === "line" ? "Along" : "Columns", this.x, (axis) => { if (axis === this.y) this.y = this.x; this.x = axis; }),
      flat && this.shape.length > 1 && choose("Rows", this.y, (axis) => { if (axis === this.x) this.x = this.y; this.y = axis; }),
      this.mode === "picture" && element("label", {}, "Colours", element("select", { onchange: (event) => { this.map = event.target.value; this.draw(); } }, names.map((name) => element("option", { selected: name === this.map }, name)))),
      this.mode === "picture" && check("Clip extremes", "robust"),
      this.mode !== "values" && !this.instant && check("Logarithmic", "logarithmic"),
      this.mode === "picture" && check("Equal aspect", "square"),
      element("span", { class: "push" }),
      this.numeric && element("a", { class: "button", "data-export": "npy", download: "", href: server.exportAddress(this.file, this.node.path, "npy", this.selection()) }, "Save .npy"));
    const fixed = this.shape.map((_, axis) => axis).filter((axis) => axis !== this.x && (axis !== this.y || this.mode === "line"));
    replace(this.sliders, fixed.map((axis) => this.slider(axis)));
  }

  slider(axis) {
    const last = this.shape[axis] - 1;
    const told = element("span", { class: "at" });
    const say = async () => { const label = await this.labels(axis); told.textContent = label ? label(this.at[axis]) : ""; };
    const move = (event) => {
      this.at[axis] = Math.max(0, Math.min(last, Number(event.target.value) || 0));
      bar.value = box.value = this.at[axis];
      say();
      this.draw();
    };
    const bar = element("input", { type: "range", min: 0, max: last, value: this.at[axis], "aria-label": this.name(axis), "data-axis": axis, oninput: move });
    const box = element("input", { type: "number", min: 0, max: last, value: this.at[axis], "aria-label": `${this.name(axis)} position`, onchange: move });
    bar.value = this.at[axis];
    say();
    return element("div", { class: "slider" }, element("span", {}, this.name(axis)), bar, box, told);
  }

  /** A selection for `/data`: positions, and steps along the displayed axes. */
  selection(steps = {}) {
    return this.shape.map((extent, axis) => {
      const free = axis === this.x || (axis === this.y && this.mode !== "line");
      if (!free) return this.at[axis];
      return steps[axis] ? `${steps[axis].from ?? 0}:${steps[axis].to ?? extent}:${steps[axis].by ?? 1}` : ":";
    }).join(",");
  }

  step(axis, most) {
    return Math.max(1, Math.ceil(this.shape[axis] / most));
  }

  /** The labels of an axis from its coordinate array, if there is one. */
  async labels(axis) {
    if (this.coordinates.has(axis)) return this.coordinates.get(axis);
    const named = this.node.labels?.[axis];
    let label = null;
    try {
      if (Array.isArray(named)) label = (at) => named[at] ?? "";
      else if (named?.node && this.shape[axis] <= 100_000 && named.node !== this.node.path) {
        const coordinate = await server.node(this.file, named.node);
        if (coordinate.shape?.length === 1 && coordinate.shape[0] === this.shape[axis]) {
          const values = await server.values(this.file, coordinate);
          const numbers = values.map((value) => (value === null ? NaN : Number(value)));
          const unit = coordinate.attributes?.units;
          const date = dates(unit, coordinate.attributes?.calendar);
          label = (at) => (date ? date(numbers[at]) : readable(values[at]));
          label.unit = typeof unit === "string" && !date ? unit : "";
          label.even = !date && isEven(numbers);
        }
      } else if (typeof named?.first === "number" && named.first !== 0) label = (at) => String(named.first + at);
    } catch { label = null; }
    this.coordinates.set(axis, label);
    return label;
  }

  async axis(axis, by) {
    const label = await this.labels(axis);
    const unit = label?.unit ? ` (${label.unit})` : "";
    const last = (cells) => Math.min((cells - 1) * by, this.shape[axis] - 1);
    const even = label?.even && ((cells) => ({ first: Number(label(0)), last: Number(label(last(cells))) }));
    return { title: `${this.name(axis)}${unit}`, even, label: (at) => (label ? label(Math.min(at * by, this.shape[axis] - 1)) : String(at * by)) };
  }

  async update() {
    this.pending?.abort();
    const pending = (this.pending = new AbortController());
    const begun = performance.now();
    const link = this.controls.querySelector("[data-export]");
    if (link) link.href = server.exportAddress(this.file, this.node.path, "npy", this.selection());
    try {
      this.figure.hidden = this.mode === "values";
      this.probe.hidden = this.mode === "values";
      this.sampled.textContent = "";
      replace(this.table);
      if (this.mode === "picture") await this.picture(pending.signal);
      else if (this.mode === "line") await this.line(pending.signal);
      else await this.values(pending.signal);
      if (this.pending === pending) { this.report(`${Math.round(performance.now() - begun)} ms`); this.body.dataset.drawn = this.selection(); }
    } catch (error) {
      if (error.name !== "AbortError") replace(this.table, element("p", { class: "error", role: "alert" }, error.message));
    }
  }

  /** The selected numbers; dates as milliseconds since 1970. */
  async numbers(selection, signal) {
    const { values, exact } = await server.numbers(this.file, this.node, selection, signal);
    return this.instant ? { values: Float64Array.from(values, this.instant) } : { values, exact };
  }

  /** The unit beside the values. Dates have none. */
  unit() {
    const unit = this.node.attributes?.units;
    return typeof unit === "string" && !this.instant ? unit : "";
  }

  text(value) {
    return this.instant ? dateText(value) : readable(value);
  }

  async picture(signal) {
    const by = { [this.y]: this.step(this.y, MAX_CELLS), [this.x]: this.step(this.x, MAX_CELLS) };
    const selection = this.selection({ [this.y]: { by: by[this.y] }, [this.x]: { by: by[this.x] } });
    let { values, exact } = await this.numbers(selection, signal);
    const [height, width] = [Math.ceil(this.shape[this.y] / by[this.y]), Math.ceil(this.shape[this.x] / by[this.x])];
    if (this.y > this.x) { values = transposed(values, width, height); exact &&= transposed(exact, width, height); }
    const [xAxis, yAxis] = [await this.axis(this.x, by[this.x]), await this.axis(this.y, by[this.y])];
    if (signal.aborted) return;
    const [low, high] = range(values, this.robust);
    const upwards = await this.ascends(this.y);
    this.place = picture(this.canvas, { values, rows: height, columns: width, low, high, map: this.map, logarithmic: this.logarithmic, dates: Boolean(this.instant), xAxis, yAxis, width: this.body.clientWidth, title: this.unit() }, { square: this.square, upwards });
    this.canvas.setAttribute("aria-label", `Picture of ${this.node.path}: ${width} by ${height} cells from ${this.text(low)} to ${this.text(high)}`);
    this.say(by);
    this.cell = ({ row, column }) => ({ value: (exact ?? values)[row * width + column], position: { [this.y]: row * by[this.y], [this.x]: column * by[this.x] } });
    this.point(null);
  }

  /** Says which cells of long axes are shown. */
  say(steps) {
    const parts = Object.entries(steps).filter(([, by]) => by > 1).map(([axis, by]) => `one of ${by} cells along ${this.name(Number(axis))}`);
    this.sampled.textContent = parts.length ? `Shows ${parts.join(" and ")}.` : "";
  }

  /** Ascending coordinates are drawn upwards, as on a map. */
  async ascends(axis) {
    const label = await this.labels(axis);
    return Boolean(label?.unit) && Number(label(0)) < Number(label(this.shape[axis] - 1));
  }

  async line(signal) {
    const by = this.step(this.x, MAX_POINTS);
    const { values, exact } = await this.numbers(this.selection({ [this.x]: { by } }), signal);
    const xAxis = await this.axis(this.x, by);
    if (signal.aborted) return;
    this.place = lines(this.canvas, { series: [{ values, stroke: colour("--accent") }], xAxis, title: this.unit(), dates: Boolean(this.instant), width: this.body.clientWidth, logarithmic: this.logarithmic });
    this.canvas.setAttribute("aria-label", `Line of ${this.node.path}: ${values.length} values`);
    this.say({ [this.x]: by });
    this.cell = ({ column }) => ({ value: (exact ?? values)[column], position: { [this.x]: column * by } });
    this.point(null);
  }

  point(x, y) {
    const found = x === null ? null : this.place?.(x, y);
    if (!found) { this.probe.textContent = "Point at the picture to read a value."; return; }
    const { value, position } = this.cell(found);
    const where = this.shape.map((_, axis) => position[axis] ?? this.at[axis]).join(", ");
    const unit = this.unit();
    replace(this.probe, `[${where}]  `, element("b", {}, this.text(value)), unit && ` ${unit}`);
  }

  async values(signal) {
    const [rowAxis, columnAxis] = this.y === null ? [this.x, null] : [this.y, this.x];
    this.offset ??= [0, 0];
    const rows = Math.min(MAX_ROWS, this.shape[rowAxis] - this.offset[0]);
    const columns = columnAxis === null ? 1 : Math.min(MAX_COLUMNS, this.shape[columnAxis] - this.offset[1]);
    const steps = { [rowAxis]: { from: this.offset[0], to: this.offset[0] + rows } };
    if (columnAxis !== null) steps[columnAxis] = { from: this.offset[1], to: this.offset[1] + columns };
    const cells = await server.values(this.file, this.node, this.selection(steps), signal);
    if (signal.aborted) return;
    const at = (row, column) => (columnAxis === null ? cells[row] : rowAxis > columnAxis ? cells[column][row] : cells[row][column]);
    const header = Array.from({ length: columns }, (_, column) => element("th", {}, columnAxis === null ? "value" : String(this.offset[1] + column)));
    const lines = Array.from({ length: rows }, (_, row) => element("tr", {}, element("td", { class: "index" }, String(this.offset[0] + row)),
      Array.from({ length: columns }, (_, column) => { const value = at(row, column); return element("td", { class: isNumber(value) ? "" : "text", title: shown(value) }, value === null ? "–" : isNumber(value) ? String(value) : shown(value)); })));
    const move = (part, by, extent) => element("button", { type: "button", disabled: this.offset[part] + by < 0 || this.offset[part] + by >= extent, onclick: () => { this.offset[part] += by; this.draw(); } }, by < 0 ? "‹" : "›");
    const pager = (label, part, size, extent) => extent > size && element("span", {}, `${label} `, move(part, -size, extent), ` ${this.offset[part]}–${Math.min(this.offset[part] + size, extent) - 1} of ${extent} `, move(part, size, extent));
    replace(this.table, element("div", { class: "controls" }, pager("Rows", 0, MAX_ROWS, this.shape[rowAxis]), columnAxis !== null && pager("Columns", 1, MAX_COLUMNS, this.shape[columnAxis])),
      element("div", { class: "scroll", tabindex: "0" }, element("table", { class: "grid" }, element("thead", {}, element("tr", {}, element("th", { class: "index" }), header)), element("tbody", {}, lines))));
  }
}

const isNumber = (value) => typeof value === "number" || typeof value === "bigint";

/** The standard calendar equals that of JavaScript from here on. */
const FIRST = Date.UTC(1583, 0, 1);

const MILLISECONDS = { d: 86_400_000, h: 3_600_000, mi: 60_000, s: 1000, ms: 1 };

/** From numbers with a unit such as "days since 2000-01-01", of the calendar that JavaScript has, to milliseconds since 1970; else null. */
function counted(unit, calendar = "standard") {
  const since = /^\s*(days?|d|hours?|hrs?|h|minutes?|mins?|seconds?|secs?|s|milliseconds?|msecs?|ms)\s+since\s+(\d{4})-(\d{1,2})-(\d{1,2})(?:[T ]+(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.\d*)?)?)?\s*(?:Z|UTC|\+?0?0:?00)?\s*$/i.exec(String(unit ?? ""));
  if (!since || Number(since[2]) < 1583 || !["standard", "gregorian", "proleptic_gregorian"].includes(String(calendar).toLowerCase())) return null;
  const word = since[1].toLowerCase(), part = /^(milli|ms)/.test(word) ? "ms" : word.startsWith("mi") ? "mi" : word[0];
  const from = Date.UTC(since[2], since[3] - 1, since[4], since[5] ?? 0, since[6] ?? 0, since[7] ?? 0);
  return (value) => from + value * MILLISECONDS[part];
}

/** Dates of such numbers as text; else null. */
function dates(unit, calendar) {
  const instant = counted(unit, calendar);
  return instant && ((value) => (instant(value) >= FIRST ? dateText(instant(value)) : readable(value)));
}

const TICKS = { W: 604_800_000, D: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1, us: 1e-3, ns: 1e-6 };

/** From the numbers of an array of dates, or of one that counts time, to milliseconds since 1970; else null. */
export function instants(node) {
  const unit = /^datetime64\[(\w+)\]$/.exec(node.decoded ?? node.dtype)?.[1];
  if (unit) return TICKS[unit] ? (tick) => tick * TICKS[unit] : null;
  return server.typed(node) && !server.isComplex(node) ? counted(node.attributes?.units, node.attributes?.calendar) : null;
}

/** Do numbers lie at equal distances, but for rounding? */
function isEven(values) {
  const last = values.length - 1, step = (values[last] - values[0]) / last;
  if (!(last > 0) || !Number.isFinite(step) || step === 0) return false;
  return values.every((value, at) => Math.abs(value - values[0] - at * step) < Math.abs(step) * 0.01);
}

/** Transposes rows and columns. */
function transposed(values, rows, columns) {
  const out = new values.constructor(values.length);
  for (let row = 0; row < rows; row++) for (let column = 0; column < columns; column++) out[column * rows + row] = values[row * columns + column];
  return out;
}
