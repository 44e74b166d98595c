// The page with very much in it, and how long it takes:
//   node many.mjs <chromium> <address> <link> <actors> <characters> <names> <figures>
//
// The link logs the browser in; `actors` is how many there are at least; `characters` how
// long a message is that is said here, and said again by an agent; `names` are of people,
// as JSON. Writes the figures into a file, as JSON: of each view the milliseconds until the
// server answered (`server`) and until something was seen (`paint`), the size of what came
// (`bytes`) and of what is shown (`nodes`); of live updates how long they took. What is
// larger than its bound, or grows, ends it with an error; how long things take does not, as
// machines differ.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { chromium } from "playwright-core";

const [program, address, link, actors, characters, names, figures] = process.argv.slice(2);
// Three times as much as is seen: only what grows with what there is goes beyond it.
const MOST_BYTES = 600_000;
const MOST_NODES = 30_000;
// Each is a message and its answer: a chat that is open shows 200 messages.
const ROUNDS = 110;
const troubles = [];
const found = { views: {}, live: {}, memory: {} };

const browser = await chromium.launch({
  executablePath: program,
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
});

const count = async (cdp, name) => {
  await cdp.send("HeapProfiler.collectGarbage");
  const { metrics } = await cdp.send("Performance.getMetrics");
  return metrics.find((each) => each.name === name).value;
};
const measured = async (page) => {
  await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint").length > 0);
  return page.evaluate(() => {
    const [navigation] = performance.getEntriesByType("navigation");
    const walker = document.createTreeWalker(document);
    let nodes = 1;
    while (walker.nextNode()) nodes += 1;
    return {
      server: Math.round(navigation.responseStart),
      paint: Math.round(performance.getEntriesByName("first-contentful-paint")[0].startTime),
      bytes: navigation.decodedBodySize,
      wide: document.documentElement.scrollWidth - window.innerWidth,
      nodes,
    };
  });
};

try {
  const context = await browser.newContext({ viewport: { width: 390, height: 780 } });
  context.setDefaultTimeout(60000);
  context.on("console", (told) => {
    if (["error", "warning"].includes(told.type())) troubles.push(told.text());
  });
  context.on("weberror", (error) => troubles.push(String(error.error())));
  const page = await context.newPage();
  const cdp = await context.newCDPSession(page);
  await cdp.send("Performance.enable");
  await page.goto(`${address}/login/${link}`);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.waitForURL("**/chat/**");

  // What is said in the page itself, by its own form.
  const say = (text) => page.evaluate(async (words) => {
    const { action, elements } = document.getElementById("say");
    const key = crypto.randomUUID().replaceAll("-", "");
    const csrf = elements.namedItem("csrf").value;
    const body = new URLSearchParams({ csrf, key, text: words, files: "" });
    const answer = await fetch(action, { method: "POST", headers: { accept: "application/json" }, body });
    const { id, error } = await answer.json();
    if (!answer.ok) throw new Error(error);
    return id;
  }, text);
  const heard = (text) => page.locator("article.said.agent:not(.writing)", { hasText: text }).last().waitFor();

  // A live update: from the words being sent to the answer being seen.
  await page.goto(`${address}/chat/with/ben`);
  for (const [name, words, answer] of [["little", "hello", "Ben"], ["very much", `very much ${"of words ".repeat(characters / 9)}the end`, "very much"]]) {
    const began = performance.now();
    const id = await say(words);
    await page.locator(`#m-${id}`).waitFor({ state: "attached" });
    const said = performance.now();
    await heard(answer);
    found.live[name] = { said: Math.round(said - began), answered: Math.round(performance.now() - began) };
  }
  const shown = await page.locator("article.said.agent").last().evaluate((each) => each.textContent.length);
  found.live["very much"].shown = shown;

  await page.goto(`${address}/queue?state=completed`);
  const long = await page.locator("#listed tbody a").first().getAttribute("href");
  await page.goto(`${address}/conversations?agent=ben`);
  const talk = await page.locator("main tbody a").first().getAttribute("href");
  const views = {
    "chat": "/chat/with/anna", "chat, long message": "/chat/with/ben", "overview": "/overview",
    "actors": "/actors", "actors, all": "/actors?show=all", "actors, one found": "/actors?find=anna",
    "conversations": "/conversations", "conversation, long message": talk,
    "messages": "/queue", "messages, all": "/queue?state=all", "message, long": long, "messages, none found": "/queue?find=nothing+like+this",
    "schedule": "/schedule", "people": "/people", "people, found": "/people?find=sam", "usage": "/usage", "audit": "/audit",
    "settings": "/settings", "settings, all": "/settings?all=1",
  };
  for (const [name, path] of Object.entries(views)) {
    await page.goto(address + path);
    const it = found.views[name] = await measured(page);
    if (it.bytes > MOST_BYTES) troubles.push(`${name}: ${it.bytes} bytes`);
    if (it.nodes > MOST_NODES) troubles.push(`${name}: ${it.nodes} nodes`);
    if (it.wide > 0) troubles.push(`${name}: ${it.wide} px wider than a phone`);
  }
  await page.goto(`${address}/actors`);
  const all = await page.locator("#which a").last().locator(".soft").textContent();
  assert.ok(Number(all.replaceAll(",", "")) >= Number(actors), `${all} actors`);

  // People of every script are found by their names, as they wrote them.
  for (const name of JSON.parse(names)) {
    await page.goto(`${address}/people?find=${encodeURIComponent(name)}`);
    const told = await page.locator("#known tbody a").allTextContents();
    // What turns the direction of a line around is shown as a box, so that no name can.
    const safe = name.replace(/[\u202a-\u202e]/gu, "\ufffd");
    if (!told.includes(safe)) troubles.push(`${JSON.stringify(name)} is not among ${JSON.stringify(told.slice(0, 3))}`);
  }

  // Memory of a tab: as many live updates as an hour has, faster; what is left afterwards.
  await page.goto(`${address}/overview`);
  const other = await context.newPage();
  const otherCdp = await context.newCDPSession(other);
  await otherCdp.send("Performance.enable");
  await other.goto(`${address}/chat/with/anna`);
  const tabs = { overview: [page, cdp], chat: [other, otherCdp] };
  const weigh = async () => Object.fromEntries(await Promise.all(Object.entries(tabs).map(
    async ([name, [, each]]) => [name, { heap: await count(each, "JSHeapUsedSize"), nodes: await count(each, "Nodes"), listeners: await count(each, "JSEventListeners") }],
  )));
  const live = async (rounds) => {
    for (let round = 0; round < rounds; round += 1) {
      await other.evaluate(async (words) => {
        const { action, elements } = document.getElementById("say");
        const body = new URLSearchParams({ csrf: elements.namedItem("csrf").value, key: crypto.randomUUID().replaceAll("-", ""), text: words, files: "" });
        await fetch(action, { method: "POST", headers: { accept: "application/json" }, body });
      }, `hello ${round}`);
    }
    await other.waitForTimeout(1000);
  };
  await live(ROUNDS);
  const first = await weigh();
  await live(ROUNDS);
  const last = await weigh();
  found.memory = { first, last };
  for (const name of Object.keys(tabs)) {
    for (const what of ["heap", "nodes", "listeners"]) {
      if (last[name][what] > 1.25 * first[name][what]) troubles.push(`${name}: ${what} grew from ${first[name][what]} to ${last[name][what]}`);
    }
  }
  console.log(JSON.stringify(found, null, 1));
  assert.deepEqual(troubles, []);
} finally {
  writeFileSync(figures, JSON.stringify(found, null, 1));
  await browser.close();
}
