// The curation pages. Everything a reviewer does goes through one queue, is sent until the server has it on disk, and
// is shown as the server then says it stands.

const POLL = 3000; // ms between looks at what others did
const AGAIN = 1500; // ms before an action that did not arrive is sent again
const WRITING = 700; // ms after the last key stroke in a note before it is saved

const announcement = document.getElementById("announcement");
const alert = document.getElementById("alert");
const tell = (text) => { if (announcement) announcement.textContent = text; };
const warn = (text) => { if (alert) { alert.textContent = text; alert.hidden = !text; } };

class SignedOut extends Error {}

async function call(where, body) {
  const options = body === undefined ? {} : { method: "POST", keepalive: true, body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
  const answer = await fetch(`/curate/api/${where}`, { ...options, credentials: "same-origin" });
  if (answer.status === 401 || answer.status === 403 || !(answer.headers.get("content-type") || "").includes("json")) throw new SignedOut();
  if (answer.status >= 500) throw new Error("server");
  const data = await answer.json();
  return { status: answer.status, data: data.error || data };
}

const pause = (time) => new Promise((done) => { setTimeout(done, time); });
const typing = (target) => target.closest("textarea, select, input:not([type=checkbox])");

// -- one cell ------------------------------------------------------------------------------------------------

function openCell(root) {
  const cell = root.dataset.cell;
  const faces = Number(root.dataset.faces);
  const cards = [...root.querySelectorAll(".candidate")];
  const undo = document.getElementById("undo");
  const shortcuts = document.getElementById("shortcuts");
  const queue = [];
  const timers = new Map();
  let view = JSON.parse(root.dataset.view);
  let current = null;
  let sending = false;

  const card = (pool) => cards.find((c) => c.dataset.pool === pool);
  const boxes = (c) => [...c.querySelectorAll("fieldset input")];
  const ticked = (c) => boxes(c).filter((b) => b.checked).map((b) => b.name);
  const note = (c) => c.querySelector("textarea");
  const waits = (pool) => timers.has(pool) || queue.some((job) => job.body.pool === pool);

  function show(next) {
    if (next.last < view.last) return; // an answer overtaken by a newer one
    view = next;
    const status = document.getElementById("status");
    status.textContent = view.words;
    for (const c of cards) {
      const { pool } = c.dataset;
      const known = view.assessments[pool] || { criteria: [], note: "", reviewer: "" };
      if (!waits(pool)) { // what is still on its way is newer than what the server says
        for (const box of boxes(c)) box.checked = known.criteria.includes(box.name);
        if (document.activeElement !== note(c)) note(c).value = known.note;
      }
      const selected = view.selected.includes(pool);
      c.classList.toggle("selected", selected);
      c.querySelector(".chosen").hidden = !selected;
      const button = c.querySelector(".select");
      button.setAttribute("aria-pressed", String(selected));
      button.textContent = `${selected ? "Deselect" : "Select"} ${pool}`;
      c.querySelector(".by").textContent = known.reviewer ? `last assessed by ${known.reviewer}` : "";
    }
    undo.disabled = !view.undo;
    undo.textContent = view.undo ? `Undo: ${view.undo.text}` : "Undo";
  }

  function send(where, body) {
    queue.push({ where, body: { ...body, cell, token: crypto.randomUUID ? crypto.randomUUID() : `${Date.now()}-${Math.random()}` } });
    return pump();
  }

  async function pump() {
    if (sending) return;
    sending = true;
    while (queue.length) {
      const job = queue[0];
      try {
        const { status, data } = await call(job.where, job.where === "act" ? { ...job.body, seen: view.last } : job.body);
        queue.shift();
        warn("");
        if (status === 200) tell(`Saved: ${data.message}.`);
        else warn(typeof data.message === "string" ? data.message : "The server did not accept this.");
        if (data.last !== undefined) show(data);
      } catch (problem) {
        warn(problem instanceof SignedOut
          ? "You are signed out. Sign in again in another tab: what you did here is kept and will be saved."
          : "Not saved yet: the server does not answer. Trying again; keep this page open.");
        await pause(AGAIN);
      }
    }
    sending = false;
  }

  async function settle() {
    for (const pool of [...timers.keys()]) act("assess", card(pool));
    while (queue.length) await pause(20);
  }

  function act(action, c) {
    clearTimeout(timers.get(c.dataset.pool));
    timers.delete(c.dataset.pool);
    return send("act", { action, pool: c.dataset.pool, criteria: ticked(c), note: note(c).value });
  }

  function writeSoon(c) {
    clearTimeout(timers.get(c.dataset.pool));
    timers.set(c.dataset.pool, setTimeout(() => act("assess", c), WRITING));
  }

  function makeCurrent(c, focus) {
    current = c;
    for (const other of cards) other.classList.toggle("current", other === c);
    if (focus) { c.focus({ preventScroll: true }); c.scrollIntoView({ block: "nearest" }); }
  }

  const choose = (c) => act(view.selected.includes(c.dataset.pool) ? "deselect" : "select", c);
  const tickAll = (c) => { for (const box of boxes(c)) box.checked = true; act("assess", c); };
  const takeBack = () => { if (view.undo && !undo.disabled) { undo.disabled = true; send("undo", { action: view.undo.action }); } };

  for (const c of cards) {
    c.addEventListener("pointerdown", () => makeCurrent(c, false));
    c.addEventListener("focusin", () => makeCurrent(c, false));
    for (const box of boxes(c)) box.addEventListener("change", () => act("assess", c));
    c.querySelector(".all").addEventListener("click", () => tickAll(c));
    c.querySelector(".select").addEventListener("click", () => choose(c));
    note(c).addEventListener("input", () => writeSoon(c));
    note(c).addEventListener("change", () => { if (timers.has(c.dataset.pool)) act("assess", c); });
  }
  undo.addEventListener("click", takeBack);

  const ticks = Object.fromEntries([...root.querySelectorAll("[data-ticks]")].map((k) => [k.textContent, k.dataset.ticks]));
  const links = Object.fromEntries([...root.querySelectorAll("[data-key]")].flatMap((a) => a.dataset.key.split(" ").map((k) => [k, a])));
  shortcuts.checked = localStorage.getItem("curation-shortcuts") !== "off";
  shortcuts.addEventListener("change", () => localStorage.setItem("curation-shortcuts", shortcuts.checked ? "on" : "off"));

  document.addEventListener("keydown", async (event) => {
    if (event.key === "Escape" && typing(event.target)) { event.target.blur(); if (current) makeCurrent(current, true); return; }
    if (!shortcuts.checked || event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    const on = current || card(view.selected[0]) || cards[0];
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (/^[1-9]$/.test(key) && cards[key - 1]) makeCurrent(cards[key - 1], true);
    else if (links[key]) { event.preventDefault(); await settle(); links[key].click(); }
    else if (key === "z") takeBack();
    else if (key === "?") root.querySelector(".keys").open = !root.querySelector(".keys").open;
    else if (!on) return;
    else if (ticks[key]) { makeCurrent(on, true); const box = on.querySelector(`[name=${ticks[key]}]`); box.checked = !box.checked; act("assess", on); }
    else if (key === "a") { makeCurrent(on, true); tickAll(on); }
    else if (key === "s") { makeCurrent(on, true); choose(on); }
    else if (key === "m") { makeCurrent(on, false); note(on).focus(); }
    else return;
    event.preventDefault();
  });

  window.addEventListener("beforeunload", (event) => {
    for (const pool of [...timers.keys()]) act("assess", card(pool));
    if (queue.length) event.preventDefault();
  });

  show(view);
  if (faces > 1) tell(`${faces} images are wanted for this cell.`);
  poll(() => `since/${view.last}?cell=${encodeURIComponent(cell)}`, (data) => {
    const here = data.news.filter((n) => n.cell === cell);
    if (!queue.length) show(data);
    if (here.length) warn(here.map((n) => n.text).join("\n"));
  }, () => queue.length > 0);
}

// -- all cells -----------------------------------------------------------------------------------------------

function openGrid(tiles) {
  let last = Number(document.getElementById("grid").dataset.last);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (event.key === "o") { const go = document.querySelector("[data-key=o]"); if (go) { event.preventDefault(); go.click(); } return; }
    const at = tiles.indexOf(document.activeElement);
    const box = (t) => t.getBoundingClientRect();
    let to = null;
    if (event.key === "ArrowRight") to = tiles[at + 1];
    else if (event.key === "ArrowLeft") to = tiles[at - 1];
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (at < 0) to = tiles[0];
      else {
        const from = box(tiles[at]);
        const down = event.key === "ArrowDown";
        const rows = tiles.filter((t) => (down ? box(t).top > from.top + 4 : box(t).top < from.top - 4));
        const edge = rows.length ? box(down ? rows[0] : rows[rows.length - 1]).top : 0;
        const row = rows.filter((t) => Math.abs(box(t).top - edge) < 4);
        to = row.sort((a, b) => Math.abs(box(a).left - from.left) - Math.abs(box(b).left - from.left))[0];
      }
    } else return;
    if (to) { event.preventDefault(); to.focus(); }
  });

  poll(() => `since/${last}`, (data) => {
    for (const tile of tiles) {
      const next = data.tiles[tile.dataset.cell];
      if (!next) continue;
      tile.dataset.status = next.status;
      tile.querySelector(".words").textContent = next.words;
      tile.querySelector(".status .pool").textContent = next.chosen.join(", ");
      if (next.pool && tile.querySelector("img")) tile.querySelector("img").src = `/curate/image/${next.cell}/${next.pool}`;
    }
    for (const count of document.querySelectorAll("[data-count]")) count.textContent = data.counts[count.dataset.count] || 0;
    document.getElementById("done").textContent = data.counts.done || 0;
    if (data.news.length) tell(data.news[data.news.length - 1].text);
    last = data.last;
  }, () => false);
}

function poll(where, take, busy) {
  const look = async () => {
    if (!document.hidden && !busy()) {
      try {
        const { status, data } = await call(where());
        if (status === 200 && !busy()) take(data);
      } catch { /* the next look, or the next action, will tell */ }
    }
    setTimeout(look, POLL);
  };
  setTimeout(look, POLL);
}

// -- the end -------------------------------------------------------------------------------------------------

function openFinalise(button) {
  button.addEventListener("click", async () => {
    button.disabled = true;
    warn("");
    tell("Writing the portraits …");
    try {
      const { status, data } = await call("finalise", { sure: true });
      if (status === 200) { tell(`Written: ${data.manifest}`); document.getElementById("finalised").hidden = false; return; }
      warn(data.message);
    } catch (problem) {
      warn(problem instanceof SignedOut ? "You are signed out; sign in again." : "The server did not answer; a set is written whole or not at all, so try again.");
    }
    tell("");
    button.disabled = false;
  });
  button.disabled = !("ready" in button.dataset); // before this, a click would have been lost
}

const cell = document.getElementById("cell");
const tiles = [...document.querySelectorAll(".tile")];
const button = document.getElementById("finalise");
if (cell) openCell(cell);
if (tiles.length) openGrid(tiles);
if (button) openFinalise(button);
