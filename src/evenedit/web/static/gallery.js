// The gallery: everything works without this script; with it, filters apply at once and keys move between cases.

import { kept } from "./queue.js";
import { Zoom } from "./zoom.js";

const STORED = "evenedit:gallery-keys";
const narrow = matchMedia("(max-width: 60rem)");
const help = document.getElementById("help");
const shortcuts = document.getElementById("shortcuts");
const stage = document.getElementById("stage");

// -- filters -------------------------------------------------------------------------------------------------

let loading = null;
let replacing = false;

function address(form) {
  const pairs = [...new FormData(form)].filter(([, value]) => value !== "");
  const query = new URLSearchParams(pairs).toString();
  return form.getAttribute("action") + (query ? `?${query}` : "");
}

const written = () => [...filters.querySelectorAll("[type=text], [type=number]")].map(({ name, value }) => [name, value]);

async function show(url, { push = true, scroll = false } = {}) {
  loading?.abort();
  loading = new AbortController();
  const results = document.getElementById("results");
  const before = new Map(written());
  results.setAttribute("aria-busy", "true");
  let fresh;
  let found;
  try {
    const answer = await fetch(url, { headers: { Accept: "text/html" }, signal: loading.signal });
    found = answer.url;
    fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  } catch (error) {
    if (error.name !== "AbortError") location.assign(url);
    return;
  }
  if (!fresh.getElementById("results")) { // signed out, or not understood: let the page say so
    location.assign(url);
    return;
  }
  const form = filters;
  const since = written().filter(([name, value]) => value !== before.get(name)); // typed while this was on its way
  const focus = form.contains(document.activeElement) ? document.activeElement : null;
  const open = new Map([...form.querySelectorAll("details")].map((d) => [d.id, d.open]));
  const scrolled = new Map([...form.querySelectorAll("details")].map((d) => [d.id, d.querySelector("fieldset")?.scrollTop ?? 0]));
  const caret = focus?.selectionStart;
  replacing = true; // a field that goes while it has the focus tells of a change
  form.replaceChildren(...document.importNode(fresh.getElementById("filters"), true).childNodes);
  replacing = false;
  for (const [name, value] of since) {
    form.elements[name].value = value;
    form.elements[name].addEventListener("blur", apply, { once: true });
  }
  for (const each of form.querySelectorAll("details")) {
    each.open = open.get(each.id) ?? each.open;
    const list = each.querySelector("fieldset");
    if (list) list.scrollTop = scrolled.get(each.id) ?? 0;
  }
  results.replaceChildren(...document.importNode(fresh.getElementById("results"), true).childNodes);
  results.removeAttribute("aria-busy");
  document.title = fresh.title;
  if (push) history.pushState(null, "", found);
  if (focus) {
    const named = [...form.elements].filter((e) => e.name === focus.name && (e.type !== "checkbox" || e.value === focus.value));
    named[0]?.focus({ preventScroll: true });
    if (named[0]?.type === "text") named[0].setSelectionRange(caret, caret);
  }
  if (scroll) results.scrollIntoView();
}

function apply() {
  if (!replacing) show(address(filters));
}

const filters = document.getElementById("filters");
if (filters) {
  if (narrow.matches) document.getElementById("panel").open = false;
  filters.addEventListener("change", apply);
  filters.addEventListener("submit", (event) => {
    event.preventDefault();
    show(address(filters));
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.(".chosen a, .gallery .pager a, .apply a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    show(link.href, { scroll: Boolean(link.closest(".pager")) });
  });
  addEventListener("popstate", () => show(location.href, { push: false }));
}

// -- pictures ------------------------------------------------------------------------------------------------

const closer = document.getElementById("zoom");
const zoom = stage && closer ? new Zoom(stage, closer) : null;
if (closer) closer.hidden = false;

// -- keys ----------------------------------------------------------------------------------------------------

const tiles = () => [...document.querySelectorAll("#results .tile")];

function move(step) {
  const all = tiles();
  const at = all.indexOf(document.activeElement);
  const next = all[at < 0 ? 0 : Math.min(all.length - 1, Math.max(0, at + step))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

function across() {
  const all = tiles();
  const top = all[0]?.getBoundingClientRect().top;
  return Math.max(1, all.findIndex((tile) => tile.getBoundingClientRect().top > top + 1));
}

const follow = (rel) => document.querySelector(`.pager a[rel=${rel}]`)?.click();
const GRID = {
  j: () => move(1), k: () => move(-1), n: () => follow("next"), p: () => follow("prev"),
  ArrowRight: () => move(1), ArrowLeft: () => move(-1), ArrowDown: () => move(across()), ArrowUp: () => move(-across()),
  "/": () => {
    document.getElementById("panel").open = true;
    filters.querySelector("[name=q]").focus();
  },
};
const CASE = {
  j: () => follow("next"), k: () => follow("prev"), ArrowRight: () => follow("next"), ArrowLeft: () => follow("prev"),
  z: () => zoom?.toggle(), g: () => document.getElementById("back").click(),
};
const keys = filters ? GRID : stage ? CASE : {};

shortcuts.checked = kept.getItem(STORED) !== "off";
shortcuts.addEventListener("change", () => kept.setItem(STORED, shortcuts.checked ? "on" : "off"));
for (const button of document.querySelectorAll("[data-help]")) {
  button.hidden = false;
  button.addEventListener("click", () => help.showModal());
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || help.open) return;
  // The box in the help may keep the focus for a moment after the help is closed: keys do not belong to it.
  const inside = help.contains(event.target) ? null : event.target.closest("input, select, textarea");
  if (inside && event.key === "Escape" && filters) {
    tiles()[0]?.focus();
    return;
  }
  if (inside || !shortcuts.checked) return;
  const arrow = event.key.startsWith("Arrow");
  if (arrow && filters && !event.target.closest(".tile")) return; // arrows scroll unless a case has the focus
  if (arrow && event.target.closest(".scroll, summary")) return;
  const deed = event.key === "?" ? () => help.showModal() : keys[event.key];
  if (!deed) return;
  event.preventDefault();
  deed();
});
