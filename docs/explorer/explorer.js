// The explorer page: a table to edit, and what ndcg_ml says about it. No formula is here: numbers come from
// examples.json, which ndcg_ml wrote, and after an edit from ndcg_ml itself in worker.js.

const here = import.meta.url;
const root = document.getElementById("ndcg-explorer");
const SHOWN_SWITCHES = ["gain", "discount", "ideal", "ties", "empty", "aggregate"];
const NUMBERS = ["max_grade", "recall_depth"];
const COLUMNS = [["query", "query"], ["doc", "document"], ["label", "label"], ["score", "score"]];

let about; // presets, switches, examples
let state; // what the reader sees in the fields: {rows, k, flavor, value}, and whether the value was typed
let python = null; // null, "loading" or the worker that answers
let edits = 0; // an answer to what was asked before the last edit is not shown
const pending = new Map();

const element = (tag, attributes = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name in made && name !== "list") made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
};
const $ = (name) => root.querySelector(`[data-part=${name}]`);
const digits = (value) => (value === null ? "nan" : value.toFixed(6));
const presetPage = (name) => new URL(`../flavors/${name}/`, here).href;
const link = (name) => element("a", { href: presetPage(name), title: `preset ${name}` }, about.presets[name]);

// -- Python ---------------------------------------------------------------------------------------------------------

function load() {
  if (python) return;
  python = "loading";
  const worker = new Worker(new URL("worker.js", here));
  const fail = (message) => {
    worker.terminate();
    python = null;
    for (const { reject } of pending.values()) reject(new Error(message));
    pending.clear();
    note(`Python could not be loaded: ${message}. The examples still show their numbers.`, "Try again");
  };
  worker.onerror = (event) => fail(event.message || "the worker did not start");
  worker.onmessage = ({ data }) => {
    if (data.stage) note(`Loading ${data.stage} … the numbers below will follow.`);
    else if (data.ready) {
      python = worker;
      note(`ndcg_ml ${about.version} runs in this browser: every edit is computed at once.`);
      // The edit that started Python waits to ask the same.
      clearTimeout(waiting);
      refresh();
    } else if (data.id === undefined) fail(data.failed);
    else {
      const { resolve, reject } = pending.get(data.id) ?? {};
      pending.delete(data.id);
      if (data.failed) reject?.(new Error(data.failed));
      else resolve?.(JSON.parse(data.answer));
    }
  };
  note("Loading Python … the numbers below will follow.");
  worker.postMessage({ start: new URL(".", here).href, wheel: `ndcg_ml-${about.version}-py3-none-any.whl` });
}

let asked = 0;
function ask(request) {
  const id = ++asked;
  return new Promise((resolve, reject) => {
    pending.set(id, { resolve, reject });
    python.postMessage({ id, request: JSON.stringify(request) });
  });
}

function note(text, button) {
  $("note").textContent = text;
  const loadButton = $("load");
  loadButton.hidden = !button;
  if (button) loadButton.textContent = button;
}

// -- asking ---------------------------------------------------------------------------------------------------------

let waiting;
function edited() {
  edits += 1;
  for (const button of root.querySelectorAll("[data-part=examples] button")) button.ariaPressed = "false";
  $("story").textContent = "Your own ranking.";
  stale(true);
  load();
  clearTimeout(waiting);
  waiting = setTimeout(refresh, 200);
}

// The number to be identified is that of the reader's definition until the reader types another.
function putNumber(text) {
  state.value = text;
  document.getElementById("explorer-printed").value = text;
}

function stale(is) {
  for (const part of ["own", "numbers", "identified"]) {
    $(part).setAttribute("aria-busy", is);
    $(part).classList.toggle("explorer-stale", is);
  }
}

async function refresh() {
  if (!python || python === "loading") return;
  const { rows, k, flavor } = state;
  const current = edits;
  try {
    const numbers = await ask({ do: "numbers", rows, k, flavor });
    if (current !== edits) return;
    showNumbers(numbers);
    const own = numbers.flavor?.value;
    if (!state.typed && own !== undefined) putNumber(own === null ? "" : own.toFixed(4));
    const { value } = state;
    const identified = value.trim() ? await ask({ do: "identify", rows, k, value }) : null;
    if (current !== edits) return;
    showIdentified(identified);
    stale(false);
  } catch (error) {
    note(`ndcg_ml stopped: ${error.message}`);
  }
}

// -- what is shown --------------------------------------------------------------------------------------------------

function problem(text) {
  return element("p", { className: "explorer-error", role: "alert" }, text);
}

function showNumbers(found) {
  if (found.error) {
    $("own").replaceChildren(problem(found.error));
    $("numbers").replaceChildren();
    return;
  }
  showOwn(found.flavor);
  const mine = found.flavor.value;
  const groups = found.groups.map(({ value, presets }) => {
    const same = mine !== undefined && value === mine;
    return element("tr", { className: same ? "explorer-mine" : "" },
      element("th", { scope: "row" }, digits(value), ...(same ? [element("small", {}, "your definition")] : [])),
      element("td", {}, names(presets)));
  });
  const counted = found.groups.reduce((sum, group) => sum + group.presets.length, 0);
  const values = found.groups.length;
  const parts = [
    element("p", {}, `${counted} libraries and variants, ${values} different number${values === 1 ? "" : "s"}:`),
    element("table", { className: "explorer-groups" },
      element("caption", { className: "explorer-hidden" }, "Every value, and the libraries that compute it"),
      element("tbody", {}, ...groups)),
  ];
  for (const { error, presets } of found.refused) {
    parts.push(element("div", { className: "explorer-refused" },
      element("p", {}, element("strong", {}, `No number from ${presets.length}: `), error), names(presets)));
  }
  $("numbers").replaceChildren(...parts);
}

const FEW = 8;
function names(presets) {
  const list = (some) => element("ul", { className: "explorer-names" }, ...some.map((name) => element("li", {}, link(name))));
  if (presets.length <= FEW + 2) return list(presets);
  return element("div", {}, list(presets.slice(0, FEW)),
    element("details", {}, element("summary", {}, `and ${presets.length - FEW} more`), list(presets.slice(FEW))));
}

function showOwn(own) {
  const parts = [];
  if (own.value !== undefined) {
    parts.push(element("p", { className: "explorer-value" }, element("strong", {}, digits(own.value)), element("code", {}, own.text)));
  }
  if (own.error) parts.push(problem(own.error));
  if (own.words) {
    parts.push(element("details", {}, element("summary", {}, "The formula, in words"), element("pre", {}, own.words)));
    for (const name of Object.keys(own.switches)) {
      const field = document.getElementById(`switch-${name}`);
      if (!field || field === document.activeElement && field.tagName === "INPUT") continue;
      const value = own.switches[name] === "None" ? "" : own.switches[name];
      if (field.tagName === "SELECT" && ![...field.options].some((option) => option.value === value)) {
        field.prepend(element("option", { value }, `table ${value}`));
      }
      field.value = value;
      field.classList.toggle("explorer-changed", own.changed.includes(name));
    }
  }
  $("own").replaceChildren(...parts);
}

function showIdentified(found) {
  if (!found) return $("identified").replaceChildren();
  if (found.error) return $("identified").replaceChildren(problem(found.error));
  const matches = found.matches.map((match) => {
    const preset = match.presets[0] ?? match.name;
    const same = [...new Set(match.presets.map((name) => name.split("@")[0]))].filter((name) => name !== preset.split("@")[0]);
    const parts = [element("p", {},
      element("code", {}, match.name), ` ${digits(match.value)} `,
      ...(match.presets.length ? [link(preset.split("@")[0])] : []))];
    if (same.length) parts.push(element("p", {}, "The same number on these data:"), names(same));
    if (match.others) parts.push(element("p", {}, `${match.others} other combination${match.others === 1 ? "" : "s"} of switches give it, too.`));
    return element("li", {}, ...parts);
  });
  const rest = [`${found.tried.toLocaleString("en")} definitions tried.`];
  if (found.more) rest.unshift(`${found.more} more match with one switch changed.`);
  const parts = [element("p", {}, element("strong", {}, found.headline)), element("ol", {}, ...matches), element("p", {}, rest.join(" "))];
  if (found.not_tried.length) {
    parts.push(element("details", {}, element("summary", {}, "Not tried"),
      element("ul", {}, ...found.not_tried.map((line) => element("li", {}, line)))));
  }
  $("identified").replaceChildren(...parts);
}

// -- the editor -----------------------------------------------------------------------------------------------------

function showRows() {
  const cell = (row, at, [name, title]) => element("td", {}, element("input", {
    value: row[name], ariaLabel: `${title} of row ${at + 1}`, autocomplete: "off", spellcheck: false,
    inputMode: name === "label" || name === "score" ? "decimal" : "text",
    oninput: (event) => { row[name] = event.target.value; edited(); },
  }));
  const found = (row, at) => element("td", {}, element("input", {
    type: "checkbox", checked: row.retrieved, ariaLabel: `row ${at + 1} was found (retrieved)`,
    onchange: (event) => { row.retrieved = event.target.checked; edited(); },
  }));
  const remove = (at) => element("td", {}, element("button", {
    type: "button", className: "explorer-remove", ariaLabel: `remove row ${at + 1}`, title: "remove this row",
    onclick: () => {
      state.rows.splice(at, 1);
      showRows();
      edited();
      ($("rows").querySelectorAll(".explorer-remove")[Math.min(at, state.rows.length - 1)] ?? $("add")).focus();
    },
  }, "×"));
  $("rows").replaceChildren(...state.rows.map((row, at) => element("tr",
    { className: at && row.query !== state.rows[at - 1].query ? "explorer-next" : "" },
    ...COLUMNS.map((column) => cell(row, at, column)), found(row, at), remove(at))));
}

function addRow() {
  const last = state.rows.at(-1);
  state.rows.push({ query: last?.query ?? "a", doc: "", label: "0", score: "0", retrieved: true });
  showRows();
  edited();
  $("rows").lastElementChild.querySelectorAll("input")[2].focus();
}

// The text of a flavor is name[@k][[switch=value,...]]: one switch is put into it, or taken out.
function withSwitch(text, name, value) {
  const [, start, inside] = text.match(/^([^[]*)(?:\[(.*)\])?$/s) ?? [null, text, ""];
  const others = (inside ?? "").split(",").filter((part) => part && part.split("=")[0].trim() !== name);
  if (value !== "") others.push(`${name}=${value}`);
  return others.length ? `${start}[${others.join(",")}]` : start;
}

function setFlavor(text) {
  state.flavor = text;
  const field = document.getElementById("explorer-flavor");
  if (field.value !== text) field.value = text;
  const preset = document.getElementById("explorer-preset");
  const name = text.split(/[@[]/)[0];
  preset.value = name in about.presets ? name : "";
}

function showExample(at) {
  const { rows, k, flavor, value, title, text, numbers, identified } = about.examples[at];
  state = { rows: structuredClone(rows), k, value, flavor };
  clearTimeout(waiting);
  edits += 1;
  [...$("examples").children].forEach((button, index) => { button.ariaPressed = String(index === at); });
  $("story").replaceChildren(element("strong", {}, `${title}. `), text);
  document.getElementById("explorer-k").value = k;
  putNumber(value);
  setFlavor(flavor);
  showRows();
  showNumbers(numbers);
  showIdentified(identified);
  stale(false);
}

function field(label, control) {
  return element("span", { className: "explorer-field" }, element("label", { htmlFor: control.id }, label), control);
}

function switchField(name) {
  const change = (event) => { setFlavor(withSwitch(state.flavor, name, event.target.value.trim())); edited(); };
  if (NUMBERS.includes(name)) {
    return field(name, element("input", { id: `switch-${name}`, autocomplete: "off", inputMode: "decimal", oninput: change }));
  }
  const options = about.switches[name].map((word) => element("option", { value: word }, word));
  return field(name, element("select", { id: `switch-${name}`, onchange: change }, ...options));
}

function build() {
  const text = (part, tag = "div", attributes = {}) => element(tag, { ...attributes, "data-part": part });
  const presets = Object.entries(about.presets).map(([name, library]) =>
    element("option", { value: name }, library.endsWith(`(${name})`) || library === name ? library : `${library} (${name})`));
  const input = (id, value, oninput, rest = {}) => element("input", { id, value, autocomplete: "off", spellcheck: false, oninput, ...rest });
  root.replaceChildren(
    element("div", { className: "explorer-examples", "data-part": "examples", role: "group", ariaLabel: "Examples" },
      ...about.examples.map(({ title }, at) => element("button", { type: "button", className: "md-button", onclick: () => showExample(at) }, title))),
    text("story", "p"),
    element("p", { className: "explorer-status" },
      text("note", "span", { role: "status" }),
      element("button", { type: "button", className: "md-button", "data-part": "load", onclick: load }, "Load Python")),
    element("div", { className: "explorer-columns" },
      element("section", { ariaLabel: "The ranking" },
        element("h2", {}, "The ranking"),
        element("table", { className: "explorer-rows" },
          element("thead", {}, element("tr", {},
            ...COLUMNS.map(([, title]) => element("th", { scope: "col" }, title)),
            element("th", { scope: "col", title: "retrieved by the system that is scored" }, "found"),
            element("th", { scope: "col" }, element("span", { className: "explorer-hidden" }, "remove")))),
          text("rows", "tbody")),
        element("p", {},
          element("button", { type: "button", className: "md-button", "data-part": "add", onclick: addRow }, "Add a row"),
          field("k", input("explorer-k", "", (event) => { state.k = event.target.value; edited(); }, { placeholder: "own", inputMode: "numeric", size: 4 })))),
      element("section", { ariaLabel: "What every library computes", className: "explorer-prints" },
        element("h2", {}, "What every library computes"),
        text("numbers")),
      element("section", { ariaLabel: "Your definition" },
        element("h2", {}, "Your definition"),
        element("div", { className: "explorer-switches" },
          field("start from", element("select", { id: "explorer-preset", onchange: (event) => {
            if (event.target.value) { setFlavor(event.target.value); edited(); }
          } }, element("option", { value: "" }, "ndcg (the default flavor)"), ...presets)),
          ...SHOWN_SWITCHES.map(switchField)),
        element("details", {}, element("summary", {}, "More switches"),
          element("div", { className: "explorer-switches" },
            ...[...Object.keys(about.switches), ...NUMBERS].filter((name) => !SHOWN_SWITCHES.includes(name)).map(switchField))),
        field("as text", input("explorer-flavor", "", (event) => { setFlavor(event.target.value); edited(); })),
        text("own")),
      element("section", { ariaLabel: "Which library printed this number?", className: "explorer-identify" },
        element("h2", {}, "Which library printed this number?"),
        field("the number, as printed", input("explorer-printed", "", (event) => {
          state.value = event.target.value;
          state.typed = state.value !== "";
          edited();
        }, { inputMode: "decimal", size: 10 })),
        text("identified"))));
}

about = await (await fetch(new URL("examples.json", here))).json();
build();
showExample(0);
note(`Computed in advance by ndcg_ml ${about.version}. The first edit loads Python into this browser (17 MB, once).`, "Load Python");
