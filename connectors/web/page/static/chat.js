// One chat: messages as they come, answers as they grow, and sending without leaving
// the page. Without this script the form sends, and the page shows what was said.
"use strict";

(() => {
  const log = document.getElementById("log");
  const form = document.getElementById("say");
  const writes = document.getElementById("writes");
  const newest = document.getElementById("newest");
  const { lang, dataset: shell } = document.documentElement;
  const zone = shell.zone === "utc" ? { timeZone: "UTC" } : {};
  const seenKey = `seen:${log.dataset.path}`;
  const remembered = (key) => { try { return localStorage.getItem(key) ?? ""; } catch { return ""; } };
  const remember = (key, value) => { try { localStorage.setItem(key, value); } catch { /* private */ } };

  const isAtEnd = () => log.scrollHeight - log.scrollTop - log.clientHeight < 80;
  const toEnd = () => { log.scrollTop = log.scrollHeight; };
  const shown = () => Array.from(log.querySelectorAll("article[data-at]"));

  // --- where one was: days, and what is new -------------------------------------

  const dates = new Intl.DateTimeFormat(lang, zone);
  const day = (at) => dates.format(at);
  const dayText = (at) => {
    const now = new Date();
    if (day(at) === day(now)) return log.dataset.today;
    if (day(at) === day(new Date(now - 86400000))) return log.dataset.yesterday;
    return at.toLocaleDateString(lang, { weekday: "long", day: "numeric", month: "long", year: "numeric", ...zone });
  };
  const divider = (kind, text) => {
    const line = document.createElement("p");
    line.className = kind;
    line.textContent = text;
    return line;
  };
  const days = () => {
    for (const each of log.querySelectorAll(".day")) each.remove();
    let last = "";
    for (const each of shown()) {
      const at = new Date(Number(each.dataset.at));
      if (day(at) !== last) each.before(divider("day", dayText(at)));
      last = day(at);
    }
  };
  const prepare = (root) => {
    callboard.times(root);
    for (const each of root.querySelectorAll("button[hidden][data-copy], button[hidden][data-fill], .decide button[hidden]")) each.hidden = false;
  };
  const markSeen = () => {
    const last = shown().at(-1);
    if (last !== undefined && !document.hidden && isAtEnd()) remember(seenKey, last.dataset.at);
  };

  prepare(log);
  days();
  const seen = Number(remembered(seenKey));
  const firstNew = seen && form !== null
    ? shown().find((each) => Number(each.dataset.at) > seen && each.classList.contains("agent")) : undefined;
  const target = location.hash ? document.getElementById(location.hash.slice(1)) : null;
  if (target !== null && log.contains(target)) {
    target.classList.add("found");
    target.scrollIntoView({ block: "center" });
  } else if (firstNew !== undefined) {
    firstNew.before(divider("since", log.dataset.new));
    firstNew.previousSibling.scrollIntoView({ block: "center" });
  } else {
    toEnd();
  }
  markSeen();

  // Pictures have their height only when they are there: who reads the end, stays there.
  let stays = isAtEnd();
  log.addEventListener("scroll", () => {
    stays = isAtEnd();
    if (stays) markSeen();
    if (newest !== null) newest.hidden = stays;
  });
  log.addEventListener("load", () => { if (stays) toEnd(); }, true);
  newest?.addEventListener("click", () => { toEnd(); });
  if (newest !== null) newest.hidden = isAtEnd();

  log.addEventListener("click", async (event) => {
    const button = event.target.closest("button");
    if (button === null) return;
    if ("copy" in button.dataset) {
      const words = button.closest("article").querySelector(".words");
      await navigator.clipboard.writeText(words.innerText);
      const was = button.textContent;
      button.textContent = log.dataset.copied;
      setTimeout(() => { button.textContent = was; }, 1500);
    }
    if (button.dataset.fill) { text.value = button.dataset.fill; text.focus(); }
    if (button.dataset.say) {
      button.parentElement.hidden = true;
      if (!await sendText(button.dataset.say)) button.parentElement.hidden = false;
    }
  });

  // --- the other chats ------------------------------------------------------------

  const chats = Array.from(document.querySelectorAll(".chats a"));
  const note = (link, changed) => {
    const path = new URL(link.href).pathname;
    if (!remembered(`seen:${path}`)) remember(`seen:${path}`, String(link.dataset.changed));
    const isNew = changed > Number(remembered(`seen:${path}`)) && !link.hasAttribute("aria-current");
    link.querySelector(".new").hidden = !isNew;
  };
  for (const link of chats) note(link, Number(link.dataset.changed));
  document.querySelector(".chats a[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  const narrow = document.getElementById("narrow");
  narrow.hidden = chats.length < 8;
  narrow.addEventListener("input", () => {
    const words = narrow.value.toLocaleLowerCase();
    for (const link of chats) link.parentElement.hidden = !link.textContent.toLocaleLowerCase().includes(words);
  });

  if (form === null) return;

  // --- what is said ------------------------------------------------------------

  let last = Number(log.dataset.changed);

  // A tab that is open for days shows as much as a page that was just loaded, and some
  // more: the oldest go, as long as nobody reads them. They are a link away.
  const MOST_SHOWN = 200;
  const trim = () => {
    const said = shown();
    if (said.length <= MOST_SHOWN || !isAtEnd()) return;
    const gone = said.slice(0, said.length - MOST_SHOWN);
    for (const each of gone) each.remove();
    for (const each of log.querySelectorAll(".day, .since")) {
      if (each.nextElementSibling?.dataset.at === undefined) each.remove();
    }
    let link = log.querySelector(".earlier a");
    if (link === null) {
      const place = document.createElement("p");
      place.className = "earlier";
      link = document.createElement("a");
      link.textContent = log.dataset.earlier;
      place.append(link);
      log.prepend(place);
    }
    link.href = `${log.dataset.path}?before=${said[gone.length].dataset.at}`;
  };

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
      const said = shown();
      const after = said.findLast((each) => Number(each.dataset.at) < Number(fresh.dataset.at));
      const node = document.importNode(fresh, true);
      if (after !== undefined) after.after(node);
      else if (said.length > 0) said[0].before(node);
      else log.append(node);
      days();
    }
    const place = document.getElementById(fresh.id);
    if (place !== null) prepare(place);
    if (wasAtEnd) { toEnd(); trim(); }
    else if (newest !== null) newest.hidden = false;
    markSeen();
    working();
  };

  // --- who writes, and stopping it ---------------------------------------------------

  const stop = document.getElementById("stop");
  const writing = new Map();
  const working = () => {
    const names = Array.from(writing.keys());
    const shape = names.length > 1 ? writes.dataset.many : writes.dataset.one;
    writes.textContent = names.length ? shape.replace("{names}", names.join(", ")) : "";
    stop.hidden = names.length === 0 && log.querySelector("article.writing") === null;
  };
  const stopped = (agent) => { clearTimeout(writing.get(agent)); writing.delete(agent); working(); };
  stop.addEventListener("click", () => sendText(stop.dataset.say));

  callboard.stream(() => `${log.dataset.events}?after=${last}`, {
    message(event) {
      last = Math.max(last, Number(event.lastEventId));
      show(event.data);
    },
    writes(event) {
      const { agent, over } = JSON.parse(event.data);
      stopped(agent);
      if (!over) writing.set(agent, setTimeout(() => stopped(agent), 15000));
      working();
    },
    elsewhere(event) {
      const { path, changed } = JSON.parse(event.data);
      const link = chats.find((each) => new URL(each.href).pathname === path);
      if (link !== undefined) note(link, changed);
    },
    again() { location.reload(); },
  });

  // --- saying something --------------------------------------------------------

  const text = form.elements.namedItem("text");
  const key = form.elements.namedItem("key");
  const files = form.elements.namedItem("files");
  const button = form.querySelector("button.main");
  const newKey = () => Array.from(
    crypto.getRandomValues(new Uint8Array(16)),
    (each) => each.toString(16).padStart(2, "0"),
  ).join("");
  const draftKey = `draft:${log.dataset.path}`;
  text.value = text.value || remembered(draftKey);
  text.addEventListener("input", () => { remember(draftKey, text.value); complete(); });

  // Gives whether it was taken; what was not is told.
  const post = async (fields) => {
    try {
      const response = await fetch(form.action, {
        method: "POST",
        headers: { accept: "application/json" },
        body: new URLSearchParams(fields),
      });
      if (response.ok) { callboard.trouble(""); return true; }
      if (response.status === 401) location.assign("/login");
      const said = await response.json().catch(() => ({}));
      callboard.trouble(callboard.text("unsent", { why: said.error || response.statusText }));
    } catch {
      callboard.trouble(callboard.text("unreached"));
    }
    return false;
  };
  const sendText = (words) => post({ csrf: form.elements.namedItem("csrf").value, key: newKey(), text: words });

  const send = async () => {
    if (button.disabled || (text.value.trim() === "" && files.value === "")) return;
    button.disabled = true;
    if (await post(new FormData(form))) {
      text.value = "";
      remember(draftKey, "");
      key.value = newKey();  // until then, sent again it would be the same message
      files.value = "";
      document.getElementById("enclosing").replaceChildren();
      text.required = true;
      toEnd();
    }
    button.disabled = false;
    text.focus();
  };

  form.addEventListener("submit", (event) => { event.preventDefault(); send(); });
  text.addEventListener("keydown", (event) => {
    if (choose(event)) { event.preventDefault(); return; }
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  });

  // --- completion of commands and names -----------------------------------------------

  const list = document.getElementById("completions");
  const known = Array.from(document.querySelectorAll("#known option"), (each) => ({ word: each.value, about: each.label }));
  let chosen = 0;
  const begun = () => /(^|\s)([/@][^\s]*)$/.exec(text.value.slice(0, text.selectionStart));
  const complete = () => {
    const found = begun();
    const isCommand = found !== null && found[2].startsWith("/") && found.index > 0;
    const fits = found === null || isCommand ? []
      : known.filter((each) => each.word.toLocaleLowerCase().startsWith(found[2].toLocaleLowerCase())).slice(0, 12);
    chosen = 0;
    list.replaceChildren(...fits.map((each, index) => {
      const row = document.createElement("li");
      row.id = `completion-${index}`;
      row.setAttribute("role", "option");
      row.setAttribute("aria-selected", String(index === 0));
      row.dataset.word = each.word;
      const word = document.createElement("strong");
      word.textContent = each.word;
      row.append(word, ` ${each.about}`);
      row.addEventListener("mousedown", (event) => { event.preventDefault(); take(each.word); });
      return row;
    }));
    list.hidden = fits.length === 0;
  };
  const take = (word) => {
    const at = text.selectionStart;
    const start = at - begun()[2].length;
    text.setRangeText(`${word} `, start, at, "end");
    list.hidden = true;
    remember(draftKey, text.value);
  };
  const choose = (event) => {
    if (list.hidden) return false;
    const rows = Array.from(list.children);
    if (event.key === "Escape") { list.hidden = true; return true; }
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      chosen = (chosen + (event.key === "ArrowDown" ? 1 : rows.length - 1)) % rows.length;
      rows.forEach((row, index) => row.setAttribute("aria-selected", String(index === chosen)));
      rows[chosen].scrollIntoView({ block: "nearest" });
      return true;
    }
    const whole = rows[chosen].dataset.word;
    if (event.key === "Tab" || (event.key === "Enter" && begun()?.[2] !== whole)) { take(whole); return true; }
    return false;
  };
  text.addEventListener("blur", () => { list.hidden = true; });

  // --- files -------------------------------------------------------------------------

  const picker = document.getElementById("files");
  const add = document.getElementById("add");
  add.hidden = false;
  add.addEventListener("click", () => picker.click());
  const tokens = () => files.value.split(" ").filter(Boolean);
  const enclose = async (file) => {
    const chip = document.createElement("span");
    chip.textContent = callboard.text("sending", { name: file.name });
    document.getElementById("enclosing").append(chip);
    try {
      const response = await fetch(`/uploads?name=${encodeURIComponent(file.name)}`, {
        method: "POST",
        headers: { accept: "application/json", "x-csrf": form.elements.namedItem("csrf").value, "content-type": file.type || "application/octet-stream" },
        body: file,
      });
      const said = await response.json().catch(() => ({}));
      if (!response.ok) throw new Error(said.error || response.statusText);
      files.value = [...tokens(), said.token].join(" ");
      text.required = false;
      chip.textContent = file.name;
      const remove = document.createElement("button");
      remove.type = "button";
      remove.className = "quiet small";
      remove.textContent = "×";
      remove.setAttribute("aria-label", callboard.text("remove", { name: file.name }));
      remove.addEventListener("click", () => {
        files.value = tokens().filter((each) => each !== said.token).join(" ");
        text.required = files.value === "";
        chip.remove();
        text.focus();
      });
      chip.append(remove);
      callboard.trouble("");
    } catch (error) {
      chip.remove();
      callboard.trouble(callboard.text("unsent", { why: error.message }));
    }
  };
  picker.addEventListener("change", () => { Array.from(picker.files).forEach(enclose); picker.value = ""; text.focus(); });
  text.addEventListener("paste", (event) => {
    if (event.clipboardData.files.length > 0) { event.preventDefault(); Array.from(event.clipboardData.files).forEach(enclose); }
  });
  log.addEventListener("dragover", (event) => event.preventDefault());
  log.addEventListener("drop", (event) => { event.preventDefault(); Array.from(event.dataTransfer.files).forEach(enclose); });

  working();
})();
