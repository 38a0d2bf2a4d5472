// The answer: one sentence, a bar for each class, and the time that it takes.
const SHOWN = 12;  // classes with a bar; of more, the likeliest
const WARM = 3;  // answers before any is timed: the first are slow
const TIMED = 50;  // answers, timed together, because browsers round their clocks
let wanted = null, running = true;  // until the network is loaded

const percent = (share) => `${(100 * share).toFixed(share > 0.9995 || share < 0.0005 ? 0 : 1)}\u202f%`;
const number = (value) => String(Number(value.toPrecision(4)));

// Outputs as people read them: probabilities of classes, of each label by itself, or numbers.
function sharesOf(outputs) {
  if (page.task === "multi-label") return outputs.map((value) => 1 / (1 + Math.exp(-value)));
  const most = Math.max(...outputs), powers = outputs.map((value) => Math.exp(value - most));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

function sentence(outputs, shares) {
  if (page.task === "regression") return outputs.map((value, index) => `${page.classes[index]}: ${number(value)}`).join(", ");
  if (page.task === "multi-label") return page.classes.filter((_, index) => shares[index] > 0.5).join(", ") || "none of them";
  const best = shares.indexOf(Math.max(...shares));
  return `${page.classes[best]}, ${percent(shares[best])}`;
}

function row(name, share, text, best = false) {
  const item = document.createElement("li"), [label, bar, value] = ["span", "i", "b"].map((tag) => document.createElement(tag));
  label.textContent = label.title = name;
  bar.style.setProperty("--share", share);
  value.textContent = text;
  item.append(label, bar, value);
  item.classList.toggle("best", best);
  return item;
}

function show(outputs) {
  const numbers = page.task === "regression", shares = numbers ? outputs : sharesOf(outputs), most = Math.max(...shares);
  let order = [...shares.keys()];
  if (order.length > SHOWN) order = order.sort((one, other) => shares[other] - shares[one]).slice(0, SHOWN);
  const rows = numbers ? [] : order.map((index) => row(
    page.classes[index], shares[index], percent(shares[index]),
    page.task === "multi-label" ? shares[index] > 0.5 : shares[index] === most,
  ));
  find("classes").replaceChildren(...rows);
  find("answer").textContent = sentence(outputs, shares);
  find("answer").classList.add("known");
}

function showNothing(text) {
  wanted = null;
  find("classes").replaceChildren(...(page.task === "regression" ? [] : page.classes.slice(0, SHOWN).map((name) => row(name, 0, ""))));
  find("answer").textContent = text;
  find("answer").classList.remove("known");
}

async function showTime() {
  const nothing = new Float32Array(page.asks.shape.reduce((product, side) => product * side, 1));
  let begun, done;
  for (done = -WARM; done < TIMED && !(done > 0 && performance.now() - begun > 500); done += 1) {
    if (done === 0) begun = performance.now();
    await outputsOf(nothing);
  }
  find("time").textContent = `${Number(((performance.now() - begun) / done).toPrecision(2))} ms`;
}

// Answer the newest input; those that came while another was computed are skipped.
async function ask(values) {
  wanted = values;
  if (!running) await answerAll();
}

async function answerAll() {
  running = true;
  while (wanted) {
    const values = wanted, outputs = await outputsOf(values);
    if (wanted === values) {
      wanted = null;
      show(outputs);
    }
  }
  running = false;
}
