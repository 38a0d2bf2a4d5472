// A form for the columns of a table: a number and a slider each, and a field for a whole row.
let values = [];

const isByte = (value) => Number.isInteger(value) && value >= 0 && value <= 255;
const fits = (value) => Number.isFinite(value) && (page.asks.dtype !== "uint8" || isByte(value));
const expected = () => (page.asks.dtype === "uint8" ? "a whole number from 0 to 255" : "a number");
const written = (value) => String(Number(Number(value).toPrecision(6)));

function field({ name, low, high, whole }, index) {
  const label = document.createElement("label"), [text, box, slider] = ["span", "input", "input"].map((tag) => document.createElement(tag));
  label.className = "field";
  text.textContent = name.replace(/[_/.-]/g, "$&\u200b");  // a long name may break there
  const step = whole ? 1 : "any";
  Object.assign(box, { type: "number", step, value: written(values[index]) });
  Object.assign(slider, { type: "range", min: low, max: high, step: whole ? 1 : (high - low) / 200 || 1, value: values[index], tabIndex: -1 });
  slider.setAttribute("aria-hidden", "true");
  const take = (value) => {
    if (value === "") return false;
    if (!fits(Number(value))) {
      find("wrong").textContent = `“${value}” is not ${expected()}.`;
      return false;
    }
    values[index] = Number(value);
    askRow();
    return true;
  };
  box.addEventListener("input", () => { if (take(box.value)) slider.value = box.value; });
  slider.addEventListener("input", () => { box.value = written(slider.value); take(box.value); });
  label.append(text, box, slider);
  return label;
}

function askRow() {
  find("row").value = values.map(written).join(", ");
  find("wrong").textContent = "";
  return ask(Float32Array.from(values));
}

function showRow(row) {
  values = [...row];
  find("fields")?.replaceChildren(...page.asks.columns.map(field));
  return askRow();
}

function takeRow(text) {
  const parts = text.split(/[\s,;]+/).filter(Boolean), row = parts.map(Number), { length } = page.asks.columns;
  const odd = row.findIndex((value) => !fits(value));
  if (odd >= 0) find("wrong").textContent = `“${parts[odd]}” is not ${expected()}.`;
  else if (row.length !== length) find("wrong").textContent = `These are ${row.length} numbers, expected ${length}, one for each column.`;
  else showRow(row);
}

function startForm() {
  find("row").addEventListener("change", ({ target }) => takeRow(target.value));
  find("reset").addEventListener("click", () => showRow(page.asks.columns.map(({ start }) => start)));
  find("row").form.addEventListener("submit", (event) => event.preventDefault());
  return showRow(page.asks.columns.map(({ start }) => start));
}
