// Tests the page in a real browser: its views, undo and redo by keyboard alone, updates while others write, and the checks of axe.
//
//     node browser.mjs ROOM URL PROJECT RUN OUT       ROOM has node_modules with playwright-core and axe-core
//
// Compares what the page says with the files of the project. The first difference ends the test.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const [room, url, project, run, out] = process.argv.slice(2);
const require = createRequire(path.join(room, "node_modules/"));
const { chromium } = require("playwright-core");
const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const ic = (...words) => execFileSync(process.env.IC, words, { cwd: project, encoding: "utf8" }).trim();
const has = (name) => fs.existsSync(path.join(project, name));
const at = (place) => new URL(place, url).href;
fs.mkdirSync(out, { recursive: true });

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
const complaints = [];

async function enter(options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  // The browser reports a deliberately refused request as an error of the network: that is not an error of the page.
  page.on("console", (message) => {
    if (message.type() === "error" && !message.text().includes("status of 4")) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  await page.goto(url);
  await page.waitForURL(at("/"));
  return { context, page };
}

// axe finds nothing on any page, in both themes, at the width of a telephone, a desktop and a large screen.
async function looks() {
  const places = await addresses();
  let checked = 0;
  const wrong = [];
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [390, 1280, 2560]) {
      const { context, page } = await enter({ colorScheme, viewport: { width, height: 900 } });
      for (const [name, place] of Object.entries(places)) {
        await page.goto(at(place));
        await page.evaluate(axe.toString());
        const found = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
        const said = found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.target.join(" ")).join("; ")}`);
        wrong.push(...said.map((one) => `${name}, ${colorScheme}, ${width}: ${one}`));
        const wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
        if (wide) wrong.push(`${name}, ${width}: it scrolls sideways`);
        await page.screenshot({ path: path.join(out, `${name}-${colorScheme}-${width}.png`), fullPage: true });
        checked += 1;
      }
      await context.close();
    }
  }
  assert.deepEqual(wrong, []);
  console.log(`${checked} pages without a finding of axe`);
}

async function addresses() {
  const { context, page } = await enter({});
  await page.goto(at(`/runs/${run}`));
  const link = (selector) => page.locator(selector).first().getAttribute("href");
  const point = await link(".entry.point:has(.files) a.title");
  const places = {
    timeline: "/",
    runs: "/runs",
    run: `/runs/${run}`,
    point,
    "side-by-side": `${point}&view=split`,
    "tree-now": `${point}&show=now`,
    undo: await link("a[data-undo]"),
    dispatch: await link("a.bar.completed"),
    rollback: await link(".entry.rollback a.title"),
    redo: await link(".entry.rollback a[data-redo]"),
    events: "/events",
    verify: "/events/verify",
    search: "/search?q=card",
    compare: "/compare",
    nothing: "/runs/aaaaaaaa",
  };
  await context.close();
  return places;
}

// In the browser: closes the dialog and types before anything is drawn, as with a fast user or on a busy machine. Is a line marked then?
function typedAtOnce() {
  const dialog = document.getElementById("keys");
  dialog.showModal();
  dialog.close();
  document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "j", bubbles: true }));
  return document.querySelector("[data-row].at") !== null;
}

// In the browser: the line that is marked, and whether it cannot be undone.
function marked() {
  const row = document.querySelector("[data-row].at");
  return row && { title: row.querySelector("[data-open]").getAttribute("href"), isKept: !row.querySelector("[data-undo]") };
}

// With the keys alone: find the run, go to its newest point, plan, confirm, see the file gone, redo, see it back.
async function keys() {
  const { context, page } = await enter({});
  await page.keyboard.press("?");
  assert.equal(await page.locator("#keys").evaluate((one) => one.open), true);
  await page.keyboard.press("Escape");
  assert.equal(await page.evaluate(typedAtOnce), true, "a key right after the dialog was closed is heard");
  await page.goto(at("/runs"));
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.waitForURL(at(`/runs/${run}`));
  await page.keyboard.press("j");
  await page.keyboard.press("k");
  await page.keyboard.press("u");
  await page.waitForURL(/\/undo\?/);
  assert.equal(has("late.txt"), true);
  await page.locator("#reason").focus();
  await page.keyboard.type("not like that");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/rollbacks\//);
  await page.getByText("It is done").waitFor();
  assert.equal(has("late.txt"), false, "the file is gone from the tree");
  assert.match(ic("rollback", "list", "--json"), /not like that/);
  await page.keyboard.press("r");
  await page.waitForURL(/\/redo/);
  await page.locator("main button").focus();
  await page.keyboard.press("Enter");
  await page.getByText("It was undone itself").waitFor();
  assert.equal(has("late.txt"), true, "the file is back");
  // On a line that cannot be undone the key must not act on another line.
  await page.goto(at(`/runs/${run}`));
  const lines = await page.locator("[data-row]").count();
  for (let n = 0; n < lines && !(await page.evaluate(marked))?.isKept; n += 1) await page.keyboard.press("j");
  assert.equal((await page.evaluate(marked)).isKept, true, "the rollback stands in the list");
  await page.keyboard.press("u");
  await page.waitForTimeout(500);
  assert.equal(page.url(), at(`/runs/${run}`), "nothing is planned");
  await page.keyboard.press("/");
  await page.keyboard.type("card");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/search\?q=card/);
  console.log("undone and redone with the keys alone");
  await context.close();
}

// A new line above must not move the mark to another line, whether the marked line has the focus or not.
async function marks() {
  const { context, page } = await enter({});
  await page.goto(at(`/runs/${run}`));
  for (let n = 0; n < 2; n += 1) await page.keyboard.press("j");
  for (const hasFocus of [true, false]) {
    const before = await page.evaluate(marked);
    assert.notEqual(before, null, "a line is marked");
    if (!hasFocus) await page.evaluate(() => document.activeElement.blur());
    ic("checkpoint", "create", "--run", run, "--message", `above, ${hasFocus}`);
    await page.locator("[data-row]", { hasText: `above, ${hasFocus}` }).waitFor();
    assert.deepEqual(await page.evaluate(marked), before, `the mark stays, ${hasFocus}`);
  }
  console.log("a mark stays on its line");
  await context.close();
}

// Without scripts everything works except live updates.
async function plain() {
  const { context, page } = await enter({ javaScriptEnabled: false });
  await page.goto(at(`/runs/${run}`));
  await page.locator("a[data-undo]").first().click();
  await page.locator("button.danger").click();
  await page.getByText("It is done").waitFor();
  assert.equal(has("late.txt"), false);
  await page.locator("main a[data-redo]").click();
  await page.locator("main button").click();
  await page.getByText("It was undone itself").waitFor();
  assert.equal(has("late.txt"), true);
  await page.locator("form.theme button").click();
  assert.equal(await page.locator("html").getAttribute("data-theme"), "light");
  console.log("undone and redone without a script");
  await context.close();
}

// A browser that follows: what others do appears without a reload, and memory does not grow. SECONDS: how long.
async function follow(seconds) {
  const { context, page } = await enter({});
  await page.goto(at("/events"));
  await page.locator(".live:not([hidden])").waitFor();
  const devtools = await context.newCDPSession(page);
  const heap = async () => {
    await devtools.send("HeapProfiler.collectGarbage");
    return (await devtools.send("Runtime.getHeapUsage")).usedSize;
  };
  const end = Date.now() + seconds * 1000;
  let first, written = 0;
  while (Date.now() < end) {
    for (let n = 0; n < 5; n += 1, written += 1) ic("checkpoint", "create", "--run", run, "--message", `followed ${written}`);
    const head = JSON.parse(ic("events", "tail", "--limit", "1", "--json"))[0].seq;
    await page.locator(`#e${head}`).waitFor({ timeout: 15000 });
    first ??= await heap();
  }
  const last = await heap();
  const rows = await page.locator(".events > li").count();
  assert.ok(rows <= 100, `${rows} rows`);
  assert.ok(last < first * 1.5 + 2e6, `the page grew from ${first} to ${last} bytes`);
  console.log(`followed ${written} checkpoints for ${seconds} s; the page had ${first} bytes, then ${last}`);
  await context.close();
}

await keys();
await plain();
await looks();
await marks();
await follow(Number(process.env.SECONDS_TO_FOLLOW ?? 20));
assert.deepEqual(complaints, []);
await browser.close();
