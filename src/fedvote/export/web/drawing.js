// Strokes on the pad. They are placed, scaled and made as wide as those of the training images.
const pad = find("pad"), { ink } = page.asks;
const STEP = 1 / 24, LINE = 0.06;  // shares of the pad: of an arrow key, and of a line's width on the screen
let strokes = [], pen = { x: 0.5, y: 0.5, down: false, keys: false }, chosen = null;

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function trace(context, stroke, at) {
  context.beginPath();
  stroke.forEach((point, index) => context[index ? "lineTo" : "moveTo"](...at(point)));
  const [x, y] = at(stroke[stroke.length - 1]);
  context.lineTo(x + 0.01, y);  // or a dot would not be drawn
  context.stroke();
}

function roundLines(context, width, style) {
  Object.assign(context, { lineWidth: width, lineCap: "round", lineJoin: "round", strokeStyle: style });
}

function paintPad() {
  const side = Math.round(pad.clientWidth * devicePixelRatio), context = pad.getContext("2d");
  pad.width = pad.height = side;
  if (chosen) {
    const scale = Math.min(side / chosen.width, side / chosen.height), [width, height] = [chosen.width * scale, chosen.height * scale];
    context.imageSmoothingEnabled = scale < 4;
    context.drawImage(chosen, (side - width) / 2, (side - height) / 2, width, height);
  }
  if (!ink && !chosen) {
    Object.assign(context, { fillStyle: colour("--soft"), font: `${16 * devicePixelRatio}px system-ui`, textAlign: "center" });
    context.fillText("no image yet", side / 2, side / 2);
  }
  roundLines(context, LINE * side, colour("--ink"));
  strokes.forEach((stroke) => trace(context, stroke, ([x, y]) => [x * side, y * side]));
  if (pen.keys) {
    context.fillStyle = colour(pen.down ? "--accent" : "--soft");
    context.beginPath();
    context.arc(pen.x * side, pen.y * side, LINE * side * 0.45, 0, 2 * Math.PI);
    context.fill();
  }
}

// A canvas of the network's image, each of its pixels `fine` by `fine`.
function fineCanvas() {
  const [, height, width] = page.asks.shape, fine = Math.max(4, Math.round(256 / Math.max(height, width)));
  const context = new OffscreenCanvas(width * fine, height * fine).getContext("2d", { willReadFrequently: true });
  return { context, fine, height, width };
}

// The means of all fine pixels in each pixel, from 0 to 1, for one channel of the canvas.
function pixelMeans({ context, fine, height, width }, channel) {
  const { data } = context.getImageData(0, 0, width * fine, height * fine), means = new Float32Array(height * width);
  for (let y = 0; y < height * fine; y += 1) {
    for (let x = 0; x < width * fine; x += 1) {
      means[Math.floor(y / fine) * width + Math.floor(x / fine)] += data[4 * (y * width * fine + x) + channel];
    }
  }
  return means.map((sum) => sum / (255 * fine * fine));
}

function massOf(levels, width) {
  let mass = 0, row = 0, column = 0;
  levels.forEach((level, index) => {
    mass += level;
    row += level * (Math.floor(index / width) + 0.5);
    column += level * (index % width + 0.5);
  });
  return [row / mass, column / mass];
}

// Draw by `paint(row, column)`, the centre of the box; by mass, draw again with the mass in the centre.
function centred(paint) {
  let levels = paint(ink.row, ink.column);
  if (ink.by_mass && levels.some((level) => level > 0)) {
    const [row, column] = massOf(levels, page.asks.shape[2]);
    levels = paint(2 * ink.row - row, 2 * ink.column - column);
  }
  return levels;
}

function levelsOfStrokes(strokes) {
  const points = strokes.flat(), [xs, ys] = [0, 1].map((axis) => points.map((point) => point[axis]));
  const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const room = [ink.width - ink.stroke, ink.height - ink.stroke].map((side) => Math.max(side, 0.5));
  const scale = Math.min(room[0] / Math.max(right - left, 0.05), room[1] / Math.max(bottom - top, 0.05));
  return centred((row, column) => {
    const canvas = fineCanvas(), { context, fine } = canvas;
    roundLines(context, ink.stroke * fine, "#000");
    const at = ([x, y]) => [(column + (x - (left + right) / 2) * scale) * fine, (row + (y - (top + bottom) / 2) * scale) * fine];
    strokes.forEach((stroke) => trace(context, stroke, at));
    return pixelMeans(canvas, 3);
  });
}

// Levels of ink, from 0 to 1, as the dataset stores pixels.
function valuesOf(levels) {
  const { low, high, dtype } = page.asks;
  const values = Float32Array.from(levels, (level) => low + level * (high - low));
  return dtype === "uint8" ? values.map(Math.round) : values;
}

const inkValues = (levels) => valuesOf(ink.light ? levels : levels.map((level) => 1 - level));

function drawAgain() {
  paintPad();
  if (strokes.length) askImage(inkValues(levelsOfStrokes(strokes)));
  else if (!chosen) forgetImage("Draw something.");
}

function clearPad() {
  [strokes, chosen] = [[], null];
  pen.down = false;
  drawAgain();
}

function undo() {
  strokes.pop();
  pen.down = false;
  drawAgain();
}

function beginStroke(x, y) {
  chosen = null;
  strokes.push([[x, y]]);
  drawAgain();
}

function extendStroke(x, y) {
  strokes[strokes.length - 1].push([x, y]);
  drawAgain();
}

function keyOnPad(event) {
  const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const inside = (value) => Math.min(0.96, Math.max(0.04, value));
  if (event.key in moves) {
    [pen.x, pen.y] = [pen.x + moves[event.key][0] * STEP, pen.y + moves[event.key][1] * STEP].map(inside);
    pen.keys = true;
    if (pen.down) extendStroke(pen.x, pen.y); else paintPad();
  } else if (event.key === " ") {
    [pen.keys, pen.down] = [true, !pen.down];
    if (pen.down) beginStroke(pen.x, pen.y); else paintPad();
  } else if (event.key === "Backspace") undo();
  else if (event.key === "Delete" || event.key === "Escape") clearPad();
  else return;
  event.preventDefault();
}

function startDrawing() {
  const place = (event) => {
    const box = pad.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  };
  pad.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    pad.setPointerCapture(event.pointerId);
    pen.keys = pen.down = false;
    beginStroke(...place(event));
  });
  pad.addEventListener("pointermove", (event) => {
    if (!pad.hasPointerCapture(event.pointerId)) return;
    const passed = event.getCoalescedEvents?.() ?? [];
    for (const each of passed.length ? passed : [event]) strokes[strokes.length - 1].push(place(each));
    drawAgain();
  });
  pad.addEventListener("keydown", keyOnPad);
  pad.addEventListener("blur", () => { pen.keys = pen.down = false; paintPad(); });
  find("clear").addEventListener("click", clearPad);
  find("undo").addEventListener("click", undo);
}
