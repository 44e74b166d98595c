// What operators come for, by real clicks, counted; and the page in bad circumstances:
//   node tasks.mjs <chromium> <python> <settings> <address> <failed>
//
// It serves the company of the settings itself, as it also kills it. Each task begins on
// the overview, and may take three clicks; a choice from a list counts as one. Anything that is not as it should be ends it
// with an error; prints how many clicks each task took.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chromium } from "playwright-core";

const [program, python, settings, address, failed] = process.argv.slice(2);
const MOST = 3;
const troubles = [];
let isGone = false;

let server;
const serve = async () => {
  server = spawn(python, ["-m", "connectors", "serve", "--config", settings], { stdio: ["ignore", "pipe", "inherit"] });
  const [said] = await Promise.race([once(server.stdout, "data"), once(server, "exit").then(() => { throw new Error("it did not start"); })]);
  assert.match(String(said), /http/);
};
const kill = async () => { const over = once(server, "exit"); server.kill("SIGKILL"); await over; };

const browser = await chromium.launch({
  executablePath: program,
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
});
const logIn = async (options = {}) => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  context.setDefaultTimeout(10000);
  context.on("console", (message) => {
    if (["error", "warning"].includes(message.type()) && !isGone) troubles.push(message.text());
  });
  context.on("weberror", (error) => troubles.push(String(error.error())));
  const page = await context.newPage();
  const made = execFileSync(python, ["-m", "connectors", "login", "--config", settings], { encoding: "utf8" });
  await page.goto(made.trim().split("\n").at(-1));
  await page.getByRole("button", { name: "Log in" }).click();
  await page.waitForURL("**/chat/**");
  return page;
};

const task = async (page, name, run) => {
  await page.goto(`${address}/overview`);
  let clicks = 0;
  await run({
    click: async (place) => { clicks += 1; await place.click(); },
    choose: async (place, value) => { clicks += 1; await place.selectOption(value); },
  });
  assert.ok(clicks <= MOST, `${name}: ${clicks} clicks`);
  console.log(`${clicks} ${name}`);
};
const view = (page, name) => page.locator("#views").getByRole("link", { name });
const saved = (page) => page.getByText("in force within some seconds").waitFor();

try {
  await serve();
  const page = await logIn();

  // Twice: at a desk by somebody who has never seen it, and at night on a phone. On the
  // phone the views are behind a menu, which counts as a click of its own.
  const night = await logIn({ viewport: { width: 390, height: 780 }, colorScheme: "dark", hasTouch: true, isMobile: true });
  for (const [where, open, it] of [
    ["", page, { limit: "25.5", who: "Nadia", agent: "anna" }],
    ["at night, on a phone: ", night, { limit: "24.5", who: "Пётр", agent: "ben" }],
  ]) {
    const isPhone = open === night;
    const go = async (click, name) => {
      if (isPhone) await click(open.getByRole("button", { name: "Menu" }));
      await click(view(open, name));
    };
    const fact = (name) => open.locator("#charts .facts").getByRole("link", { name });

    await task(open, `${where}why was this message not answered`, async ({ click }) => {
      await click(fact("Failed"));
      await click(open.locator(`[id="job-${failed}"] a`).first());
      await open.locator("#about strong.bad").waitFor();
      await open.locator("#life").getByText("the model could not answer").first().waitFor();
    });

    await task(open, `${where}stop what costs money: an answer that is being made`, async ({ click }) => {
      const other = await open.context().newPage();
      await other.goto(`${address}/chat/with/anna`);
      await other.getByLabel(/^Message to/).fill("tell me a story");
      await other.keyboard.press("Enter");
      await other.locator("article.writing").first().waitFor();
      await go(click, "Messages");
      await click(open.locator('[id^="stop-"]').first());
      await open.getByText("is being stopped").waitFor();
      await other.close();
    });

    await task(open, `${where}stop what costs money: lower a budget`, async ({ click }) => {
      await click(fact("Spent since the start"));
      await click(open.locator('[id="change-budgets[0].hard_usd"]'));
      await open.locator("#value").fill(it.limit);
      await open.locator("#difference").getByText(`budgets[0].hard_usd = ${it.limit}`).first().waitFor();
      await click(open.locator("#save"));
      await saved(open);
    });

    await task(open, `${where}let a stranger in`, async ({ click }) => {
      await click(open.locator("#todo li", { hasText: it.who }).getByRole("link"));
      await click(open.locator("#requests li", { hasText: it.who }).getByRole("button", { name: "Let in" }));
      await open.getByText("may write").waitFor();
    });

    await task(open, `${where}change a model`, async ({ click, choose }) => {
      await click(fact("Which model each agent asks"));
      await choose(open.locator("#models form", { hasText: it.agent }).locator("select"), '"second"');
      await click(open.locator("#save"));
      await saved(open);
    });

    await task(open, `${where}what anna knows about Sam, of two people called Sam`, async ({ click }) => {
      await go(click, "People");
      const both = open.locator("main tr", { has: open.getByRole("link", { name: "Sam", exact: true }) });
      assert.equal(await both.count(), 2);
      const told = await both.allInnerTexts();
      assert.equal(new Set(told).size, 2, "the two look the same");
      await click(both.filter({ hasText: "cli/sam" }).getByRole("link"));
      await open.locator("td", { hasText: /^likes green tea/ }).waitFor();
      await open.getByText("cli/sam").first().waitFor();
    });
  }
  await night.context().close();

  // What somebody points at stays where it is, whatever comes in meanwhile.
  await page.goto(`${address}/actors`);
  const others = await Promise.all(["anna", "ben"].map(async (agent) => {
    const other = await page.context().newPage();
    await other.goto(`${address}/chat/with/${agent}`);
    return other;
  }));
  const begin = async (other) => {
    await other.getByLabel(/^Message to/).fill("tell me a story");
    await other.keyboard.press("Enter");
    await other.locator("article.writing").first().waitFor();
  };
  const rows = page.locator('#working [id^="work-"]');
  await begin(others[0]);
  const stop = rows.first().getByRole("button");
  await stop.hover();
  const box = await stop.boundingBox();
  const aimed = await stop.elementHandle();
  await begin(others[1]);
  for (let each = 0; each < 30; each += 1) {
    await page.mouse.move(box.x + 5 + each % 2, box.y + 5);
    assert.equal(await rows.count(), 1, "a row came while a button was pointed at");
    assert.deepEqual(await stop.boundingBox(), box, "the button moved");
    await page.waitForTimeout(100);  // more than one update is sent meanwhile
  }
  await page.mouse.move(0, 0);
  await rows.nth(1).waitFor();
  assert.ok(await stop.evaluate((one, other) => one === other, aimed), "the button is another one");
  await stop.click();
  await page.getByText("is being stopped").waitFor();
  await others[1].getByRole("button", { name: "Stop" }).click();
  await others[1].locator("article.writing").waitFor({ state: "detached" });
  for (const each of others) await each.close();
  console.log("what is pointed at stays, and what came meanwhile is shown afterwards");

  const plain = await logIn({ javaScriptEnabled: false });
  await task(plain, "without a script: lower a budget (one click more, to check)", async ({ click }) => {
    await plain.goto(`${address}/usage`);
    await click(plain.locator('[id="change-budgets[0].hard_usd"]'));
    await plain.locator("#value").fill("21.5");
    await click(plain.getByRole("button", { name: "Check" }));
    await click(plain.locator("#save"));
    await saved(plain);
  });
  await plain.context().close();

  const slow = await page.context().newCDPSession(page);
  await slow.send("Network.emulateNetworkConditions", {
    offline: false, latency: 400, downloadThroughput: 40_000, uploadThroughput: 20_000,
  });
  await page.goto(`${address}/chat/with/ben`);
  await page.getByLabel(/^Message to/).fill("what is 12 * 7");
  await page.keyboard.press("Enter");
  await page.locator("article.said.agent", { hasText: "84" }).waitFor();
  assert.equal(await page.locator("article.person", { hasText: "what is 12 * 7" }).count(), 1);
  await slow.detach();
  console.log("a slow network: said once, answered");

  isGone = true;
  await kill();
  await page.locator("#trouble").waitFor();
  await page.getByLabel(/^Message to/).fill("what is 11 * 7");
  await page.keyboard.press("Enter");
  await page.getByText("Your words are still here").waitFor();
  assert.equal(await page.getByLabel(/^Message to/).inputValue(), "what is 11 * 7");
  await serve();
  await page.locator("#trouble").waitFor({ state: "hidden", timeout: 30000 });
  isGone = false;
  await page.getByLabel(/^Message to/).press("Enter");
  await page.locator("article.said.agent", { hasText: "77" }).waitFor();
  assert.equal(await page.locator("article.person", { hasText: "what is 11 * 7" }).count(), 1);
  console.log("killed and back: told, nothing lost, said once");

  assert.deepEqual(troubles, [], "the console is not empty");
} finally {
  await browser.close();
  server.kill("SIGKILL");
}
