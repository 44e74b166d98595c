// What all views share: parts that change are put in place without moving the focus,
// and what cannot be undone is asked about first. Without this script every view
// still shows what was so when it was asked for.
"use strict";

const callboard = {
  // Put new HTML into a place; what is the same stays as it is, with its focus.
  put(place, html) {
    const fresh = new DOMParser().parseFromString(html, "text/html").body;
    callboard.match(place, fresh);
  },

  // Have an element be like another one, inside and outside.
  become(own, fresh) {
    callboard.name(own, fresh);
    callboard.match(own, fresh);
  },

  // What has an id is found again wherever it stands now, so that a row that comes or
  // goes leaves the others, and the focus in them, as they are.
  match(old, fresh) {
    const wanted = Array.from(fresh.childNodes);
    const names = new Set(wanted.map(callboard.id).filter(Boolean));
    const known = new Map();
    for (const child of old.children) if (callboard.id(child)) known.set(callboard.id(child), child);
    let here = old.firstChild;
    for (const node of wanted) {
      while (here !== null && callboard.id(here) && !names.has(callboard.id(here))) here = callboard.drop(here);
      const there = callboard.id(node) ? known.get(callboard.id(node)) : callboard.next(here, node);
      if (there && callboard.alike(there, node)) {
        while (!callboard.id(there) && here !== there) here = callboard.drop(here);
        if (there !== here) old.insertBefore(there, here);
        if (there.nodeType === Node.ELEMENT_NODE) callboard.become(there, node);
        else if (there.data !== node.data) there.data = node.data;
        here = there.nextSibling;
      } else {
        old.insertBefore(document.importNode(node, true), here);
      }
    }
    while (here !== null) here = callboard.drop(here);
  },

  // Of those without an id, the next one that is alike, and before any with an id.
  next(here, node) {
    if (node.nodeType !== Node.ELEMENT_NODE) return here;
    let found = here;
    while (found !== null && !callboard.id(found) && !callboard.alike(found, node)) found = found.nextSibling;
    return found;
  },

  drop(node) {
    const next = node.nextSibling;
    node.remove();
    return next;
  },

  alike(one, other) {
    return one.nodeType === other.nodeType && one.nodeName === other.nodeName
      && callboard.id(one) === callboard.id(other);
  },

  // Not `node.id`: of a form with a field called id, that is the field.
  id(node) {
    return node.nodeType === Node.ELEMENT_NODE ? node.getAttribute("id") ?? "" : "";
  },

  // What a person has opened stays open, what they have typed stays typed.
  name(own, node) {
    for (const { name } of Array.from(own.attributes)) {
      if (name !== "open" && !node.hasAttribute(name)) own.removeAttribute(name);
    }
    for (const { name, value } of Array.from(node.attributes)) {
      if (name !== "open" && own.getAttribute(name) !== value) own.setAttribute(name, value);
    }
  },

  trouble(text) {
    const place = document.getElementById("trouble");
    place.textContent = text;
    place.hidden = !text;
  },

  // A text of the page, in its language; `{name}` is filled in.
  text(name, values = {}) {
    const found = document.getElementById("main").dataset[name] ?? "";
    return found.replace(/\{(\w+)\}/g, (_, key) => values[key] ?? "");
  },

  // A stream that waits while nobody looks, and is taken up where it stood.
  stream(address, events) {
    let source = null;
    let waits = 0;
    const open = () => {
      if (source !== null) return;
      source = new EventSource(address());
      source.addEventListener("open", () => { waits = 0; callboard.trouble(""); });
      source.addEventListener("gone", () => { close(); location.assign("/login"); });
      source.addEventListener("replaced", () => {
        close();
        callboard.trouble(callboard.text("tabs"));
      });
      source.addEventListener("trouble", (event) => callboard.trouble(event.data));
      source.addEventListener("badges", (event) => callboard.badges(JSON.parse(event.data)));
      for (const [name, take] of Object.entries(events)) {
        source.addEventListener(name, (event) => { callboard.trouble(""); take(event); });
      }
      source.addEventListener("error", () => {
        callboard.trouble(callboard.text("lost"));
        if (source !== null && source.readyState === EventSource.CLOSED) {
          close();
          waits = Math.min(waits + 1, 6);
          setTimeout(open, 1000 * 2 ** waits);
        }
      });
    };
    const close = () => { if (source !== null) { source.close(); source = null; } };
    let rest = 0;
    document.addEventListener("visibilitychange", () => {
      clearTimeout(rest);
      if (document.hidden) rest = setTimeout(close, 60000);
      else open();
    });
    window.addEventListener("focus", open);
    window.addEventListener("pagehide", close);
    window.addEventListener("pageshow", open);
    open();
  },

  // How many things wait for a person, by view.
  badges(counts) {
    for (const row of document.querySelectorAll("#views li[id]")) {
      const count = counts[row.id.replace("view-", "")] ?? 0;
      let badge = row.querySelector(".badge");
      if (!count) { badge?.remove(); continue; }
      if (badge === null) {
        badge = document.createElement("span");
        badge.className = "badge";
        row.querySelector("a").append(badge);
      }
      badge.textContent = count.toLocaleString(document.documentElement.lang);
    }
  },

  // Times as the page's language writes them, in the chosen time zone. What was written
  // for the same time stays as it is.
  times(root) {
    const { lang, dataset } = document.documentElement;
    const zone = dataset.zone === "utc" ? { timeZone: "UTC" } : {};
    const day = (at) => at.toLocaleDateString(lang, zone);
    for (const each of root.querySelectorAll("time[datetime]")) {
      const at = new Date(each.dateTime);
      if (Number.isNaN(at.getTime())) continue;
      const clock = at.toLocaleTimeString(lang, { hour: "2-digit", minute: "2-digit", ...zone });
      const isShort = "clock" in each.dataset || day(at) === day(new Date());
      each.textContent = isShort ? clock : `${day(at)} ${clock}`;
      each.title = at.toLocaleString(lang, { timeZoneName: "short", ...zone });
    }
  },
};

document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !window.confirm(question)) event.preventDefault();
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") document.querySelector("[data-escape]")?.click();
  const isTyping = /^(input|textarea|select)$/i.test(event.target.nodeName);
  if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey) {
    const place = document.querySelector("main input[type=search]:not([hidden]), #text");
    if (place !== null) { event.preventDefault(); place.focus(); }
  }
});

for (const place of document.querySelectorAll("[data-live]")) {
  // While a pointer is at a button, rows neither come nor go: the click is to land on
  // what was aimed at. A pointer that rests holds nothing up for long.
  const HELD = 5000;
  let waits = null;
  let rest = 0;
  const put = () => {
    clearTimeout(rest);
    rest = 0;
    if (waits === null) return;
    callboard.put(place, waits);
    callboard.times(place);
    waits = null;
  };
  const hold = (event) => {
    const isAtButton = event.type !== "pointerleave" && event.target.closest("button, .button") !== null;
    if (!isAtButton) { put(); return; }
    clearTimeout(rest);
    rest = setTimeout(put, HELD);
  };
  for (const each of ["pointerover", "pointermove", "pointerdown", "pointerleave"]) place.addEventListener(each, hold);
  callboard.stream(() => place.dataset.live, {
    live(event) { waits = event.data; if (!rest) put(); },
  });
}

{
  // What a change of a setting comes to is shown while it is typed.
  const form = document.querySelector("[data-propose]");
  let waits = 0;
  let asked = 0;
  const propose = async () => {
    const own = ++asked;
    const query = new URLSearchParams(new FormData(form));
    try {
      const response = await fetch(`/settings?${query}`);
      const html = await response.text();
      const fresh = new DOMParser().parseFromString(html, "text/html").getElementById("difference");
      if (own !== asked) return;
      if (!response.ok || fresh === null) { form.submit(); return; }
      callboard.trouble("");
      callboard.match(document.getElementById("difference"), fresh);
      history.replaceState(null, "", `/settings?${query}`);
    } catch {
      callboard.trouble(callboard.text("lost"));
    }
  };
  form?.addEventListener("input", () => { clearTimeout(waits); waits = setTimeout(propose, 300); });
  form?.addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(waits); propose(); });
  // Who chooses another model sees at once what that changes.
  for (const each of document.querySelectorAll("[data-pick]")) {
    each.addEventListener("change", () => each.requestSubmit());
    each.querySelector("button")?.classList.add("unseen");
  }
}

{
  // What the page is to look like is applied as soon as it is chosen.
  const form = document.getElementById("look-form");
  form?.addEventListener("change", () => form.requestSubmit());
  // The address says in which time zone it is read, for whoever is given it.
  const own = new URL(location.href);
  if (document.documentElement.dataset.zone === "utc" && !own.searchParams.has("zone")) {
    own.searchParams.set("zone", "utc");
    history.replaceState(history.state, "", own);
  }
  if (form !== null) form.elements.namedItem("back").value = location.pathname + location.search;
  const here = document.querySelector("[data-here]");
  if (here !== null) here.textContent += ` (${Intl.DateTimeFormat().resolvedOptions().timeZone})`;
}

callboard.times(document);
