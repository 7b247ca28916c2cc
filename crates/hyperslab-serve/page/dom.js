// Small helpers for elements. Text is always set as text: names and values in files are never markup.

export function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") node.className = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name in node && !name.startsWith("aria") && name !== "role") node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export function replace(node, ...children) {
  node.replaceChildren(...children.flat().filter(Boolean));
}

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Calls `work` at most once per frame, with the latest arguments. */
export function onFrame(work) {
  let wanted = null;
  return (...values) => {
    if (!wanted) requestAnimationFrame(() => { const last = wanted; wanted = null; work(...last); });
    wanted = values;
  };
}

export function count(number, one, many = `${one}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

/** A date of the proleptic Gregorian calendar, given in milliseconds since 1970, without needless zeros. */
export function dateText(milliseconds) {
  const date = new Date(milliseconds);
  return Number.isNaN(date.getTime()) ? "–" : date.toISOString().replace(/(:00)?\.000Z$/, "").replace(/T00:00$/, "").replace("Z", "");
}

/** Formats a number briefly, without misleading rounding. */
export function readable(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "bigint") return value.toString();
  if (typeof value !== "number") return String(value);
  if (Number.isNaN(value)) return "NaN";
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return String(value);
  return String(Number(value.toPrecision(7)));
}
