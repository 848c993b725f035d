// The pictures of docs/UI.md.
//
//     node pictures.mjs ROOM URL RUN OUT
import { createRequire } from "node:module";
import path from "node:path";

const [room, url, run, out] = process.argv.slice(2);
const { chromium } = createRequire(path.join(room, "node_modules/"))("playwright-core");
const at = (place) => new URL(place, url).href;
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });

async function picture(name, place, options) {
  const context = await browser.newContext({ viewport: { width: 1120, height: 700 }, ...options });
  const page = await context.newPage();
  await page.goto(url);
  await page.waitForURL(at("/"));
  await page.goto(at(typeof place === "string" ? place : await place(page)));
  await page.waitForTimeout(300);
  // The path of the temporary project would only confuse readers of the picture.
  await page.evaluate(() => document.querySelectorAll("dd.path").forEach((one) => { one.textContent = "/home/ann/shop"; }));
  await page.screenshot({ path: path.join(out, `${name}.png`) });
  await context.close();
}

const from = (selector) => async (page) => {
  await page.goto(at(`/runs/${run}`));
  return page.locator(selector).first().getAttribute("href");
};
await picture("ui-run", `/runs/${run}`, {});
await picture("ui-point", from(".entry.point:has(.created):has(.modified) a.title"), {});
await picture("ui-plan", from(".entry:has(.created):has(.modified) a[data-undo]"), { viewport: { width: 1120, height: 1080 } });
await picture("ui-timeline", "/", {});
await picture("ui-timeline-dark", "/", { colorScheme: "dark", viewport: { width: 1120, height: 560 } });
await picture("ui-narrow", `/runs/${run}`, { viewport: { width: 390, height: 760 } });
await browser.close();
