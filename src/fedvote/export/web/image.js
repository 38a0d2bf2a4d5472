// Images that are chosen, dropped or pasted. One of exactly the network's size is taken as it is.
const INK = 0.25;  // share of the range from which a pixel is ink, as in training images
const LARGEST = 1024;  // pixels of a side that are looked at

function showSeen(values) {
  const [channels, height, width] = page.asks.shape, { low, high } = page.asks, seen = find("seen");
  [seen.width, seen.height] = [width, height];
  const image = new ImageData(width, height), area = height * width;
  for (let index = 0; index < area; index += 1) {
    for (let channel = 0; channel < 3; channel += 1) {
      const value = values[(channels === 3 ? channel * area : 0) + index];
      image.data[4 * index + channel] = 255 * (value - low) / (high - low);
    }
    image.data[4 * index + 3] = 255;
  }
  seen.getContext("2d").putImageData(image, 0, 0);
  seen.setAttribute("aria-label", `${width} by ${height} pixels`);
}

function askImage(values) {
  showSeen(values);
  return ask(values);
}

function forgetImage(text) {
  showNothing(text);
  const [, height, width] = page.asks.shape;
  showSeen(new Float32Array(3 * height * width).fill(ink && !ink.light ? page.asks.high : page.asks.low));
}

// The pixels of an image on white, at most LARGEST wide and high.
function pixelsOf(bitmap) {
  const scale = Math.min(1, LARGEST / Math.max(bitmap.width, bitmap.height));
  const [width, height] = [bitmap.width, bitmap.height].map((side) => Math.max(1, Math.round(side * scale)));
  const context = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  context.fillStyle = "#fff";
  context.fillRect(0, 0, width, height);
  context.imageSmoothingQuality = "high";
  context.drawImage(bitmap, 0, 0, width, height);
  return context.getImageData(0, 0, width, height);
}

const greyOf = ({ data }) => Float32Array.from(
  { length: data.length / 4 }, (_, index) => (0.299 * data[4 * index] + 0.587 * data[4 * index + 1] + 0.114 * data[4 * index + 2]) / 255,
);

function borderOf(levels, width, height) {
  const across = Array.from({ length: width }, (_, x) => [levels[x], levels[(height - 1) * width + x]]);
  const down = Array.from({ length: height }, (_, y) => [levels[y * width], levels[y * width + width - 1]]);
  const sorted = [...across, ...down].flat().sort((one, other) => one - other);
  return sorted[sorted.length >> 1];
}

// Grey levels as ink on an empty ground: the ground is what most of the border is.
function inkOf(grey, width, height) {
  const ground = borderOf(grey, width, height);
  const far = grey.map((level) => Math.abs(level - ground)), most = far.reduce((one, other) => Math.max(one, other), 0);
  return most > 0.1 ? far.map((level) => level / most) : null;
}

function boxOf(levels, width) {
  let [left, right, top, bottom] = [Infinity, 0, Infinity, 0];
  levels.forEach((level, index) => {
    if (level < INK) return;
    const [y, x] = [Math.floor(index / width), index % width];
    [left, right, top, bottom] = [Math.min(left, x), Math.max(right, x + 1), Math.min(top, y), Math.max(bottom, y + 1)];
  });
  return { left, top, width: right - left, height: bottom - top };
}

function levelsOfInk(levels, width, height) {
  const source = new OffscreenCanvas(width, height), image = new ImageData(width, height), box = boxOf(levels, width);
  levels.forEach((level, index) => { image.data[4 * index + 3] = 255 * level; });
  source.getContext("2d").putImageData(image, 0, 0);
  const scale = Math.min(ink.width / box.width, ink.height / box.height);
  return centred((row, column) => {
    const canvas = fineCanvas(), { context, fine } = canvas, size = [box.width, box.height].map((side) => side * scale * fine);
    context.imageSmoothingQuality = "high";
    context.drawImage(source, box.left, box.top, box.width, box.height, column * fine - size[0] / 2, row * fine - size[1] / 2, ...size);
    return pixelMeans(canvas, 3);
  });
}

// The middle of an image, as large as fits, in the network's size: grey, or one channel after the other.
function levelsOfPhoto(bitmap) {
  const canvas = fineCanvas(), { context, fine, height, width } = canvas;
  const scale = Math.max(width * fine / bitmap.width, height * fine / bitmap.height);
  const size = [bitmap.width * scale, bitmap.height * scale];
  context.fillStyle = "#fff";
  context.fillRect(0, 0, width * fine, height * fine);
  context.imageSmoothingQuality = "high";
  context.drawImage(bitmap, (width * fine - size[0]) / 2, (height * fine - size[1]) / 2, ...size);
  const colours = [0, 1, 2].map((channel) => pixelMeans(canvas, channel));
  if (page.asks.shape[0] === 3) return colours.flatMap((levels) => [...levels]);
  return colours[0].map((red, index) => 0.299 * red + 0.587 * colours[1][index] + 0.114 * colours[2][index]);
}

// What the network is given for an image; nothing if the image is empty.
function valuesOfImage(bitmap) {
  const [channels, height, width] = page.asks.shape;
  if (bitmap.width === width && bitmap.height === height) {
    const pixels = pixelsOf(bitmap), { data } = pixels;
    if (channels === 1) return valuesOf(greyOf(pixels));
    return valuesOf([0, 1, 2].flatMap((channel) => Array.from({ length: width * height }, (_, index) => data[4 * index + channel] / 255)));
  }
  if (!ink) return valuesOf(levelsOfPhoto(bitmap));
  const pixels = pixelsOf(bitmap), levels = inkOf(greyOf(pixels), pixels.width, pixels.height);
  return levels && inkValues(levelsOfInk(levels, pixels.width, pixels.height));
}

async function takeImage(file) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(file, { colorSpaceConversion: "none" });
  } catch {
    return forgetImage(`${file.name || "This file"} is no image that this browser can read.`);
  }
  [strokes, chosen] = [[], bitmap];
  paintPad();
  const values = valuesOfImage(bitmap);
  return values ? askImage(values) : forgetImage("The image is empty.");
}

function startImages() {
  const first = (list) => [...(list ?? [])].find((file) => file.type.startsWith("image/")) ?? list?.[0];
  find("file").addEventListener("change", ({ target }) => {
    if (target.files.length) takeImage(target.files[0]);
    target.value = "";  // the same file can be chosen again
  });
  if (!ink) pad.addEventListener("click", () => find("file").click());
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    event.preventDefault();
    const file = first(event.dataTransfer.files);
    if (file) takeImage(file);
  });
  addEventListener("paste", (event) => {
    const file = first(event.clipboardData.files);
    if (file) takeImage(file);
  });
}
