// Points and lines in space, rotated with the mouse or the arrow keys.

import { colour, count, element, onFrame, readable, replace } from "/view/dom.js";
import { table } from "/view/colour.js";
import * as server from "/view/server.js";

export async function geometryView(body, file, node, report) {
  const controls = element("div", { class: "controls" });
  const canvas = element("canvas", { tabindex: "0", role: "img", "data-canvas": "", "aria-label": `Geometry ${node.path}; turn it with the arrow keys` });
  const box = element("div", { class: "sliders" });
  const probe = element("div", { class: "probe" });
  replace(body, controls, box, element("figure", {}, canvas), probe);
  const view = { turn: 0.6, tilt: 0.5, zoom: 1, data: null, limits: null };
  const draw = onFrame(() => view.data && paint(canvas, view, body.clientWidth));

  async function load(level) {
    const begun = performance.now();
    const limits = view.limits && [...view.limits.map((pair) => pair[0]), ...view.limits.map((pair) => pair[1])].join(",");
    try {
      view.data = await server.geometry(file, node.path, level, limits);
    } catch (error) { probe.textContent = error.message; return; }
    const { data } = view, each = data.axes.length;
    view.level = data.level;
    replace(controls, data.levels.length > 1 && element("label", {}, "Level", element("select", { "data-level": "", onchange: (event) => load(Number(event.target.value)) },
      data.levels.map((one, at) => element("option", { value: at, selected: at === data.level }, `${at}: ${count(one.vertices, "vertex", "vertices")}`)))),
      element("button", { type: "button", onclick: () => { Object.assign(view, { turn: 0.6, tilt: 0.5, zoom: 1, limits: null }); ranges(); load(view.level); } }, "Reset"));
    probe.textContent = `${count(data.vertices.length / each, "vertex", "vertices")}${data.links ? `, ${count(data.links.rows.length / data.links.each, "link")}` : ""}${data.objects ? `, ${count(data.objects, "object")}` : ""}`;
    report(`${Math.round(performance.now() - begun)} ms`);
    body.dataset.drawn = `${data.level}:${data.vertices.length}`;
    draw();
  }

  /** Two sliders per axis set the box. */
  function ranges() {
    const bounds = view.bounds;
    if (!bounds) return;
    replace(box, view.axes.map((name, axis) => {
      const [low, high] = [bounds[0][axis], bounds[1][axis]], step = (high - low) / 200 || 1;
      const text = (limits) => limits.map((limit) => readable(Number(limit.toPrecision(4)))).join(" … ");
      const told = element("span", { class: "at" }, text([low, high]));
      const slide = (end, value) => element("input", { type: "range", min: low, max: high, step, value, "aria-label": `${name} ${end ? "to" : "from"}`, onchange: (event) => {
        view.limits ??= bounds[0].map((from, at) => [from, bounds[1][at]]);
        view.limits[axis][end] = Number(event.target.value);
        if (view.limits[axis][0] > view.limits[axis][1]) view.limits[axis].reverse();
        told.textContent = text(view.limits[axis]);
        load(view.level);
      } });
      return element("div", { class: "slider pair" }, element("span", {}, name), slide(0, low), slide(1, high), told);
    }));
  }

  await load();
  if (view.data) {
    view.axes = view.data.axes;
    view.bounds = view.data.bounds;
    ranges();
  }
  let held = null;
  canvas.addEventListener("pointerdown", (event) => { held = [event.clientX, event.clientY]; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointermove", (event) => {
    if (!held) return;
    view.turn += (event.clientX - held[0]) / 150;
    view.tilt = Math.max(-1.57, Math.min(1.57, view.tilt + (event.clientY - held[1]) / 150));
    held = [event.clientX, event.clientY];
    draw();
  });
  canvas.addEventListener("pointerup", () => { held = null; });
  canvas.addEventListener("wheel", (event) => { event.preventDefault(); view.zoom *= Math.exp(-event.deltaY / 600); draw(); }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: ["turn", -0.1], ArrowRight: ["turn", 0.1], ArrowUp: ["tilt", -0.1], ArrowDown: ["tilt", 0.1] };
    if (moves[event.key]) { view[moves[event.key][0]] += moves[event.key][1]; event.preventDefault(); draw(); }
    if (event.key === "+" || event.key === "-") { view.zoom *= event.key === "+" ? 1.15 : 1 / 1.15; draw(); }
  });
  window.addEventListener("resize", draw);
  return () => window.removeEventListener("resize", draw);
}

function paint(canvas, view, available) {
  const { data } = view, each = data.axes.length, total = data.vertices.length / each;
  const width = Math.max(200, available), height = Math.max(280, Math.min(640, window.innerHeight - 330));
  const scale = window.devicePixelRatio || 1;
  canvas.width = width * scale; canvas.height = height * scale;
  canvas.style.width = `${width}px`; canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.fillStyle = colour("--raised");
  context.fillRect(0, 0, width, height);
  const [low, high] = data.bounds ?? extent(data.vertices, each);
  const middle = low.map((from, axis) => (from + high[axis]) / 2);
  const size = Math.max(...low.map((from, axis) => high[axis] - from)) || 1;
  const factor = (Math.min(width, height) * 0.62 * view.zoom) / size;
  const [sinTurn, cosTurn, sinTilt, cosTilt] = [Math.sin(view.turn), Math.cos(view.turn), Math.sin(view.tilt), Math.cos(view.tilt)];
  const flat = each < 3;
  const xs = new Float32Array(total), ys = new Float32Array(total), depth = new Float32Array(total);
  const seen = (place) => {
    const [a, b, c] = [0, 1, 2].map((axis) => (axis < each ? place[axis] - middle[axis] : 0));
    if (flat) return [width / 2 + a * factor, height / 2 - b * factor, 0];
    const x = a * cosTurn - b * sinTurn, y = a * sinTurn + b * cosTurn;
    return [width / 2 + x * factor, height / 2 + (y * sinTilt - c * cosTilt) * factor, y * cosTilt + c * sinTilt];
  };
  for (let i = 0; i < total; i++) [xs[i], ys[i], depth[i]] = seen(data.vertices.slice(i * each, (i + 1) * each));
  frame(context, low, high, data.axes, seen);
  const colours = table("viridis");
  const tint = (value) => { const index = 3 * Math.max(0, Math.min(255, Math.round((value / size + 0.5) * 255))); return `rgb(${colours[index]} ${colours[index + 1]} ${colours[index + 2]})`; };
  if (data.links) {
    context.lineWidth = 1;
    context.globalAlpha = 0.75;
    const { rows, each: arity } = data.links;
    for (let i = 0; i < rows.length; i += arity) {
      context.strokeStyle = tint(depth[rows[i]]);
      context.beginPath();
      context.moveTo(xs[rows[i]], ys[rows[i]]);
      for (let part = 1; part < arity; part++) context.lineTo(xs[rows[i + part]], ys[rows[i + part]]);
      if (arity > 2) context.closePath();
      context.stroke();
    }
    context.globalAlpha = 1;
  }
  const dot = Math.max(1.5, Math.min(5, 160 / Math.sqrt(total)));
  for (let i = 0; i < total; i++) { context.fillStyle = tint(depth[i]); context.fillRect(xs[i] - dot / 2, ys[i] - dot / 2, dot, dot); }
}

/** The box around everything, with the ends of each axis where they hide the least. */
function frame(context, low, high, axes, seen) {
  const each = axes.length;
  if (each < 2) return;
  context.strokeStyle = colour("--line");
  context.lineWidth = 1;
  const corners = each < 3 ? [0, 1, 3, 2] : null;
  const corner = (bits) => seen(low.map((from, axis) => (bits >> axis & 1 ? high[axis] : from)));
  context.beginPath();
  if (corners) corners.concat(0).forEach((bits, at) => { const [x, y] = corner(bits); if (at) context.lineTo(x, y); else context.moveTo(x, y); });
  else for (let bits = 0; bits < 8; bits++) for (let axis = 0; axis < 3; axis++) if (!(bits >> axis & 1)) {
    const [from, to] = [corner(bits), corner(bits | 1 << axis)];
    context.moveTo(from[0], from[1]);
    context.lineTo(to[0], to[1]);
  }
  context.stroke();
  context.font = "11.5px system-ui, sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  axes.slice(0, 3).forEach((name, axis) => {
    const edges = [];
    for (let bits = 0; bits < 1 << Math.min(each, 3); bits++) if (!(bits >> axis & 1)) edges.push([corner(bits), corner(bits | 1 << axis)]);
    // The outermost of the parallel edges: the lowest, or of upright ones the leftmost.
    const [dx, dy] = [edges[0][1][0] - edges[0][0][0], edges[0][1][1] - edges[0][0][1]], far = Math.hypot(dx, dy);
    if (far < 30) return;
    const turn = (Math.abs(dx) > 0.35 * Math.abs(dy) ? dx : dy) > 0 ? 1 : -1;
    const out = [-dy / far * turn, dx / far * turn];
    const score = ([from, to]) => (from[0] + to[0]) * out[0] + (from[1] + to[1]) * out[1];
    const [from, to] = edges.reduce((best, edge) => (score(edge) > score(best) ? edge : best));
    const between = (share) => [0, 1].map((part) => from[part] + (to[part] - from[part]) * share);
    const write = (text, [x, y]) => context.fillText(text, x + out[0] * (8 + context.measureText(text).width / 2), y + out[1] * 14);
    context.fillStyle = colour("--faint");
    write(readable(Number(low[axis].toPrecision(3))), between(0.1));
    write(readable(Number(high[axis].toPrecision(3))), between(0.9));
    context.fillStyle = colour("--ink");
    write(name, between(0.5));
  });
}

function extent(vertices, each) {
  const low = Array(each).fill(Infinity), high = Array(each).fill(-Infinity);
  for (let i = 0; i < vertices.length; i++) { const axis = i % each; low[axis] = Math.min(low[axis], vertices[i]); high[axis] = Math.max(high[axis], vertices[i]); }
  return [low, high];
}
