// What the page does beyond links and forms: it renews itself, and listens to keys. Without it everything else works.
"use strict";

(() => {
  const rows = () => [...document.querySelectorAll("[data-row]")];
  let at = -1;

  const opener = (row) => row.querySelector("[data-open]") || row.querySelector("a");
  // What a line is, whatever comes above it: its number changes when the page renews itself.
  const nameOf = (row) => row && (row.id || opener(row)?.getAttribute("href"));

  // Keys -------------------------------------------------------------------------------------------

  const mark = (index) => {
    const all = rows();
    if (all.length === 0) return;
    at = Math.max(0, Math.min(index, all.length - 1));
    all.forEach((row, n) => row.classList.toggle("at", n === at));
    const link = opener(all[at]);
    if (link) link.focus({ preventScroll: true });
    all[at].scrollIntoView({ block: "nearest" });
  };

  const follow = (selector) => {
    const all = rows(), row = all[at];
    // A line that cannot be undone is not another one: only where no line can, the page's own button is meant.
    const isOfLines = row && all.some((one) => one.querySelector(selector));
    const link = isOfLines ? row.querySelector(selector) : document.querySelector(`main ${selector}`);
    if (link) link.click();
  };

  const keys = {
    j: () => mark(at + 1),
    k: () => mark(at < 0 ? 0 : at - 1),
    u: () => follow("[data-undo]"),
    r: () => follow("[data-redo]"),
    g: () => location.assign("/"),
    e: () => location.assign("/events"),
    "/": () => document.getElementById("q").focus(),
    "?": () => document.getElementById("keys").showModal(),
  };

  document.addEventListener("keydown", (event) => {
    // A dialog that was just closed has the focus until the browser next draws: a key that comes before is the page's.
    const writes = event.target.closest("input, textarea, select, dialog[open]");
    if (event.key === "Escape" && writes && writes.id === "q") writes.blur();
    if (writes || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });

  // What is new ------------------------------------------------------------------------------------

  const toEnd = () => document.querySelectorAll("[data-to-end]").forEach((box) => { box.scrollLeft = box.scrollWidth; });
  toEnd();

  const follows = document.body.dataset.follows;
  if (!follows || !window.EventSource) return;
  const sign = document.querySelector(".top > .live");
  let isAsked = false, isAskedAgain = false, source;

  // The page as the server shows it now, in place of the old one: nothing grows, and a missed word cannot be missed for long.
  const renew = async () => {
    if (isAsked) { isAskedAgain = true; return; }
    isAsked = true;
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html" }, cache: "no-store" });
      if (answer.ok) {
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
        put(fresh.getElementById("main"));
      }
    } catch { /* The next event asks again. */ }
    await new Promise((done) => setTimeout(done, 700));
    isAsked = false;
    if (isAskedAgain) { isAskedAgain = false; renew(); }
  };

  const put = (fresh) => {
    const main = document.getElementById("main");
    if (!fresh || fresh.innerHTML === main.innerHTML) return;
    const row = rows()[at], marked = nameOf(row);
    const focused = document.activeElement, href = main.contains(focused) && focused.getAttribute("href");
    const isOfRow = row !== undefined && row.contains(focused);
    const box = document.querySelector("[data-to-end]");
    const left = box && box.scrollLeft, wasAtEnd = box && box.scrollLeft + box.clientWidth >= box.scrollWidth - 4;
    const open = [...main.querySelectorAll("details[open]")].map((one) => one.closest("[id]")).filter(Boolean).map((one) => one.id);
    main.replaceChildren(...fresh.childNodes);
    open.forEach((id) => document.querySelector(`#${CSS.escape(id)} details`)?.setAttribute("open", ""));
    const again = document.querySelector("[data-to-end]");
    if (again) again.scrollLeft = wasAtEnd ? again.scrollWidth : left;
    at = marked ? rows().findIndex((one) => nameOf(one) === marked) : -1;
    rows().forEach((one, n) => one.classList.toggle("at", n === at));
    const place = isOfRow ? rows()[at] : main;
    if (href) place?.querySelector(`a[href="${CSS.escape(href)}"]`)?.focus({ preventScroll: true });
  };

  const listen = () => {
    // Everything after what this page shows; after a break the browser says itself where it was.
    source = new EventSource(`/live?since=${document.body.dataset.seq}`);
    source.addEventListener("open", () => { sign.hidden = false; sign.classList.remove("lost"); sign.textContent = "live"; });
    source.addEventListener("news", (event) => {
      document.body.dataset.seq = event.lastEventId;
      if (follows === "all" || JSON.parse(event.data).run === follows) renew();
    });
    source.addEventListener("error", () => {
      sign.classList.add("lost");
      sign.textContent = "not live";
      if (source.readyState === EventSource.CLOSED) setTimeout(listen, 5000);
    });
  };
  listen();
  addEventListener("pagehide", () => source.close());
  addEventListener("pageshow", (event) => { if (event.persisted) { listen(); renew(); } });
})();
