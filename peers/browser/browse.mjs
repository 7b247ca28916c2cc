// Tests both pages in a real browser, and the Zarr endpoint with zarrita, on a store of every format.
// node browse.mjs TET SAMPLES PAGE SHOTS

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { once } from "node:events";
import path from "node:path";
import { chromium } from "playwright-core";
import * as zarr from "zarrita";

const [tet, samples, pageFolder, shots] = process.argv.slice(2);
const STORES = ["field.h5", "field.nc", "field.tiledb", "field.tet", "field.zarr"];
const SHAPE = [12, 45, 90];
const ARRAY = "/temperature";

/** Parses a single-precision `.npy` file. */
function npy(bytes) {
  const header = bytes.readUInt16LE(8);
  const text = bytes.subarray(10, 10 + header).toString();
  const from = 10 + header;
  const data = bytes.buffer.slice(bytes.byteOffset + from, bytes.byteOffset + bytes.length);
  return { shape: text.match(/'shape': \(([^)]*)\)/)[1].split(",").filter((part) => part.trim()).map(Number), values: new Float32Array(data), text };
}

const expected = npy(readFileSync(path.join(samples, "..", "temperature.npy")));
const at = (...place) => expected.values[(place[0] * SHAPE[1] + place[1]) * SHAPE[2] + place[2]];

async function start() {
  const server = spawn(tet, ["serve", samples, "--port", "0", "--page", pageFolder], { stdio: ["ignore", "pipe", "inherit"] });
  let told = "";
  for await (const part of server.stdout) {
    told += part;
    const url = told.match(/http:\/\/[^\s/]+\//);
    // Leaving the loop closes the pipe, so wait for the last line.
    if (url && told.includes("Ctrl-C")) return { server, url: url[0] };
  }
  throw new Error(`the server ended: ${told}`);
}

/** The content of a canvas as text. */
const pixels = (canvas) => canvas.evaluate((node) => node.toDataURL());

async function saved(page, click) {
  const [download] = await Promise.all([page.waitForEvent("download"), click()]);
  return readFileSync(await download.path());
}

async function ownPage(page, url, store) {
  await page.goto(`${url}view/#file=${store}`);
  await page.locator(`#tree [data-path='${ARRAY}'] > .row`).click();
  const canvas = page.locator("canvas[data-canvas]");
  await page.waitForFunction(() => document.querySelector("[data-drawn]"));
  await page.locator("h1", { hasText: "temperature" }).waitFor();
  const before = await pixels(canvas);
  const slider = page.locator("input[type=range][data-axis='0']");
  await slider.focus();
  const from = Number(await slider.inputValue());
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction((wanted) => document.querySelector("[data-drawn]")?.dataset.drawn?.startsWith(`${wanted},`), from + 1);
  const date = new Date(Date.UTC(2024, 0, 1 + 30 * (from + 1))).toISOString().slice(0, 10);
  await page.locator(".slider .at", { hasText: date }).waitFor();
  assert.notEqual(await pixels(canvas), before, `${store}: the picture changes with the slider`);
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + box.width * 0.4, box.y + box.height * 0.4);
  const told = await page.locator("[data-probe]").textContent();
  const [, place, value] = told.match(/\[([\d, ]+)\]\s+(-?[\d.]+)/) ?? assert.fail(`${store}: no value in ${told}`);
  const wanted = at(...place.split(",").map(Number));
  assert.ok(Math.abs(Number(value) - wanted) < 1e-3 * Math.abs(wanted), `${store}: ${told}, expected ${wanted}`);
  await page.screenshot({ path: path.join(shots, `own-${store}.png`) });
  const file = npy(await saved(page, () => page.locator("[data-export=npy]").click()));
  assert.deepEqual(file.shape, SHAPE.slice(1));
  const start = (from + 1) * SHAPE[1] * SHAPE[2];
  assert.deepEqual(file.values, expected.values.slice(start, start + SHAPE[1] * SHAPE[2]), `${store}: .npy`);
  for (const tab of ["Line", "Values"]) {
    await page.getByRole("tab", { name: tab }).click();
    await page.waitForTimeout(150);
    if (store === "field.h5") await page.screenshot({ path: path.join(shots, `own-${tab.toLowerCase()}.png`) });
  }
  await page.locator("table.grid td:not(.index)").first().waitFor();
  const search = page.locator("#search");
  await search.fill("temper");
  await page.locator(`#tree [data-path='${ARRAY}']`).waitFor();
  await page.waitForFunction(() => !document.querySelector("#tree [data-path$='/lat']"));
  await search.fill("");
  assert.equal(await page.locator("main b b, main td b").count(), 0, "text of a file is never markup");
}

async function ownGeometry(page, url) {
  await page.goto(`${url}view/#file=points.zv`);
  await page.waitForFunction(() => document.querySelector("[data-drawn]"));
  const canvas = page.locator("canvas[data-canvas]");
  const before = await pixels(canvas);
  await canvas.focus();
  await page.keyboard.press("ArrowRight");
  await page.waitForTimeout(150);
  assert.notEqual(await pixels(canvas), before, "the geometry turns");
  await page.screenshot({ path: path.join(shots, "own-points.png") });
}

async function h5web(page, url, store) {
  await page.goto(`${url}?file=${store}`);
  await page.locator(`[role=treeitem][data-path='${ARRAY}']`).click();
  await page.getByRole("tab", { name: "Heatmap" }).click();
  const canvas = page.locator("canvas").first();
  await canvas.waitFor();
  await page.waitForTimeout(700);
  const before = await canvas.screenshot();
  await page.locator("[role=slider][aria-orientation=vertical]").first().focus();
  await page.keyboard.press("ArrowUp");
  await page.waitForTimeout(900);
  assert.ok(!before.equals(await canvas.screenshot()), `${store}: H5Web's picture changes with the slider`);
  await page.screenshot({ path: path.join(shots, `h5web-${store}.png`) });
  await page.getByRole("tab", { name: "Matrix" }).click();
  const cells = page.getByRole("gridcell");
  await cells.first().waitFor();
  const shown = (await cells.allTextContents()).map(Number);
  assert.ok(shown.some((value) => Math.abs(value - at(1, 0, 0)) < 0.2), `${store}: the value ${at(1, 0, 0)} in the matrix: ${shown.slice(0, 9)}`);
  await page.getByRole("button", { name: "Export slice" }).click();
  const file = npy(await saved(page, () => page.getByText("Export to NPY").click()));
  const start = SHAPE[1] * SHAPE[2];
  assert.deepEqual([file.shape, file.values], [SHAPE.slice(1), expected.values.slice(start, 2 * start)], `${store}: .npy`);
  await page.getByRole("tab", { name: "Search" }).click();
  await page.getByLabel("Path to search").fill("temper");
  await page.getByText(ARRAY).first().waitFor();
}

/** What H5Web chooses by attributes and types: a default plot of NeXus, colours, a table of a compound type. */
async function h5webViews(page, url, store) {
  await page.goto(`${url}?file=${store}`);
  await page.getByRole("tab", { name: "NX Line" }).waitFor();
  await page.getByText("energy (keV)").waitFor();
  await page.locator("[role=treeitem][data-path='/rgb']").click();
  // The last tab that was used is chosen again, if there is one of its name.
  await page.getByRole("tab", { name: "RGB" }).click();
  await page.locator("canvas").first().waitFor();
  await page.waitForTimeout(500);
  await page.screenshot({ path: path.join(shots, `h5web-rgb-${store}.png`) });
  await page.getByRole("tab", { name: "Line" }).click();
  await page.locator("canvas").first().waitFor();
  if (store !== "views.h5") return;
  await page.locator("[role=treeitem][data-path='/peaks']").click();
  await page.getByRole("tab", { name: "Compound" }).waitFor();
  await page.getByRole("gridcell", { name: "Cu" }).waitFor();
  await page.screenshot({ path: path.join(shots, "h5web-compound.png") });
}

async function readZarr(url, store) {
  const root = await zarr.open(new zarr.FetchStore(`${url}zarr/${store}`), { kind: "group" });
  const array = await zarr.open(root.resolve(ARRAY.slice(1)), { kind: "array" });
  const all = await zarr.get(array);
  assert.deepEqual([all.shape, new Float32Array(all.data)], [SHAPE, expected.values], `${store}: zarrita`);
}

mkdirSync(shots, { recursive: true });
const { server, url } = await start();
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"],
});
let failed = 0;
const check = async (name, work) => {
  const begun = Date.now();
  try {
    await work();
    console.log(`ok      ${name}  ${Date.now() - begun} ms`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}\n${error.stack}`);
  }
};
// H5Web moves buttons that do not fit into a menu. How many fit depends on the fonts of the machine, so the window is wide.
const context = await browser.newContext({ viewport: { width: 1800, height: 960 }, acceptDownloads: true });
context.setDefaultTimeout(15_000);
for (const store of STORES) {
  await check(`zarrita ${store}`, () => readZarr(url, store));
  for (const [name, work] of [["our page", ownPage], ["H5Web", h5web]]) {
    const page = await context.newPage();
    const problems = [];
    page.on("pageerror", (error) => problems.push(error.message));
    await check(`${name} ${store}`, async () => { await work(page, url, store); assert.deepEqual(problems, []); });
    if (failed) await page.screenshot({ path: path.join(shots, `failed-${name.replace(" ", "-")}-${store}.png`) });
    await page.close();
  }
}
for (const store of ["views.h5", "views.zarr"]) {
  const page = await context.newPage();
  await check(`H5Web ${store}`, () => h5webViews(page, url, store));
  if (failed) await page.screenshot({ path: path.join(shots, `failed-H5Web-${store}.png`) });
  await page.close();
}
const page = await context.newPage();
await check("our page points.zv", () => ownGeometry(page, url));
await check("our page, a folder", async () => { await page.goto(`${url}view/`); await page.getByRole("link", { name: /field\.tet/ }).waitFor(); await page.screenshot({ path: path.join(shots, "own-folder.png") }); });
await page.emulateMedia({ colorScheme: "dark" });
await check("our page, dark", async () => { await page.goto(`${url}view/#file=field.h5&path=/temperature`); await page.waitForFunction(() => document.querySelector("[data-drawn]")); await page.screenshot({ path: path.join(shots, "own-dark.png") }); });
await browser.close();
server.kill();
await once(server, "exit");
if (failed) { console.log(`${failed} failed`); process.exit(1); }
