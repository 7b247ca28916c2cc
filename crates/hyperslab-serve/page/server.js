// Requests to the server.

const kept = new Map();

function address(endpoint, parameters) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== null) query.set(name, value);
  }
  return `/${endpoint}?${query}`;
}

async function fetched(url, signal) {
  const response = await fetch(url, { signal });
  if (response.ok) return response;
  const text = await response.text();
  let message = text;
  try { message = JSON.parse(text).message ?? text; } catch { /* not JSON */ }
  throw new Error(message || response.statusText);
}

export async function ask(endpoint, parameters = {}, signal) {
  return (await fetched(address(endpoint, parameters), signal)).json();
}

export const about = () => ask("api/about");
export const files = (folder) => ask("api/files", { folder });
export const node = (file, path) => ask("api/node", { file, path });
export const children = (file, path, offset = 0, limit = 200) => ask("api/children", { file, path, offset, limit });
export const paths = (file) => ask("paths", { file, path: "/" });
export const table = (file, path, offset, limit, signal) => ask("api/table", { file, path, offset, limit }, signal);
export const geometry = (file, path, level, box) => ask("api/geometry", { file, path, level, box });
export const exportAddress = (file, path, format, selection) => address("data", { file, path, format, selection });

/** The typed array for a NumPy-style type name; `null` if it is not numeric. */
export function typed(node) {
  if (node.nullable && /^(u?int|float|bool)/.test(node.dtype)) return Float64Array;
  const name = node.dtype === "enum" ? node.enum.base : node.dtype;
  const kinds = {
    bool: Uint8Array, int8: Int8Array, int16: Int16Array, int32: Int32Array, int64: BigInt64Array,
    uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, uint64: BigUint64Array,
    float16: Float32Array, float32: Float32Array, float64: Float64Array, float128: Float64Array,
    complex64: Float32Array, complex128: Float64Array,
  };
  if (/^(datetime64|timedelta64)/.test(name)) return BigInt64Array;
  return kinds[name] ?? null;
}

export const isComplex = (node) => node.dtype.startsWith("complex");

/** The selected numbers as floats. Complex numbers become their magnitudes. */
export async function numbers(file, node, selection, signal) {
  const key = JSON.stringify([file, node.path, selection]);
  if (kept.has(key)) return kept.get(key);
  const url = address("data", { file, path: node.path, format: "bin", dtype: "safe", selection });
  const raw = new (typed(node))(await (await fetched(url, signal)).arrayBuffer());
  let values;
  if (isComplex(node)) {
    values = new Float64Array(raw.length / 2);
    for (let i = 0; i < values.length; i++) values[i] = Math.hypot(raw[2 * i], raw[2 * i + 1]);
  } else if (raw instanceof BigInt64Array || raw instanceof BigUint64Array) {
    values = Float64Array.from(raw, Number);
  } else values = raw;
  values = withoutMissing(node, values);
  if (kept.size > 60) kept.delete(kept.keys().next().value);
  kept.set(key, values);
  return values;
}

/** Replaces values marked as missing by NaN, in a float copy. */
function withoutMissing(node, values) {
  const marks = [node.attributes?._FillValue, node.attributes?.missing_value].flat().filter((mark) => typeof mark === "number");
  if (!marks.length) return values;
  const narrow = node.dtype === "float32" ? marks.map(Math.fround) : marks;
  return Float64Array.from(values, (value) => (narrow.includes(value) ? NaN : value));
}

/** Values of any type as JSON, for a selection of `/data`. */
export const values = (file, path, selection, signal) => ask("data", { file, path, selection }, signal);
