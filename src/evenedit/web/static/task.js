// The evaluation page: one item at a time, every answer saved at once.
import { Keys } from "./keys.js";
import { Queue } from "./queue.js";
import { Zoom } from "./zoom.js";

const AHEAD = 3; // items whose pictures are fetched before they are needed
const words = JSON.parse(document.getElementById("words").textContent);
const element = (id) => document.getElementById(id);
const say = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);

function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

const keys = new Keys();
const zoom = new Zoom(element("pictures"), element("zoom"));
let items = [];
let current = 0;
let queue;

// -- what is answered ---------------------------------------------------------------------------------------

const nameOf = (question, slot) => `${question}/${slot}`;
const rowsOf = (item) => item.questions.flatMap((question) => question.slots.map((slot) => ({ question, slot })));
const isAnswered = (item, question, slot) => question.columns.every((column) => item.given[nameOf(column, slot)]);
const missingOf = (item) => rowsOf(item).filter(({ question, slot }) => !isAnswered(item, question, slot));
const isDone = (item) => missingOf(item).length === 0;

const clock = { shown: 0 }; // time with the item on a visible screen
function startClock() {
  clock.shown = performance.now();
}
function stopClock() {
  if (clock.shown && items[current]) items[current].milliseconds += performance.now() - clock.shown;
  clock.shown = 0;
}
document.addEventListener("visibilitychange", () => (document.hidden ? stopClock() : startClock()));

function answer(question, slot, value) {
  const item = items[current];
  item.given[nameOf(question, slot)] = value;
  stopClock();
  startClock();
  queue.add({ item: item.id, slot, question, value, milliseconds: Math.round(item.milliseconds) });
  showProgress();
  markRows();
}

// The answers of a question as they are shown. The number is the key; value 0 stands for none of a set.
function optionsOf(question) {
  const last = question.cannot_tell ? question.labels.length : 0;
  const shown = question.order.map((value, at) => ({ value, number: value === last ? 0 : at + 1, label: question.labels[value - 1] }));
  return question.kind === "set" ? [...shown, { value: 0, number: 0, label: question.none }] : shown;
}

function isTicked(item, question, slot, value) {
  const given = question.columns.map((column) => item.given[nameOf(column, slot)]);
  if (question.kind !== "set") return given[0] === value;
  return value ? given[value - 1] === 1 : given.every((one) => one === 2);
}

// Every option of a set is an answer of its own: 1 ticked, 2 not. Without any tick the question is open again.
function tick(question, slot, value, on) {
  const item = items[current];
  const ticked = question.columns.map((_, at) => (at + 1 === value ? on : value > 0 && isTicked(item, question, slot, at + 1)));
  const isOpen = value ? !ticked.includes(true) : !on;
  question.columns.forEach((column, at) => {
    if (isOpen) delete item.given[nameOf(column, slot)];
    else if (item.given[nameOf(column, slot)] !== (ticked[at] ? 1 : 2)) answer(column, slot, ticked[at] ? 1 : 2);
  });
  for (const input of document.getElementsByName(nameOf(question.id, slot))) {
    input.checked = isTicked(item, question, slot, Number(input.value));
  }
  showProgress();
  markRows();
}

// -- how far, and whether it is saved -----------------------------------------------------------------------

function showProgress() {
  const done = items.filter(isDone).length;
  element("progress").max = items.length;
  element("progress").value = done;
  element("done-count").textContent = say(words.progress, { done, all: items.length });
  items.forEach((item, index) => {
    const mark = element("strip").children[index];
    const state = isDone(item) ? "complete" : Object.keys(item.given).length ? "partial" : "open";
    mark.dataset.state = state;
    mark.setAttribute("aria-label", `${say(words.item, { number: item.number })}, ${words[state]}`);
    if (index === current) mark.setAttribute("aria-current", "step");
    else mark.removeAttribute("aria-current");
  });
}

let wasOffline = false;
function showState(state, count, message) {
  const shown = element("state");
  shown.dataset.state = state;
  shown.textContent = state === "offline" ? say(words.queued, { count }) : words[state];
  if (state === "offline" && !wasOffline) element("announcement").textContent = words.offline_announcement;
  if (state === "saved" && wasOffline) element("announcement").textContent = words.online_announcement;
  if (state !== "saving") wasOffline = state === "offline";
  element("trouble").hidden = state !== "failed";
  if (state === "failed") element("trouble").textContent = say(words.failed_announcement, { message });
  if (element("hand-in").open) describeHandIn();
}

// -- pictures -----------------------------------------------------------------------------------------------

const pictures = new Map(); // id -> promise of an object URL; nothing is kept in the browser's cache

function picture(id) {
  if (!pictures.has(id)) {
    const loading = fetch(`/survey/pictures/${id}`).then(async (reply) => {
      if (!reply.ok) throw new Error(reply.status);
      return URL.createObjectURL(await reply.blob());
    });
    loading.catch(() => pictures.delete(id));
    pictures.set(id, loading);
  }
  return pictures.get(id);
}

function preload() {
  for (const item of items.slice(current + 1, current + 1 + AHEAD)) {
    for (const { id } of item.pictures) picture(id).catch(() => {});
  }
}

function captionOf(slot, item) {
  if (slot.startsWith("source")) return words[slot];
  return item.pictures.some((other) => other.slot === "B") ? say(words.output, { slot }) : words.result;
}

async function fill(image, id, retry) {
  retry.hidden = true;
  try {
    image.src = await picture(id);
  } catch {
    retry.hidden = false;
  }
}

function showPictures(item) {
  const box = element("pictures");
  box.replaceChildren();
  const slots = item.pictures.map(({ slot }) => slot);
  box.dataset.layout = slots.includes("source_1") ? "role" : slots.includes("B") ? "pair" : "one";
  for (const { slot, id } of item.pictures) {
    const caption = captionOf(slot, item);
    const image = make("img", { alt: caption });
    const retry = make("button", { type: "button", class: "retry", hidden: true }, words.picture_failed);
    retry.addEventListener("click", (event) => {
      event.stopPropagation();
      fill(image, id, retry);
    });
    box.append(make("figure", { "data-slot": slot }, make("div", { class: "frame" }, image, retry), make("figcaption", {}, caption)));
    fill(image, id, retry);
  }
  zoom.set(false);
}

// On a narrow screen a tap shows the pictures one by one at full width, to be compared by swiping.
element("pictures").addEventListener(
  "click",
  (event) => {
    const tapped = event.target.closest("figure");
    if (!tapped || !matchMedia("(max-width: 44rem)").matches || event.target.closest(".retry")) return;
    event.stopPropagation();
    const copies = [...element("pictures").children].map((figure) => figure.cloneNode(true));
    element("viewer-pictures").replaceChildren(...copies);
    element("viewer").showModal();
    copies[[...element("pictures").children].indexOf(tapped)].scrollIntoView({ inline: "center", behavior: "instant" });
  },
  true,
);

// -- questions ----------------------------------------------------------------------------------------------

function option(item, question, slot, { value, number, label }, withWords) {
  const isSet = question.kind === "set";
  const digit = number < 10 ? number : null;
  const type = isSet ? "checkbox" : "radio";
  const input = make("input", { type, name: nameOf(question.id, slot), value, "data-digit": digit, checked: isTicked(item, question, slot, value) });
  input.addEventListener("change", () => (isSet ? tick(question, slot, value, input.checked) : answer(question.id, slot, value)));
  const text = make("span", { class: withWords ? "words" : "hidden" }, label);
  return make("label", { class: "option" }, input, make("span", { class: "number" }, String(number)), " ", text);
}

function group(item, question, slot, index, withWords) {
  const title = withWords ? "" : say(words.output, { slot });
  const made = make("div", {
    class: "group",
    role: question.kind === "set" ? "group" : "radiogroup",
    "aria-labelledby": `title-${index} ${title ? `slot-${index}-${slot}` : ""} text-${index}`,
    "data-row": nameOf(question.id, slot),
  });
  if (title) made.append(make("span", { class: "slot", id: `slot-${index}-${slot}` }, title));
  made.append(...optionsOf(question).map((shown) => option(item, question, slot, shown, withWords)));
  return made;
}

function showQuestions(item) {
  const form = element("questions");
  form.replaceChildren();
  item.questions.forEach((question, index) => {
    const paired = question.slots[0] !== "" && item.pictures.some(({ slot }) => slot === "B");
    const options = optionsOf(question);
    const matrix = make("div", { class: paired ? "matrix" : "list" });
    if (paired) {
      const column = make("div", { class: "labels", "aria-hidden": "true" }, make("span", { class: "slot" }));
      for (const { number, label } of options) column.append(make("span", {}, make("b", {}, String(number)), " ", label));
      matrix.append(column);
      matrix.style.gridTemplateRows = `repeat(${options.length + 1}, auto)`;
    }
    for (const slot of question.slots) matrix.append(group(item, question, slot, index, !paired));
    form.append(
      make(
        "section",
        { class: "question" },
        make("h2", { id: `title-${index}` }, question.title),
        make("p", { id: `text-${index}`, class: "text" }, question.text),
        matrix,
      ),
    );
  });
  const before = make("button", { type: "button", id: "previous", disabled: current === 0 }, words.previous);
  const last = current === items.length - 1;
  const after = make("button", { type: "button", id: "next", class: "primary large" }, last ? words.submit : words.next);
  before.addEventListener("click", () => go(current - 1));
  after.addEventListener("click", () => (last ? handIn() : go(current + 1)));
  form.append(make("p", { class: "between" }, before, after));
  markRows();
}

function markRows() {
  const open = new Set(missingOf(items[current]).map(({ question, slot }) => nameOf(question.id, slot)));
  for (const row of document.querySelectorAll(".group")) row.classList.toggle("open", open.has(row.dataset.row));
  element("next")?.classList.toggle("ready", isDone(items[current]));
}

function go(index, focus = true) {
  if (index < 0 || index >= items.length) return;
  stopClock();
  current = index;
  const item = items[current];
  history.replaceState(null, "", `#${item.number}`);
  element("item-title").textContent = say(words.item_of, { number: item.number, all: items.length });
  element("translation").textContent = item.translation;
  element("translation").hidden = !item.translation;
  element("instruction").textContent = item.instruction;
  element("instruction").classList.toggle("original", Boolean(item.translation));
  element("instruction").lang = item.instructed ? document.documentElement.lang : "en";
  element("request-label").textContent = item.instructed ? words.check_item : words.request;
  element("task").classList.toggle("instructed", item.instructed);
  element("note").textContent = item.note;
  element("note").hidden = !item.note;
  showPictures(item);
  showQuestions(item);
  showProgress();
  element("strip").children[current].scrollIntoView({ block: "nearest", inline: "center" });
  scrollTo({ top: 0, behavior: "instant" });
  if (focus) element("item-title").focus({ preventScroll: true });
  startClock();
  preload();
}

// -- keyboard -----------------------------------------------------------------------------------------------

const groups = () => [...document.querySelectorAll(".group")];
const focusedGroup = () => document.activeElement?.closest?.(".group");

function focusRow(row) {
  if (!row) return;
  const target = row.querySelector("input:checked") || row.querySelector("input");
  target.focus({ preventScroll: true });
  row.closest(".question").scrollIntoView({ block: "nearest" });
}

function choose(row, digit) {
  const input = row?.querySelector(`input[data-digit="${digit}"]`);
  if (!input) return;
  const isSet = input.type === "checkbox";
  input.checked = !(isSet && input.checked);
  input.dispatchEvent(new Event("change"));
  if (isSet && input.value !== "0") return input.focus({ preventScroll: true }); // more of them may apply
  const rows = groups();
  const next = rows[rows.indexOf(row) + 1];
  if (next) focusRow(next);
  else element("next").focus();
}

const doings = {
  up: () => focusRow(groups()[Math.max(0, groups().indexOf(focusedGroup()) - 1)]),
  down: () => focusRow(groups()[Math.min(groups().length - 1, groups().indexOf(focusedGroup()) + 1)]),
  left: () => step(-1),
  right: () => step(1),
  next: () => element("next").click(),
  previous: () => go(current - 1),
  zoom: () => zoom.toggle(),
  help: () => showHelp(),
};

function step(by) {
  const row = focusedGroup() || groups()[0];
  const inputs = [...row.querySelectorAll("input")];
  if (inputs[0].type === "checkbox") {
    const next = inputs.indexOf(document.activeElement) + by;
    return inputs[Math.min(inputs.length - 1, Math.max(0, next))].focus({ preventScroll: true });
  }
  const at = inputs.findIndex((input) => input.checked);
  const target = inputs[at < 0 ? (by > 0 ? 0 : inputs.length - 1) : Math.min(inputs.length - 1, Math.max(0, at + by))];
  target.checked = true;
  target.focus({ preventScroll: true });
  target.dispatchEvent(new Event("change"));
}

document.addEventListener("keydown", (event) => {
  if (document.querySelector("dialog[open]") || !items.length) return;
  const action = keys.action(event);
  if (!action) return;
  event.preventDefault();
  if (/^\d$/.test(action)) choose(focusedGroup() || groups().find((row) => row.classList.contains("open")) || groups()[0], action);
  else doings[action]();
});

function keyRows(show) {
  const numbers = items.flatMap((item) => item.questions.flatMap((question) => optionsOf(question).map(({ number }) => number)));
  const most = Math.max(5, ...numbers.filter((number) => number < 10));
  const digits = [...Array.from({ length: most }, (_, at) => String(at + 1)), ...(numbers.includes(0) ? ["0"] : [])];
  const rows = [[digits, "answer"], ...Object.keys(doings).map((action) => [[action], action])];
  return rows.flatMap(([actions, name]) => [make("dt", {}, ...actions.map(show)), make("dd", {}, words[`key_${name}`])]);
}

function showHelp() {
  const rows = keyRows((action) => make("kbd", {}, keys.shown(action)));
  element("key-list").replaceChildren(...rows, make("dt", {}, make("kbd", {}, "Tab")), make("dd", {}, words.key_tab));
  element("help").showModal();
}

function showKeys() {
  element("keys-on").checked = keys.on;
  const buttons = keyRows((action) => {
    const button = make("button", { type: "button", "aria-label": `${words[`key_${action}`] ?? action}: ${keys.shown(action)}` }, keys.shown(action));
    button.addEventListener("click", () => changeKey(action, button));
    return button;
  });
  element("key-buttons").replaceChildren(...buttons);
  if (!element("keys").open) element("keys").showModal();
}

function changeKey(action, button) {
  button.textContent = words.keys_press;
  const listen = (event) => {
    if (["Shift", "Control", "Alt", "Meta"].includes(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    removeEventListener("keydown", listen, true);
    const isFree = ["Escape", "Tab", "Enter", " "].includes(event.key) ? null : keys.change(action, event.key);
    showKeys();
    showKeyHints();
    element("keys-note").textContent = isFree === false ? words.keys_taken : "";
  };
  addEventListener("keydown", listen, true);
}

function showKeyHints() {
  for (const hint of document.querySelectorAll("[data-key]")) {
    hint.textContent = keys.on ? keys.shown(hint.dataset.key) : "";
  }
}

// -- handing in ---------------------------------------------------------------------------------------------

function describeHandIn() {
  const state = element("state").dataset.state;
  const text = { saved: words.submit_text, saving: words.submit_waiting, offline: words.submit_offline, failed: words.submit_waiting };
  element("hand-in-text").textContent = text[state];
}

function handIn() {
  const missing = items.findIndex((item) => !isDone(item));
  if (missing >= 0) return showMissing(missing);
  describeHandIn();
  element("hand-in").showModal();
}

function showMissing(index) {
  element("trouble").textContent = `${words.missing_title}. ${words.missing_text}`;
  element("trouble").hidden = false;
  go(index, false);
  focusRow(groups().find((row) => row.classList.contains("open")));
}

element("hand-in-no").addEventListener("click", () => element("hand-in").close());
element("hand-in-yes").addEventListener("click", async () => {
  if (!(await queue.send())) return describeHandIn();
  let reply;
  try {
    reply = await fetch("/survey/submit", { method: "POST" });
  } catch {
    showState("offline", 0);
    return;
  }
  const body = await reply.json().catch(() => ({}));
  if (reply.ok) location.assign(body.next);
  else {
    element("hand-in").close();
    if (body.error?.type === "incomplete") showMissing(body.error.items[0] - 1);
    else showState("failed", 0, body.error?.message ?? "");
  }
});

// -- beginning ----------------------------------------------------------------------------------------------

element("open-help").addEventListener("click", showHelp);
element("open-keys").addEventListener("click", showKeys);
element("open-break").addEventListener("click", () => element("break").showModal());
element("keys-on").addEventListener("change", (event) => {
  keys.turn(event.target.checked);
  showKeyHints();
});
element("keys-reset").addEventListener("click", () => {
  keys.reset();
  showKeys();
  showKeyHints();
});

addEventListener("beforeunload", (event) => {
  if (queue?.waiting().length) event.preventDefault();
});

async function begin() {
  const reply = await fetch("/survey/items");
  if (reply.status === 401 || reply.status === 409) return location.assign("/survey");
  if (!reply.ok) throw new Error(reply.status);
  const task = await reply.json();
  items = task.items.map((item) => ({
    ...item,
    milliseconds: 0,
    given: Object.fromEntries(item.answers.map(({ question, slot, value }) => [nameOf(question, slot), value])),
  }));
  queue = new Queue(task.visit, task.sequence, showState, () => {
    element("trouble").textContent = words.newer;
    reload();
  });
  for (const waiting of queue.waiting()) {
    const item = items.find((found) => found.id === waiting.item);
    if (item) item.given[nameOf(waiting.question, waiting.slot)] = waiting.value;
    else queue.forget(waiting);
  }
  element("strip").replaceChildren(
    ...items.map((item, index) => {
      const button = make("button", { type: "button" }, String(item.number));
      button.addEventListener("click", () => go(index));
      return button;
    }),
  );
  element("task").hidden = false;
  showKeyHints();
  const wanted = Number(location.hash.slice(1)) - 1;
  const firstOpen = items.findIndex((item) => !isDone(item));
  go(items[wanted] ? wanted : Math.max(0, firstOpen < 0 ? items.length - 1 : firstOpen), false);
  queue.send();
}

// Takes over what another device has answered in the meantime.
async function reload() {
  const task = await (await fetch("/survey/items")).json();
  for (const { id, answers } of task.items) {
    const item = items.find((found) => found.id === id);
    for (const { question, slot, value } of answers) item.given[nameOf(question, slot)] = value;
  }
  go(current, false);
  element("trouble").hidden = false;
}

begin().catch(() => {
  element("trouble").textContent = words.not_loaded;
  element("trouble").hidden = false;
});
