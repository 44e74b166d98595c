// The operator's views in a real browser:
//   node panels_browser.mjs <chromium> <address> <folder> <link> <failed> <waiting>
//
// The link logs the browser in; the others are ids of messages in its database. Prints
// how many steps there were; pictures of what it saw are left in the folder.

import assert from "node:assert/strict";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [program, address, folder, link, failed, waiting] = process.argv.slice(2);
const troubles = [];
let steps = 0;
const step = (text) => { steps += 1; console.error(`${steps} ${text}`); };

const browser = await chromium.launch({
  executablePath: program,
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
});
const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
context.setDefaultTimeout(15000);
context.on("console", (message) => {
  if (["error", "warning"].includes(message.type())) troubles.push(message.text());
});
context.on("weberror", (error) => troubles.push(String(error.error())));

const session = "callboard/agents/anna/sessions/";
const row = (page, name) => page.locator(`[id^="actor-${name}"]`).first();

try {
  const page = await context.newPage();
  await page.goto(`${address}/login/${link}`);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.waitForURL("**/chat/**");
  const chat = page;
  const tree = await context.newPage();
  await tree.goto(`${address}/actors?show=all`);
  assert.equal(await row(tree, session).count(), 0);
  const ben = tree.locator('[id="open-callboard/agents/ben"]');
  await ben.locator("summary").first().click();
  assert.equal(await ben.getAttribute("open"), null);
  const kill = tree.locator('[id="actor-callboard/agents/anna/agent"] a.kill');
  await kill.focus();
  step("the tree stands, a branch is closed, a button has the focus");

  await chat.getByLabel(/^Message to/).fill("tell me a story");
  await chat.keyboard.press("Enter");
  await row(tree, "callboard/agents/anna/turns/").waitFor();
  await row(tree, session).waitFor();
  assert.equal(await ben.getAttribute("open"), null);
  assert.ok(await kill.evaluate((it) => it === document.activeElement), "the focus was lost");
  step("who works is seen at once; what was closed stays so, and so does the focus");

  await row(tree, session).locator("a.kill").click();
  await tree.getByRole("heading", { name: "Kill this actor?" }).waitFor();
  // Whoever presses Enter at once kills nobody.
  const leave = tree.getByRole("link", { name: "Leave it" });
  assert.ok(await leave.evaluate((it) => it === document.activeElement));
  await tree.screenshot({ path: join(folder, "kill.png") });
  await tree.getByRole("button", { name: "Kill it" }).click();
  await tree.getByText("its supervisor restarts it").waitFor();
  await row(tree, session).getByText("1 restart").waitFor();
  step("after a question a conversation is killed, and started again");

  await chat.locator("article.said.agent").first().waitFor();
  await chat.waitForFunction(() => !document.querySelector("article.writing"), null, { timeout: 60000 });
  assert.equal(await chat.locator("article.said.agent").count(), 1);
  step("it answers once");

  const queue = await context.newPage();
  await queue.goto(`${address}/queue`);
  await queue.locator(`[id="retry-${failed}"]`).click();
  await queue.getByText(`message ${failed} is tried again`).waitFor();
  const asked = [];
  queue.on("dialog", (dialog) => { asked.push(dialog.message()); dialog[asked.length > 1 ? "accept" : "dismiss"](); });
  await queue.locator(`[id="drop-${waiting}"]`).click();
  assert.equal(await queue.locator(`[id="job-${waiting}"]`).count(), 1);
  await queue.locator(`[id="drop-${waiting}"]`).click();
  await queue.getByText(`message ${waiting} is dropped`).waitFor();
  assert.equal(await queue.locator(`[id="job-${waiting}"]`).count(), 0);
  assert.equal(asked.length, 2);
  step("what failed is tried again, what waits is dropped after a question");

  const audit = await context.newPage();
  await audit.goto(`${address}/audit`);
  for (const word of ["kill callboard/", `retry ${failed}`, `drop ${waiting}`]) {
    await audit.getByText(word).first().waitFor();
  }
  step("all of it is on record");

  const views = [
    "overview", "people", "actors", "actors?show=all", "actors?top=callboard/agents", "conversations",
    "conversations?name=anna/cli/kitchen//sam", "queue", `queue?id=${failed}`,
    "queue?state=completed", "schedule", "usage", "audit", "settings", "settings?all=1",
  ];
  for (const [width, scheme] of [[1280, "light"], [1280, "dark"], [360, "light"], [360, "dark"]]) {
    await audit.setViewportSize({ width, height: 740 });
    await audit.emulateMedia({ colorScheme: scheme });
    for (const view of views) {
      await audit.goto(`${address}/${view}`);
      const wide = await audit.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= width, `${view} is ${wide} px wide on ${width} px`);
      const name = view.replaceAll(/[^a-z0-9]+/gi, "-");
      await audit.screenshot({ path: join(folder, `${name}-${scheme}-${width}.png`), fullPage: true });
    }
  }
  step(`${views.length} views fit, light and dark`);

  assert.deepEqual(troubles, [], "the console is not empty");
  console.log(`${steps} steps`);
} finally {
  await browser.close();
}
