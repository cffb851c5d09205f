// One case to settle: digits answer, arrows move between questions, Enter saves. The page works without this script.

import { Keys } from "./keys.js";
import { Zoom } from "./zoom.js";

const form = document.getElementById("questions");
const fields = [...form.querySelectorAll("fieldset")];
const save = document.getElementById("save");
const skip = document.getElementById("skip");
const undo = document.getElementById("undo");
const on = document.getElementById("keys-on");
const keys = new Keys();
const zoom = new Zoom(document.getElementById("pictures"), document.getElementById("zoom"));
let current = 0;

const chosen = (field) => field.querySelector("input:checked");

function mark(at) {
  current = at;
  fields.forEach((field, number) => field.classList.toggle("current", number === at));
}

function go(at) {
  mark(Math.min(fields.length - 1, Math.max(0, at)));
  const field = fields[current];
  (chosen(field) || field.querySelector("input")).focus({ preventScroll: true });
  field.scrollIntoView({ block: "nearest" });
}

function refresh() {
  for (const field of fields) field.querySelector(".clear").hidden = !chosen(field);
}

function label() {
  const shown = { enter: "Enter", u: "u", next: keys.shown("next"), zoom: keys.shown("zoom") };
  for (const place of document.querySelectorAll("[data-shown]")) place.textContent = keys.on ? shown[place.dataset.shown] : "";
  on.checked = keys.on;
}

fields.forEach((field, at) => {
  field.addEventListener("focusin", () => mark(at));
  field.addEventListener("change", refresh);
  field.querySelector(".clear").addEventListener("click", () => {
    const answer = chosen(field);
    if (answer) answer.checked = false;
    refresh();
    go(at);
  });
});

on.addEventListener("change", () => {
  keys.turn(on.checked);
  label();
});

let sent = false;
form.addEventListener("submit", (event) => {
  if (sent) event.preventDefault(); // a second Enter is not a second answer
  sent = true;
  save.setAttribute("aria-busy", "true");
});

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.target.closest("textarea, input:not([type=radio]), select, dialog, summary")) return;
  const pressed = event.target.closest("button, a");
  if (event.key === "Enter" && !pressed && keys.on) {
    event.preventDefault();
    form.requestSubmit(save);
    return;
  }
  const action = keys.action(event);
  if (/^[1-9]$/.test(action ?? "")) {
    const answer = fields[current].querySelector(`input[value="${action}"]`);
    if (!answer) return;
    event.preventDefault();
    answer.checked = true;
    refresh();
    go(current + 1);
  } else if (action === "up" || action === "down") {
    event.preventDefault();
    go(current + (action === "down" ? 1 : -1));
  } else if (action === "next") {
    skip.click();
  } else if (action === "zoom") {
    zoom.toggle();
  } else if (keys.on && event.key === "u" && undo && !event.ctrlKey && !event.metaKey && !event.altKey) {
    undo.click();
  }
});

addEventListener("pageshow", (event) => {
  sent = false;
  if (event.persisted) location.reload(); // a page from the browser's memory may be out of date
});

label();
refresh();
mark(Math.max(0, fields.findIndex((field) => field.querySelector("[required]")))); // what is disputed comes first
fields[current].querySelector("input").focus({ preventScroll: true });
