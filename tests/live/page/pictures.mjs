// Pictures of every view of the page:
//   node pictures.mjs <chromium> <address> <folder> <link> <message> <failed> <conversation>
//
// The link logs the browser in; the others are in the database. `VIEWS=chat,overview`
// takes only those. Each view is also checked by axe-core against WCAG 2.2 AA, for its
// width and for an empty console; whatever is wrong is told, and ends it with an error.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [program, address, folder, link, message, failed, conversation] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const troubles = [];
const trouble = (text) => { troubles.push(text); console.error(text); };
const check = async (page, name) => {
  await page.evaluate(axe);  // not as a script element: the policy of the page forbids those
  const found = await page.evaluate(() => window.axe.run(document, {
    runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
  }));
  for (const each of found.violations) {
    const where = each.nodes.slice(0, 3).map((node) => `${node.target} ${node.any.map((x) => x.message).join("; ").slice(0, 160)}`);
    trouble(`${name}: ${each.id}: ${where.join(" | ")}`);
  }
};

const browser = await chromium.launch({
  executablePath: program,
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
});

const say = async (page, text, answer) => {
  await page.getByLabel(/^Message to/).fill(text);
  await page.keyboard.press("Enter");
  await page.locator("article.said.agent", { hasText: answer }).last().waitFor();
};

const VIEWS = {
  "chat": "chat/with/anna",
  "chat-empty": "chat/with/cleo",
  "room": "chat/room/lobby",
  "overview": "overview",
  "actors": "actors",
  "actors-all": "actors?show=all",
  "kill": "actors?kill=callboard/agents/anna/agent",
  "conversations": "conversations",
  "conversation": `conversations?name=${encodeURIComponent(conversation)}`,
  "queue": "queue",
  "queue-all": "queue?state=completed",
  "message": `queue?id=${message}`,
  "message-failed": `queue?id=${failed}`,
  "schedule": "schedule",
  "people": "people",
  "person": "people?id=cli/sam",
  "people-empty": "people?find=nobody",
  "search": "chat/with/anna?find=tea",
  "queue-empty": "queue?find=nothing+like+this",
  "overview-hour": "overview?span=hour",
  "usage": "usage",
  "usage-model": "usage?by=model&period=30+days",
  "audit": "audit",
  "settings": "settings",
  "settings-all": "settings?all=1",
};
const wanted = (process.env.VIEWS ?? "").split(",").filter(Boolean);

try {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  context.setDefaultTimeout(20000);
  context.on("console", (told) => {
    if (["error", "warning"].includes(told.type())) trouble(`console: ${told.text()}`);
  });
  const page = await context.newPage();
  await page.goto(`${address}/login/${link}`);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.waitForURL("**/chat/**");
  await page.goto(`${address}/chat/with/anna`);
  await say(page, "hello, I am Sam", "Hello Sam");
  await say(page, "remember that I like green tea", "keep that in mind");
  await say(page, "what is 12 * 7", "84");
  await say(page, "remind me in 90 minute to stretch", "I will.");
  await page.goto(`${address}/chat/room/lobby`);
  await say(page, "@ben what is 12 * 7", "84");

  for (const [name, path] of Object.entries(VIEWS)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    for (const [kind, width, height, colorScheme] of [
      ["light", 1280, 800, "light"], ["dark", 1280, 800, "dark"], ["phone", 390, 780, "light"],
    ]) {
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      const answer = await page.goto(`${address}/${path}`);
      if (answer.status() !== 200) { trouble(`${path}: ${answer.status()}`); break; }
      await page.waitForTimeout(250);
      await page.screenshot({ path: join(folder, `${name}-${kind}.png`) });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      if (wide > width) trouble(`${path} is ${wide} px wide on ${width} px`);
      await check(page, `${name}-${kind}`);
    }
  }
  console.log(`${troubles.length} troubles`);
  if (troubles.length > 0) process.exitCode = 1;
} finally {
  await browser.close();
}
