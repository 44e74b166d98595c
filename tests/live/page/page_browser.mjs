// The web page in a real browser: node page_browser.mjs <chromium> <address> <folder> <link>…
//
// Each link logs one browser in. Prints how many steps there were; anything that is not
// as it should be ends it with an error. Pictures of what it saw are left in the folder.

import assert from "node:assert/strict";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [program, address, folder, ...links] = process.argv.slice(2);
const troubles = [];
let steps = 0;
const step = (text) => { steps += 1; console.error(`${steps} ${text}`); };

const browser = await chromium.launch({
  executablePath: program,
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
});

const noted = async (context) => {
  context.setDefaultTimeout(15000);
  await context.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => {
      console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`);
    });
  });
  context.on("console", (message) => {
    const isCut = message.text().includes("net::ERR_INTERNET_DISCONNECTED");
    if (["error", "warning"].includes(message.type()) && !isCut) troubles.push(message.text());
  });
  context.on("weberror", (error) => troubles.push(String(error.error())));
  return context;
};

const logIn = async (context) => {
  const page = await context.newPage();
  await page.goto(`${address}/login/${links.shift()}`);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.waitForURL("**/chat/**");
  return page;
};

const say = async (page, text) => {
  await page.getByLabel(/^Message to/).fill(text);
  await page.keyboard.press("Enter");
};
const heard = (page, text) => page.locator("article.said.agent", { hasText: text }).first().waitFor();
const picture = (page, name) => page.screenshot({ path: join(folder, `${name}.png`) });

try {
  const own = await noted(await browser.newContext({ viewport: { width: 1280, height: 800 } }));
  const page = await logIn(own);
  assert.match(page.url(), /\/chat\/with\/anna$/);
  step("a link logs a browser in");

  const second = await own.newPage();
  await second.goto(page.url());
  await page.evaluate(() => {
    window.seen = [];
    new MutationObserver(() => {
      for (const each of document.querySelectorAll("article.writing")) window.seen.push(each.id);
    }).observe(document.getElementById("log"), { childList: true, subtree: true, attributes: true });
  });
  await say(page, "hello, I am Sam");
  await Promise.all([heard(page, "Hello Sam"), heard(second, "Hello Sam")]);
  assert.equal(await page.getByLabel(/^Message to/).inputValue(), "");
  step("an answer is seen in both tabs");

  const grown = await page.evaluate(() => window.seen);
  const answer = await page.locator("article.said.agent", { hasText: "Hello Sam" }).getAttribute("id");
  assert.ok(grown.includes(answer), "it was not seen while it was written");
  assert.equal(await page.locator("article.writing").count(), 0);
  step("it was seen growing, in the place where it stands");

  await page.reload();
  assert.equal(await page.locator("article.said", { hasText: "Hello Sam" }).count(), 1);
  step("it is there once after the page is loaded anew");

  await say(page, "/help");
  await heard(page, "/stop");
  await say(page, "<img src=x onerror=alert(1)><b>bold</b>");
  await page.locator("article.person", { hasText: "<b>bold</b>" }).waitFor();
  assert.equal(await page.locator("article img, article.person b").count(), 0);
  step("commands work, and words are words");

  await page.locator(".chats a", { hasText: "lobby" }).focus();
  await page.keyboard.press("Enter");
  await page.waitForURL("**/chat/room/lobby");
  await say(page, "@ben what is 12 * 7");
  await heard(page, "84");
  step("a room is reached and used by the keyboard");

  const other = await noted(await browser.newContext({
    viewport: { width: 360, height: 740 }, colorScheme: "dark", hasTouch: true, isMobile: true,
  }));
  const phone = await logIn(other);
  await phone.goto(`${address}/chat/room/lobby`);
  await heard(phone, "84");
  await own.setOffline(true);
  await say(phone, "while you were away");
  await phone.locator("article.person", { hasText: "while you were away" }).waitFor();
  await own.setOffline(false);
  await page.locator("article.person", { hasText: "while you were away" }).waitFor();
  assert.equal(await page.locator("article.person", { hasText: "while you were away" }).count(), 1);
  step("what was said while the stream was cut is there, once");

  const plain = await noted(await browser.newContext({ javaScriptEnabled: false }));
  const still = await logIn(plain);
  await still.getByLabel(/^Message to/).fill("without a script");
  await still.getByRole("button", { name: "Send" }).click();
  await still.locator("article.person", { hasText: "without a script" }).waitFor();
  await plain.close();
  step("without a script one reads and writes, too");

  const paths = await page.locator("nav a").evaluateAll((all) => all.map((each) => each.pathname));
  for (const path of new Set(paths)) {
    for (const [where, width] of [[page, 1280], [phone, 360]]) {
      await where.goto(address + path);
      const wide = await where.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= width, `${path} is ${wide} px wide on ${width} px`);
      assert.equal(await where.getByRole("heading", { level: 1 }).count(), 1, path);
      const name = path.replaceAll("/", "-").slice(1) || "start";
      await where.waitForTimeout(150);
      await picture(where, `${name}-${width}`);
    }
  }
  await page.emulateMedia({ colorScheme: "dark" });
  await page.goto(`${address}/chat/with/anna`);
  await picture(page, "dark");
  step(`${new Set(paths).size} addresses fit a phone, and have one heading`);

  await page.goto(`${address}/chat/with/ben`);
  const first = page.locator("a, button, input, textarea").first();
  assert.equal(await first.getAttribute("class"), "skip");
  await first.focus();
  for (let press = 0; press < 6; press += 1) {
    await page.keyboard.press("Tab");
    const width = await page.evaluate(() => getComputedStyle(document.activeElement).outlineWidth);
    assert.ok(parseFloat(width) >= 2, "the focus is not seen");
  }
  step("the keyboard gets everywhere, and its place is seen");

  await page.locator("#look summary").click();
  await page.getByRole("button", { name: "Log out" }).click();
  await page.waitForURL("**/login");
  await second.goto(`${address}/chat/with/anna`);
  assert.match(second.url(), /\/login$/);
  step("who logs out is out, in all tabs");

  assert.deepEqual(troubles, [], "the console is not empty");
  console.log(`${steps} steps`);
} finally {
  await browser.close();
}
