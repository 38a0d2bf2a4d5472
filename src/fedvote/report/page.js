// Tooltips and legends. Every chart is complete without this file.
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

// The pointer's place, as shares of the plot's width and height.
function share(plot, event) {
  const box = plot.getBoundingClientRect();
  return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height, box];
}

function watch(plot, show, clear = () => {}) {
  const hide = () => { tip.hidden = true; clear(); };
  plot.addEventListener("pointermove", show);
  plot.addEventListener("pointerdown", show);
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
    .filter(({ line }) => !line.classList.contains("off"));

  function show(event) {
    const [x, y, box] = share(plot, event);
    const points = visible().flatMap(({ name, line, points }) => points.map((point) => ({ name, line, point })));
    if (!points.length) return;
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
  }

  watch(plot, show, () => marks.replaceChildren());
}

function heat(figure, { rows, columns, cells, unit, empty }) {
  const plot = figure.querySelector(".plot");
  watch(plot, (event) => {
    const [x, y] = share(plot, event);
    const row = Math.min(rows.length - 1, Math.max(0, Math.floor(y * rows.length)));
    const column = Math.min(columns.length - 1, Math.max(0, Math.floor(x * columns.length)));
    const value = cells[row][column];
    showTip(event, `${rows[row]} · ${columns[column]}`, [[value === null ? empty : `${value} ${unit}`, ""]]);
  });
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
