// Tooltips, legends and tables that sort. Every chart and table is complete without this file.
"use strict";

const tip = document.body.appendChild(document.createElement("div"));
tip.id = "tip";
tip.hidden = true;
tip.setAttribute("role", "status");

function element(name, text, className = "") {
  const created = document.createElement(name);
  created.textContent = text;
  created.className = className;
  return created;
}

function showTip(event, heading, rows) {
  tip.replaceChildren(element("b", heading), ...rows.map(([name, value, colour]) => {
    const row = element("div", "");
    const label = element("span", name);
    if (colour) {
      const swatch = element("i", "", "swatch");
      swatch.style.cssText = colour;
      label.prepend(swatch);
    }
    row.append(label, element("strong", value));
    return row;
  }));
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const beside = event.clientX + 16 + width < innerWidth ? event.clientX + 16 : event.clientX - 16 - width;
  const above = event.clientY - 12 - height;
  tip.style.left = `${Math.max(4, beside)}px`;
  tip.style.top = `${Math.max(4, above)}px`;
}

// Show what is at a place of a plot, for the pointer and for the arrow keys. Places are shares of its width and height.
// `show` returns the place that it chose near the pointer; `step` the next one in a key's direction, or nothing.
function watch(plot, show, step, clear = () => {}) {
  let place = null;
  const hide = () => { tip.hidden = true; place = null; clear(); };
  const at = (x, y) => {
    const box = plot.getBoundingClientRect();
    place = show(x, y, box, { clientX: box.left + x * box.width, clientY: box.top + y * box.height });
  };
  const point = (event) => {
    const box = plot.getBoundingClientRect();
    at((event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
  };
  plot.setAttribute("tabindex", "0");
  plot.addEventListener("pointermove", point);
  plot.addEventListener("pointerdown", point);
  plot.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
    const next = event.key.startsWith("Arrow") && step(event.key, place);
    if (!next) return;
    event.preventDefault();
    at(...next);
  });
  plot.addEventListener("blur", hide);
  // Lifting a finger also leaves the plot; its tooltip stays until the next touch elsewhere.
  plot.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && hide());
  document.addEventListener("pointerdown", (event) => plot.contains(event.target) || clear());
  addEventListener("scroll", hide, { passive: true });
}

// Show the nearest visible point, and all points at the same x.
function lines(figure, data) {
  const plot = figure.querySelector(".plot");
  const drawn = [...figure.querySelectorAll(".series")];
  const marks = plot.appendChild(element("div", ""));
  const visible = () => data.map((series, index) => ({ ...series, line: drawn[index] }))
    .filter(({ line }) => !line.classList.contains("off"))
    .flatMap(({ name, line, points }) => points.map((point) => ({ name, line, point })));

  function show(x, y, box, event) {
    const points = visible();
    if (!points.length) return null;
    const distance = ({ point }) => Math.hypot((point[0] - x) * box.width, (point[1] - y) * box.height);
    const nearest = points.reduce((best, each) => (distance(each) < distance(best) ? each : best));
    const together = points.filter(({ point }) => point[0] === nearest.point[0]).sort((a, b) => a.point[1] - b.point[1]);
    const cursor = element("i", "", "cursor");
    cursor.style.left = `${100 * nearest.point[0]}%`;
    marks.replaceChildren(cursor, ...together.map(({ line, point }) => {
      const dot = element("i", "", "dot");
      dot.style.cssText = `${line.getAttribute("style")}; left: ${100 * point[0]}%; top: ${100 * point[1]}%`;
      return dot;
    }));
    showTip(event, nearest.point[2], together.map(({ name, line, point }) => [name, point[3], line.getAttribute("style")]));
    return nearest.point;
  }

  // The next x to the left or right that has a point.
  function step(key, place) {
    const sign = { ArrowLeft: -1, ArrowRight: 1 }[key];
    if (!sign) return null;
    const ahead = visible().filter(({ point }) => !place || sign * (point[0] - place[0]) > 0)
      .sort((a, b) => sign * (a.point[0] - b.point[0]));
    return ahead.length ? ahead[0].point.slice(0, 2) : place?.slice(0, 2);
  }

  watch(plot, show, step, () => marks.replaceChildren());
}

function heat(figure, { rows, columns, cells, unit, empty }) {
  const plot = figure.querySelector(".plot");
  const cell = (share, count) => Math.min(count - 1, Math.max(0, Math.floor(share * count)));
  const middle = (row, column) => [(column + 0.5) / columns.length, (row + 0.5) / rows.length];

  function show(x, y, box, event) {
    const [row, column] = [cell(y, rows.length), cell(x, columns.length)];
    const value = cells[row][column];
    showTip(event, `${rows[row]} · ${columns[column]}`, [[value === null ? empty : `${value} ${unit}`, ""]]);
    return middle(row, column);
  }

  function step(key, place) {
    const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[key];
    if (!place) return middle(0, 0);
    const [row, column] = [cell(place[1], rows.length) + down, cell(place[0], columns.length) + right];
    return middle(cell(row / rows.length, rows.length), cell(column / columns.length, columns.length));
  }

  watch(plot, show, step);
}

// A legend's key shows or hides its lines in all charts beside the legend.
for (const legend of document.querySelectorAll(".legend")) {
  const drawn = [...legend.parentElement.querySelectorAll(".series")];
  legend.addEventListener("click", (event) => {
    const key = event.target.closest("[data-token]");
    if (!key) return;
    key.setAttribute("aria-pressed", key.getAttribute("aria-pressed") === "false");
    const off = [...legend.querySelectorAll('[aria-pressed="false"]')].map((each) => each.dataset.token);
    drawn.forEach((line) => line.classList.toggle("off", line.dataset.tokens.split(" ").some((token) => off.includes(token))));
  });
}

const kinds = { lines, heat };
for (const figure of document.querySelectorAll("figure[data-chart]")) {
  kinds[figure.dataset.chart](figure, JSON.parse(figure.querySelector("script").textContent));
}

// The names of the columns become buttons. The first press puts the largest number, or the first word, on top.
function sortBy(table, heads, column) {
  const body = table.querySelector("tbody");
  const key = (row) => row.children[column].dataset.value ?? row.children[column].textContent;
  const rows = [...body.children];
  const numbers = rows.every((row) => !Number.isNaN(Number(key(row))));
  const [first, second] = numbers ? ["descending", "ascending"] : ["ascending", "descending"];
  const order = heads[column].getAttribute("aria-sort") === first ? second : first;
  const sign = order === "ascending" ? 1 : -1;
  const compare = (a, b) => (numbers ? a - b : a.localeCompare(b, "en", { numeric: true }));
  rows.sort((a, b) => {
    const missing = (key(a) === "") - (key(b) === "");  // without a value: last in both orders
    return missing || sign * compare(key(a), key(b));
  });
  body.replaceChildren(...rows);
  heads.forEach((head, index) => head.setAttribute("aria-sort", index === column ? order : "none"));
}

for (const table of document.querySelectorAll("table[data-sorts]")) {
  const heads = [...table.querySelectorAll('th[scope="col"]')];
  heads.forEach((head, column) => {
    const button = element("button", head.textContent);
    button.setAttribute("type", "button");
    button.addEventListener("click", () => sortBy(table, heads, column));
    head.replaceChildren(button);
    head.setAttribute("aria-sort", "none");
  });
}
