// Runs the page's requests against a server: node page.mjs PAGE URL

import assert from "node:assert/strict";
import { register } from "node:module";
import { pathToFileURL } from "node:url";

const [page, base] = process.argv.slice(2);
const folder = JSON.stringify(`${pathToFileURL(page)}/`);
// The page's modules name each other by their address on the server.
const hooks = `export const resolve = (name, context, next) => name.startsWith("/view/")
  ? { url: ${folder} + name.slice(6), format: "module", shortCircuit: true } : next(name, context);
export const load = async (url, context, next) => url.startsWith(${folder})
  ? { format: "module", source: await (await import("node:fs/promises")).readFile(new URL(url)), shortCircuit: true } : next(url, context);`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);
const ask = globalThis.fetch;
globalThis.fetch = (url, options) => ask(new URL(url, base), options);

const server = await import("/view/server.js");
const json = await import("/view/json.js");

// Packed values are decoded wherever they are shown with the unit.
const t = await server.node("p.nc", "/t");
const { values } = await server.numbers("p.nc", t, ":");
assert.ok(Math.abs(values[0] - 270) < 1e-9 && Number.isNaN(values[1]), `${values}`);
const listed = await server.values("p.nc", t, ":");
assert.ok(Math.abs(listed[0] - 270) < 1e-9 && listed[1] === null, `${listed}`);

// 64-bit integers keep all their digits.
const largest = 2n ** 64n - 1n;
const ids = await server.node("p.nc", "/ids");
assert.equal(ids.attributes.largest, largest);
assert.deepEqual(await server.values("p.nc", ids, ":"), [largest, 0, 5]);
const numbers = await server.numbers("p.nc", ids, ":");
assert.deepEqual([...numbers.exact], [largest, 0n, 5n]);
assert.equal(json.shown([largest, "18446744073709551615", { a: -9007199254740993n }]), '[18446744073709551615,"18446744073709551615",{"a":-9007199254740993}]');

// Texts and fractions with many digits stay what they are.
const text = '{"a": "12345678901234567890 \\"98765432109876543210", "b": 0.12345678901234567, "c": [-9007199254740993, 1e300, 1234567890123456]}';
assert.deepEqual(json.parse(text), { a: '12345678901234567890 "98765432109876543210', b: 0.12345678901234567, c: [-9007199254740993n, 1e300, 1234567890123456] });

const listing = await server.files("");
assert.equal(listing.next, null);
assert.ok(listing.entries.some((entry) => entry.name === "p.nc"));
assert.equal(listing.entries.find((entry) => entry.name === "dates.h5").format, "npy");

// Dates are drawn as instants, and "not a time" as a gap.
const { instants } = await import("/view/array.js");
const { dateTicks } = await import("/view/draw.js");
const { dateText } = await import("/view/dom.js");
const days = await server.node("dates.npy", "/");
const ticks = await server.numbers("dates.npy", days, ":");
assert.deepEqual([...ticks.values], [18262, NaN, 18322]);
assert.deepEqual([...ticks.values].map(instants(days)).map(dateText), ["2020-01-01", "–", "2020-03-01"]);
const counted = instants({ dtype: "int32", attributes: { units: "hours since 2020-01-01" } });
assert.equal(dateText(counted(25)), "2020-01-02T01:00");
assert.equal(instants({ dtype: "int32", attributes: { units: "K" } }), null);
const [low, high] = [Date.UTC(2020, 0, 20), Date.UTC(2020, 3, 2)];
assert.deepEqual(dateTicks(low, high, 3).map(dateText), ["2020-02-01", "2020-03-01", "2020-04-01"]);
assert.deepEqual(dateTicks(low, low + 10 * 3_600_000, 3).map(dateText), ["2020-01-20", "2020-01-20T06:00"]);
