// The cases that meet the query after '#', as the gallery of the web app understands it.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const fields = new Map(data.fields.map((field) => [field.id, field]));
  const numbers = new Map(data.numbers.map((number) => [number.id, number]));
  const folder = document.body.dataset.pictures;
  const full = Boolean(document.body.dataset.full);
  const list = document.getElementById("cases");
  const order = document.getElementById("order");
  const PAGE = 60;
  const make = (tag, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };
  const value = (field, row) => fields.get(field).values[fields.get(field).codes[row]];
  const query = () => [...new URLSearchParams(location.hash.slice(1))].filter(([, wanted]) => wanted !== "");

  const sorts = [["", "order of the study"], ...data.numbers.map((n) => [n.id, `${n.title}, highest first`])];
  order.append(...sorts.map(([id, title]) => make("option", { value: id, textContent: title })));
  if (numbers.has("drift")) order.value = "drift";

  // A test for each condition; values of one field are alternatives.
  function tests(pairs) {
    const chosen = new Map();
    const found = [];
    for (const [name, wanted] of pairs) {
      const [bare, end] = [name.slice(0, name.lastIndexOf(".")), name.slice(name.lastIndexOf(".") + 1)];
      if (name === "case") found.push((row) => data.ids[row] === wanted);
      else if (fields.has(name)) chosen.set(name, [...(chosen.get(name) ?? []), wanted]);
      else if (numbers.has(bare)) {
        const values = numbers.get(bare).values;
        found.push((row) => values[row] !== null && (end === "min" ? values[row] >= Number(wanted) : values[row] <= Number(wanted)));
      }
    }
    for (const [name, wanted] of chosen) {
      const field = fields.get(name);
      const codes = new Set(wanted.map((one) => field.values.findIndex(([code]) => code === one)));
      found.push((row) => codes.has(field.codes[row]));
    }
    return found;
  }

  // A list to choose from for each field with few values; the choice becomes part of the query.
  const MOST = 100;
  const filters = document.getElementById("filters");
  for (const field of data.fields.filter((f) => f.values.length > 1 && f.values.length <= MOST)) {
    const choose = make("select", { name: field.id });
    choose.append(make("option", { value: "", textContent: "any" }), ...field.values.map(([code, title]) => make("option", { value: code, textContent: title })));
    choose.addEventListener("change", () => {
      const others = query().filter(([name]) => name !== field.id);
      location.hash = new URLSearchParams(choose.value === "" ? others : [...others, [field.id, choose.value]]);
    });
    filters.append(make("label", {}, `${field.title} `, choose), " ");
  }

  const counts = (name) => data.scores.includes(name) || name === "outcome" || name.includes(".");

  function words([name, wanted]) {
    if (name === "case") return `Case ${wanted.slice(0, 12)}`;
    const field = fields.get(name);
    if (field) return `${field.title}: ${(field.values.find(([code]) => code === wanted) ?? [wanted, wanted])[1]}`;
    const bare = name.slice(0, name.lastIndexOf("."));
    return `${numbers.get(bare)?.title ?? bare} ${name.endsWith(".min") ? "from" : "to"} ${wanted}`;
  }

  const picture = (name, alt) => {
    const img = make("img", { src: `${folder}/${name}.webp`, alt, loading: "lazy", decoding: "async", width: 160, height: 160 });
    return full ? make("a", { href: `${folder}/full/${name}.png` }, img) : img;
  };

  function tile(row) {
    const source = value("source", row)[0];
    const labels = data.labels ?? [];
    const prompt = value("prompt", row);
    const pictures = make("div", { className: "pair" });
    for (const name of data.portraits[source]) pictures.append(picture(name, "Source portrait"));
    if (data.outputs[row]) pictures.append(picture(data.outputs[row], `Edit by ${value("editor", row)[1]} for: ${prompt[1]}`));
    else if (data.reasons[data.ids[row]] !== undefined) pictures.append(make("p", { className: "nothing", textContent: `${value("outcome", row)[1]}: ${data.reasons[data.ids[row]]}` }));
    const scores = data.scores.map((id) => [fields.get(id).title, value(id, row)]).filter(([, [code]]) => /^\d+$/.test(code));
    const read = data.printed.map((id) => [numbers.get(id).title, numbers.get(id).values[row]]).filter(([, number]) => number !== null);
    const list = make("dl", { className: "readings" });
    for (const [title, number] of read) list.append(make("div", {}, make("dt", { textContent: title }), make("dd", { textContent: String(number).replace("-", "−") })));
    const about = make("div", { className: "about-case" },
      make("p", { className: "what" }, make("strong", { textContent: prompt[1] })),
      make("p", { className: "who", textContent: [value("editor", row)[1], value("condition", row)[1], ...data.fields.filter((f) => f.title.startsWith("Labelled")).map((f) => f.values[f.codes[row]][1])].join(" · ") }),
      make("p", { className: "scores" }, ...scores.flatMap(([title, [, label]]) => [make("span", { textContent: `${title} ${label}` }), " "])),
      make("details", {}, make("summary", { textContent: "Request and measurements" }),
        make("p", { textContent: data.prompts[prompt[0]] ?? "" }), list, make("p", { className: "id", textContent: `Portrait ${source}, case ${data.ids[row]}` }),
        ...(document.body.dataset.pages ? [make("p", {}, make("a", { href: `${document.body.dataset.pages}/${data.ids[row]}.html`, textContent: "The page of this case" }))] : [])));
    return make("li", { className: "tile" }, pictures, about);
  }

  let rows = [];
  let shown = 0;
  const further = document.getElementById("further");
  const more = () => {
    list.append(...rows.slice(shown, shown + PAGE).map(tile));
    shown = Math.min(rows.length, shown + PAGE);
    further.hidden = shown >= rows.length;
    further.textContent = `Show ${Math.min(PAGE, rows.length - shown)} more of ${(rows.length - shown).toLocaleString("en")}`;
  };

  function show() {
    const pairs = query();
    const met = tests(pairs);
    rows = data.ids.map((_, row) => row).filter((row) => met.every((test) => test(row)));
    const by = numbers.get(order.value)?.values;
    if (by) rows.sort((a, b) => (by[a] === null) - (by[b] === null) || by[b] - by[a] || a - b);
    const over = pairs.filter(([name]) => !counts(name));
    const whole = over.length < pairs.length ? tests(over) : null;
    const all = whole ? data.ids.filter((_, row) => whole.every((test) => test(row))).length : 0;
    document.getElementById("count").textContent = `${rows.length.toLocaleString("en")} ${whole ? `of the ${all.toLocaleString("en")} edits the number is over` : `of ${data.ids.length.toLocaleString("en")} edits`}`;
    const every = document.getElementById("every");
    every.hidden = !whole;
    every.href = `#${new URLSearchParams(over)}`;
    document.getElementById("chosen").replaceChildren(...pairs.map((pair, at) => {
      const link = make("a", { className: "chip", href: `#${new URLSearchParams(pairs.filter((_, other) => other !== at))}`, textContent: words(pair) });
      link.append(make("span", { textContent: " ×", ariaHidden: "true" }), make("span", { className: "hidden", textContent: " (remove)" }));
      return make("li", {}, link);
    }));
    for (const choose of filters.querySelectorAll("select")) choose.value = pairs.find(([name]) => name === choose.name)?.[1] ?? "";
    list.replaceChildren();
    shown = 0;
    more();
  }
  further.addEventListener("click", more);
  order.addEventListener("change", show);
  addEventListener("hashchange", show);
  show();
})();
