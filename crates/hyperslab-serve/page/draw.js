// Drawing on canvases: axes, pictures, lines.

import { colour, dateText, readable } from "/view/dom.js";
import { table } from "/view/colour.js";

/** Round tick positions between two numbers. */
export function ticks(low, high, wanted) {
  if (!(high > low)) return [low];
  const raw = (high - low) / Math.max(wanted, 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= raw) * power;
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-9; at += step) found.push(Math.abs(at) < step * 1e-9 ? 0 : at);
  return found;
}

const SECOND = 1000, DAY = 86_400_000;
const STEPS = [1, 5, 15, 30, 60, 300, 900, 1800, 3600, 10_800, 21_600, 43_200].map((seconds) => seconds * SECOND).concat([1, 2, 5, 10].map((days) => days * DAY));

/** Ticks at round dates between two instants in milliseconds. */
export function dateTicks(low, high, wanted) {
  const raw = (high - low) / Math.max(wanted, 1);
  const step = STEPS.find((one) => one >= raw);
  if (raw < SECOND / 2) return ticks(low, high, wanted);
  if (step) return Array.from({ length: Math.floor(high / step) - Math.ceil(low / step) + 1 }, (_, at) => (Math.ceil(low / step) + at) * step);
  const months = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200].find((one) => one * 30.4 * DAY >= raw) ?? 12_000;
  const found = [];
  for (let month = Math.floor((new Date(low).getUTCFullYear() * 12) / months) * months; ; month += months) {
    const at = new Date(0).setUTCFullYear(Math.floor(month / 12), month % 12, 1);
    if (!(at <= high)) return found;
    if (at >= low) found.push(at);
  }
}

/** Ticks and labels of values, which may be dates. */
const scaleOf = (dates) => (dates ? { at: dateTicks, label: dateText } : { at: ticks, label: shorter });

function prepared(canvas, width, height) {
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "11.5px system-ui, sans-serif";
  return context;
}

function title(context, text, x, y, turned = false) {
  context.save();
  context.translate(x, y);
  if (turned) context.rotate(-Math.PI / 2);
  context.fillStyle = colour("--soft");
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(text, 0, 0);
  context.restore();
}

const shorter = (value) => { const text = readable(Number(Number(value).toPrecision(6))); return text.length > 9 ? Number(value).toExponential(2) : text; };

/** Draws rows and columns as a picture with axes and a colour bar. Returns a function from canvas coordinates to cells. */
export function picture(canvas, data, options) {
  const { values, rows, columns, low, high, map, logarithmic, dates, xAxis, yAxis, width } = data;
  const margin = { left: 62, right: dates ? 136 : 96, top: 10, bottom: 44 };
  const room = Math.max(120, width - margin.left - margin.right);
  let ratio = rows / columns;
  if (!options.square || ratio < 0.2 || ratio > 5) ratio = Math.min(Math.max(ratio, 0.35), 0.75);
  const most = Math.max(220, window.innerHeight - 330);
  let w = room, h = room * ratio;
  if (h > most) { h = most; w = options.square ? Math.min(room, h / ratio) : room; }
  w = Math.round(w); h = Math.round(h);
  const context = prepared(canvas, margin.left + w + margin.right, margin.top + h + margin.bottom);
  const image = new ImageData(columns, rows);
  const pixels = image.data, colours = table(map);
  const missing = colour("--missing").match(/[0-9a-f]{2}/gi).map((part) => parseInt(part, 16));
  const place = scaling(low, high, logarithmic);
  for (let i = 0; i < values.length; i++) {
    const share = place(values[i]), at = 4 * i;
    if (Number.isNaN(share)) { pixels.set(missing, at); } else {
      const index = 3 * Math.max(0, Math.min(255, Math.round(share * 255)));
      pixels[at] = colours[index]; pixels[at + 1] = colours[index + 1]; pixels[at + 2] = colours[index + 2];
    }
    pixels[at + 3] = 255;
  }
  const source = new OffscreenCanvas(columns, rows);
  source.getContext("2d").putImageData(image, 0, 0);
  context.imageSmoothingEnabled = columns > w || rows > h;
  context.save();
  context.translate(margin.left, margin.top);
  if (options.upwards) { context.translate(0, h); context.scale(1, -1); }
  context.drawImage(source, 0, 0, w, h);
  context.restore();
  context.strokeStyle = colour("--line");
  context.strokeRect(margin.left - 0.5, margin.top - 0.5, w + 1, h + 1);
  positions(context, xAxis, columns, w, (at, label) => {
    context.fillRect(margin.left + at, margin.top + h + 1, 1, 4);
    context.textAlign = "center"; context.textBaseline = "top";
    context.fillText(label, margin.left + at, margin.top + h + 7);
  }, 80);
  positions(context, yAxis, rows, h, (at, label) => {
    const y = margin.top + (options.upwards ? h - at : at);
    context.fillRect(margin.left - 5, y, 4, 1);
    context.textAlign = "right"; context.textBaseline = "middle";
    context.fillText(label, margin.left - 8, y);
  }, 42);
  title(context, xAxis.title, margin.left + w / 2, margin.top + h + 34);
  title(context, yAxis.title, 11, margin.top + h / 2, true);
  bar(context, margin.left + w + 16, margin.top, h, { low, high, colours, logarithmic, dates, title: data.title });
  return (x, y) => {
    const column = Math.floor(((x - margin.left) / w) * columns);
    let row = Math.floor(((y - margin.top) / h) * rows);
    if (options.upwards) row = rows - 1 - row;
    return column >= 0 && column < columns && row >= 0 && row < rows ? { row, column } : null;
  };
}

function scaling(low, high, logarithmic) {
  if (!logarithmic) return (value) => (Number.isFinite(value) ? (value - low) / (high - low) : NaN);
  const from = Math.log(Math.max(low, Number.MIN_VALUE)), to = Math.log(high);
  return (value) => (value > 0 && Number.isFinite(value) ? (Math.log(value) - from) / (to - from || 1) : NaN);
}

/** Ticks of an axis of cells: places between the first cell and the last, and labels. At round coordinates where they are evenly spaced. */
function marks(axis, cells, wanted) {
  const even = axis.even?.(cells);
  if (!even) return ticks(0, cells - 1, wanted).filter((at) => Number.isInteger(at)).map((at) => [at, axis.label(at)]);
  const found = ticks(Math.min(even.first, even.last), Math.max(even.first, even.last), wanted);
  return found.map((value) => [((value - even.first) / (even.last - even.first)) * (cells - 1), shorter(value)]);
}

function positions(context, axis, cells, length, mark, apart) {
  context.fillStyle = colour("--soft");
  for (const [at, label] of marks(axis, cells, Math.max(2, Math.floor(length / apart)))) mark(((at + 0.5) / cells) * length, label);
}

function bar(context, x, y, height, { low, high, colours, logarithmic, dates, title: text }) {
  const scale = scaleOf(dates);
  for (let row = 0; row < height; row++) {
    const index = 3 * Math.round((1 - row / height) * 255);
    context.fillStyle = `rgb(${colours[index]} ${colours[index + 1]} ${colours[index + 2]})`;
    context.fillRect(x, y + row, 12, 1.5);
  }
  context.fillStyle = colour("--soft");
  context.textAlign = "left";
  context.textBaseline = "middle";
  const places = logarithmic
    ? [0, 0.25, 0.5, 0.75, 1].map((share) => [share, Math.max(low, Number.MIN_VALUE) ** (1 - share) * high ** share])
    : scale.at(low, high, Math.max(2, height / 50)).map((value) => [(value - low) / (high - low), value]);
  for (const [share, value] of places) {
    const at = y + (1 - share) * height;
    context.fillRect(x + 12, at, 3, 1);
    context.fillText(scale.label(value), x + 18, at);
  }
  if (text) title(context, text, x + 70, y + height / 2, true);
}

/** Lines over one axis. Long lines are drawn as the range of values in each pixel column. */
export function lines(canvas, { series, xAxis, title: text, width, logarithmic, dates }) {
  const scale = scaleOf(dates);
  const margin = { left: dates ? 122 : 74, right: 18, top: 12, bottom: 44 };
  const w = Math.max(160, width - margin.left - margin.right), h = Math.max(220, Math.min(460, window.innerHeight - 340));
  const context = prepared(canvas, margin.left + w + margin.right, margin.top + h + margin.bottom);
  let low = Infinity, high = -Infinity;
  const cells = Math.max(...series.map((one) => one.values.length));
  const shown = (value) => Number.isFinite(value) && (!logarithmic || value > 0);
  for (const { values } of series) for (const value of values) if (shown(value)) { if (value < low) low = value; if (value > high) high = value; }
  if (!(low <= high)) [low, high] = [logarithmic ? 1 : 0, logarithmic ? 10 : 1];
  if (low === high) { low -= Math.abs(low) * 0.1 || 0.5; high += Math.abs(high) * 0.1 || 0.5; }
  const pad = logarithmic ? 0 : (high - low) * 0.04;
  low -= pad; high += pad;
  const share = scaling(low, high, logarithmic);
  const y = (value) => margin.top + (1 - share(value)) * h;
  const x = (at) => margin.left + (cells > 1 ? (at / (cells - 1)) * w : w / 2);
  context.textBaseline = "middle"; context.textAlign = "right";
  const levels = logarithmic ? [0, 0.25, 0.5, 0.75, 1].map((part) => low ** (1 - part) * high ** part) : scale.at(low, high, h / 52);
  for (const value of levels) {
    context.fillStyle = colour("--grid"); context.fillRect(margin.left, y(value), w, 1);
    context.fillStyle = colour("--soft"); context.fillText(scale.label(value), margin.left - 8, y(value));
  }
  context.textBaseline = "top"; context.textAlign = "center";
  for (const [at, label] of marks(xAxis, cells, Math.max(2, w / 90))) {
    context.fillStyle = colour("--line"); context.fillRect(x(at), margin.top + h, 1, 4);
    context.fillStyle = colour("--soft"); context.fillText(label, x(at), margin.top + h + 8);
  }
  title(context, xAxis.title, margin.left + w / 2, margin.top + h + 34);
  if (text) title(context, text, 11, margin.top + h / 2, true);
  context.save();
  context.beginPath(); context.rect(margin.left, margin.top - 2, w, h + 4); context.clip();
  for (const { values, stroke } of series) {
    context.strokeStyle = stroke; context.lineWidth = 1.4; context.lineJoin = "round";
    context.beginPath();
    if (values.length > 4 * w) dense(context, values, w, margin.left, y, shown); else sparse(context, values, x, y, shown);
    context.stroke();
    if (values.length <= 60) for (let i = 0; i < values.length; i++) if (shown(values[i])) { context.fillStyle = stroke; context.beginPath(); context.arc(x(i), y(values[i]), 2.2, 0, 7); context.fill(); }
  }
  context.restore();
  return (px) => { const at = Math.round(((px - margin.left) / w) * (cells - 1)); return at >= 0 && at < cells ? { row: 0, column: at } : null; };
}

function sparse(context, values, x, y, shown) {
  let open = false;
  for (let i = 0; i < values.length; i++) {
    if (!shown(values[i])) { open = false; continue; }
    if (open) context.lineTo(x(i), y(values[i])); else context.moveTo(x(i), y(values[i]));
    open = true;
  }
}

function dense(context, values, w, left, y, shown) {
  for (let pixel = 0; pixel < w; pixel++) {
    let low = Infinity, high = -Infinity;
    const end = Math.floor(((pixel + 1) / w) * values.length);
    for (let i = Math.floor((pixel / w) * values.length); i < end; i++) if (shown(values[i])) { low = Math.min(low, values[i]); high = Math.max(high, values[i]); }
    if (low <= high) { context.moveTo(left + pixel, y(low)); context.lineTo(left + pixel, y(high) - 1); }
  }
}
