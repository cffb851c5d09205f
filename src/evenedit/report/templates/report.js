"use strict";
(() => {
  const root = document.documentElement;
  const make = (tag, properties) => Object.assign(document.createElement(tag), properties);

  // Light or dark: the system's choice until the reader makes one.
  const theme = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const label = () => { theme.textContent = dark() ? "Light" : "Dark"; };
  try { const kept = localStorage.getItem("evenedit-theme"); if (kept) root.dataset.theme = kept; } catch { /* private mode */ }
  theme.hidden = false;
  theme.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem("evenedit-theme", root.dataset.theme); } catch { /* private mode */ }
    label();
  });
  system.addEventListener("change", label);
  label();

  // Pictures of people can be blurred; the choice is kept.
  const blur = document.getElementById("blur");
  if (document.querySelector(".pair, .photos, .tiles")) {
    const set = (on) => {
      root.classList.toggle("blurred", on);
      blur.setAttribute("aria-pressed", String(on));
    };
    try { set(localStorage.getItem("evenedit-blur") === "yes"); } catch { /* private mode */ }
    blur.hidden = false;
    blur.addEventListener("click", () => {
      set(!root.classList.contains("blurred"));
      try { localStorage.setItem("evenedit-blur", root.classList.contains("blurred") ? "yes" : "no"); } catch { /* private mode */ }
    });
  }

  // What is wider than its frame says so.
  for (const frame of document.querySelectorAll(".frame")) {
    const inner = frame.firstElementChild;
    const cue = make("p", { className: "cue", hidden: true, textContent: "Scroll sideways for more →" });
    frame.append(cue);
    const look = () => {
      const over = inner.scrollWidth - inner.clientWidth;
      frame.classList.toggle("cut", over - inner.scrollLeft > 4);
      cue.hidden = over <= 4;
    };
    inner.addEventListener("scroll", look, { passive: true });
    new ResizeObserver(look).observe(inner);
  }

  // Figures: Tab stops once, arrows walk from mark to mark, Enter opens the cases.
  for (const drawing of document.querySelectorAll(".drawing")) {
    const marks = [...drawing.querySelectorAll("a")];
    marks.forEach((mark, at) => mark.setAttribute("tabindex", at ? "-1" : "0"));
    drawing.addEventListener("keydown", (event) => {
      const at = marks.indexOf(document.activeElement);
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (at < 0 || !step || !marks[at + step]) return;
      event.preventDefault();
      marks[at].setAttribute("tabindex", "-1");
      marks[at + step].setAttribute("tabindex", "0");
      marks[at + step].focus();
    });
  }

  // Tables: a click on a heading sorts; the foot stays.
  for (const table of document.querySelectorAll("table")) {
    const body = table.tBodies[0];
    if (body.rows.length < 2) continue;
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = make("button", { type: "button", textContent: head.textContent });
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") !== "descending" && (head.classList.contains("num") || head.hasAttribute("aria-sort"));
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const key = (row) => {
          const cell = row.cells[column];
          if (!head.classList.contains("num")) return cell.textContent;
          return cell.dataset.sort === undefined ? null : Number(cell.dataset.sort);
        };
        const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b) : a - b) * (down ? -1 : 1);
        const rows = [...body.rows].map((row) => [key(row), row]);
        rows.sort(([a], [b]) => (a === null) - (b === null) || (a === null ? 0 : compare(a, b)));
        body.append(...rows.map(([, row]) => row));
      });
    });
    if (body.rows.length > 9) filter(table.closest(".table"), () => [...body.rows], "rows");
  }
  for (const cards of document.querySelectorAll(".cards"))
    if (cards.children.length > 6) filter(cards, () => [...cards.children], "examples");

  // Every word typed must occur.
  function filter(before, items, what) {
    const input = make("input", { type: "search", placeholder: "words, in any order" });
    const count = make("span", {});
    count.setAttribute("role", "status");
    const box = make("label", { className: "filter" });
    box.append(`Filter ${what} `, input, count);
    before.before(box);
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      const all = items();
      for (const item of all) item.hidden = !words.every((word) => item.textContent.toLowerCase().includes(word));
      count.textContent = words.length ? `${all.filter((item) => !item.hidden).length} of ${all.length}` : "";
    });
  }

  // Pictures: a click enlarges, arrows walk on.
  const zoom = document.getElementById("zoom");
  const views = zoom.querySelector(".views");
  let shown = null;
  const show = (figure) => {
    shown = figure;
    const pictures = [...figure.querySelectorAll("img")];
    views.replaceChildren(...pictures.map((img) => make("img", { src: img.src, alt: img.alt })));
    zoom.classList.toggle("alone", pictures.length === 1);
    zoom.querySelector(".about").innerHTML = figure.querySelector("figcaption").innerHTML;
    if (!zoom.open) zoom.showModal();
  };
  for (const button of document.querySelectorAll("button.pair, button.enlarge")) button.addEventListener("click", () => show(button.closest("figure")));
  zoom.addEventListener("click", (event) => { if (event.target === zoom) zoom.close(); });
  zoom.addEventListener("keydown", (event) => {
    const step = { ArrowRight: "nextElementSibling", ArrowLeft: "previousElementSibling" }[event.key];
    let next = step && shown.matches(".card") && shown[step];
    while (next && next.hidden) next = next[step];
    if (next) show(next);
  });

  // Figures: what a point says, at once rather than after the browser's wait.
  const tip = make("div", { className: "tooltip", hidden: true });
  document.body.append(tip);
  addEventListener("pointerover", (event) => {
    const mark = event.target.closest?.(".tip");
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = mark.querySelector("title").textContent;
    const box = mark.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(box.left + box.width / 2 - tip.offsetWidth / 2, innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${box.top > 60 ? box.top - tip.offsetHeight - 8 : box.bottom + 8}px`;
  });
  addEventListener("focusin", (event) => event.target.closest?.(".tip")?.dispatchEvent(new PointerEvent("pointerover", { bubbles: true })));
  addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });

  // A link into something folded unfolds it.
  const unfold = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let part = target && target.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  unfold();

  // Print tells what was observed of every editor; of the folded tables, those that the reader has unfolded.
  addEventListener("beforeprint", () => { for (const part of document.querySelectorAll("details.editor")) part.open = true; });
})();
