// Requests to the server.

import { parse } from "/view/json.js";

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
  return parse(await (await fetched(address(endpoint, parameters), signal)).text());
}

export const about = () => ask("api/about");
export const files = (folder, offset = 0) => ask("api/files", { folder, offset });
export const node = (file, path) => ask("api/node", { file, path });
export const children = (file, path, offset = 0, limit = 200) => ask("api/children", { file, path, offset, limit });
export const paths = (file) => ask("paths", { file, path: "/" });
export const table = (file, path, offset, limit, signal) => ask("api/table", { file, path, offset, limit }, signal);
export const geometry = (file, path, level, box) => ask("api/geometry", { file, path, level, box });
export const exportAddress = (file, path, format, selection) => address("data", { file, path, format, selection });

/** The typed array for the values of an array, decoded if the file's conventions apply; `null` if they are not numeric. */
export function typed(node) {
  const dtype = node.decoded ?? node.dtype;
  if (node.nullable && /^(u?int|float|bool)/.test(dtype)) return Float64Array;
  const name = dtype === "enum" ? node.enum.base : dtype;
  const kinds = {
    bool: Uint8Array, int8: Int8Array, int16: Int16Array, int32: Int32Array, int64: BigInt64Array,
    uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, uint64: BigUint64Array,
    float16: Float32Array, float32: Float32Array, float64: Float64Array, float128: Float64Array,
    complex64: Float32Array, complex128: Float64Array,
  };
  if (/^(datetime64|timedelta64)/.test(name)) return BigInt64Array;
  return kinds[name] ?? null;
}

const NOT_A_TIME = -(2n ** 63n);
const isTime = (node) => /^(datetime64|timedelta64)/.test(node.decoded ?? node.dtype);

export const isComplex = (node) => (node.decoded ?? node.dtype).startsWith("complex");

const endpointOf = (node) => (node.decoded ? "api/data" : "data");

/**
 * The selected numbers, decoded if the file's conventions apply. Complex numbers become their magnitudes, 64-bit integers become
 * floats, with the integers as `exact`, and "not a time" NaN.
 */
export async function numbers(file, node, selection, signal) {
  const url = address(endpointOf(node), { file, path: node.path, format: "bin", dtype: "safe", selection });
  const raw = new (typed(node))(await (await fetched(url, signal)).arrayBuffer());
  if (isComplex(node)) {
    const values = new Float64Array(raw.length / 2);
    for (let i = 0; i < values.length; i++) values[i] = Math.hypot(raw[2 * i], raw[2 * i + 1]);
    return { values };
  }
  // The smallest integer is "not a time".
  if (isTime(node)) return { values: Float64Array.from(raw, (tick) => (tick === NOT_A_TIME ? NaN : Number(tick))), exact: raw };
  if (raw instanceof BigInt64Array || raw instanceof BigUint64Array) return { values: Float64Array.from(raw, Number), exact: raw };
  return { values: raw };
}

/** Values of any type as JSON, decoded if the file's conventions apply. */
export const values = (file, node, selection, signal) => ask(endpointOf(node), { file, path: node.path, selection }, signal);
