// One chat: messages as they come, answers as they grow, and sending without leaving
// the page. Without this script the form sends, and the page shows what was said.
"use strict";

(() => {
  const log = document.getElementById("log");
  const form = document.getElementById("say");
  const writes = document.getElementById("writes");

  const isAtEnd = () => log.scrollHeight - log.scrollTop - log.clientHeight < 80;
  const toEnd = () => { log.scrollTop = log.scrollHeight; };
  toEnd();

  // Pictures have their height only when they are there: who reads the end, stays there.
  let stays = true;
  log.addEventListener("scroll", () => { stays = isAtEnd(); });
  log.addEventListener("load", () => { if (stays) toEnd(); }, true);

  if (form === null) return;

  // --- what is said ------------------------------------------------------------

  let last = Number(log.dataset.changed);

  // In the order in which it was said; the same message takes its own place, unless
  // what is shown is newer.
  const show = (html) => {
    const fresh = new DOMParser().parseFromString(html, "text/html").querySelector("article");
    if (fresh === null) return;
    const wasAtEnd = isAtEnd();
    const own = document.getElementById(fresh.id);
    const isGone = fresh.hasAttribute("data-gone");
    if (own !== null) {
      if (Number(own.dataset.changed) >= Number(fresh.dataset.changed)) return;
      if (isGone) own.remove();
      else callboard.become(own, fresh);
    } else if (!isGone) {
      document.getElementById("empty")?.remove();
      const said = Array.from(log.querySelectorAll("article"));
      const after = said.findLast((each) => Number(each.dataset.at) < Number(fresh.dataset.at));
      const node = document.importNode(fresh, true);
      if (after !== undefined) after.after(node);
      else if (said.length > 0) said[0].before(node);
      else log.append(node);
    }
    const place = document.getElementById(fresh.id);
    if (place !== null) callboard.times(place);
    if (wasAtEnd) toEnd();
  };

  const writing = new Map();
  const tellWho = () => {
    const names = Array.from(writing.keys());
    writes.textContent = names.length ? `${names.join(", ")} ${names.length > 1 ? "are" : "is"} writing…` : "";
  };
  const stopped = (agent) => { clearTimeout(writing.get(agent)); writing.delete(agent); tellWho(); };

  callboard.stream(() => `${log.dataset.events}?after=${last}`, {
    message(event) {
      last = Math.max(last, Number(event.lastEventId));
      show(event.data);
    },
    writes(event) {
      const { agent, over } = JSON.parse(event.data);
      stopped(agent);
      if (!over) writing.set(agent, setTimeout(() => stopped(agent), 15000));
      tellWho();
    },
    again() { location.reload(); },
  });

  // --- saying something --------------------------------------------------------

  const text = form.elements.namedItem("text");
  const key = form.elements.namedItem("key");
  const button = form.querySelector("button");
  const newKey = () => Array.from(
    crypto.getRandomValues(new Uint8Array(16)),
    (each) => each.toString(16).padStart(2, "0"),
  ).join("");

  const send = async () => {
    if (button.disabled || text.value.trim() === "") return;
    button.disabled = true;
    try {
      const response = await fetch(form.action, {
        method: "POST",
        headers: { accept: "application/json" },
        body: new URLSearchParams(new FormData(form)),
      });
      if (response.ok) {
        text.value = "";
        key.value = newKey();  // until then, sent again it would be the same message
        callboard.trouble("");
        toEnd();
      } else if (response.status === 401) {
        location.assign("/login");
      } else {
        const said = await response.json().catch(() => ({}));
        callboard.trouble(`Not sent: ${said.error || response.statusText}`);
      }
    } catch {
      callboard.trouble("Not sent: the server cannot be reached. Your words are still here; try again.");
    } finally {
      button.disabled = false;
      text.focus();
    }
  };

  form.addEventListener("submit", (event) => { event.preventDefault(); send(); });
  text.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  });
})();
