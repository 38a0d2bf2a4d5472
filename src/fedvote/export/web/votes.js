// The votes of a layer as pixels. A block is one output; in it, one tile for each input.
const WIDE = 2.6;  // width of the picture by its height, about

function votesOf({ votes, binary, shape }) {
  const count = shape.reduce((product, side) => product * side, 1), bytes = bytesOf(votes), each = binary ? 8 : 5;
  return Int8Array.from({ length: count }, (_, index) => {
    const byte = bytes[Math.floor(index / each)], place = each - 1 - index % each;
    return binary ? 2 * (byte >> place & 1) - 1 : Math.floor(byte / 3 ** place) % 3 - 1;
  });
}

// How many of `count` things stand in a row: about so many, without a rest if possible.
function inRows(count, about, most) {
  const whole = Array.from({ length: Math.min(count, most) }, (_, index) => index + 1).filter((size) => count % size === 0);
  const nearest = whole.reduce((best, size) => Math.abs(Math.log(size / about)) < Math.abs(Math.log(best / about)) ? size : best, 1);
  return Math.abs(Math.log(nearest / about)) < Math.log(1.7) ? nearest : Math.max(1, Math.min(count, most, Math.ceil(about)));
}

// Where each vote stands, in a picture that fits the room. Tiles larger than a pixel are a pixel apart, blocks
// of several such tiles two.
function layoutOf([outputs, inputs, rows, columns], room) {
  const gap = rows * columns > 1 ? 1 : 0, across = inRows(inputs, Math.sqrt(inputs), inputs), down = Math.ceil(inputs / across);
  const apart = gap && inputs > 1 ? 2 : 1;
  const block = [across * (columns + gap) - gap + apart, down * (rows + gap) - gap + apart];
  const blocks = inRows(outputs, Math.sqrt(outputs * WIDE * block[1] / block[0]), Math.floor((room + apart) / block[0]));
  const at = (output, input, row, column) => [
    output % blocks * block[0] + input % across * (columns + gap) + column,
    Math.floor(output / blocks) * block[1] + Math.floor(input / across) * (rows + gap) + row,
  ];
  return { at, width: blocks * block[0] - apart, height: Math.ceil(outputs / blocks) * block[1] - apart };
}

// Output, input, row and column of a vote.
function placeOf(index, [, inputs, rows, columns]) {
  const tile = Math.floor(index / (columns * rows));
  return [Math.floor(tile / inputs), tile % inputs, Math.floor(index / columns) % rows, index % columns];
}

function rgb(name) {
  const context = new OffscreenCanvas(1, 1).getContext("2d");
  context.fillStyle = colour(name);
  context.fillRect(0, 0, 1, 1);
  return context.getImageData(0, 0, 1, 1).data;
}

// Draw a layer. Returns which vote stands at a place of the picture; -1 for none.
function drawVotes(layer, votes) {
  const canvas = find("votes"), room = canvas.parentElement.clientWidth, { at, width, height } = layoutOf(layer.shape, room);
  const image = new ImageData(width, height), drawn = new Int32Array(width * height).fill(-1);
  const colours = [rgb("--no"), rgb("--none"), rgb("--yes")];
  votes.forEach((vote, index) => {
    const [x, y] = at(...placeOf(index, layer.shape));
    image.data.set(colours[vote + 1], 4 * (y * width + x));
    drawn[y * width + x] = index;
  });
  [canvas.width, canvas.height] = [width, height];
  canvas.getContext("2d").putImageData(image, 0, 0);
  canvas.style.width = `${width * Math.max(1, Math.min(10, Math.floor(room / width)))}px`;
  canvas.setAttribute("aria-label", `${votes.length.toLocaleString("en")} votes of layer ${layer.name}`);
  return (x, y) => drawn[Math.floor(y * height) * width + Math.floor(x * width)] ?? -1;
}

function showCounts({ counts, outputs, shape }) {
  const all = counts.reduce((sum, count) => sum + count, 0);
  const parts = [["yes", "+1"], ["none", "0"], ["no", "\u22121"]].map(([name, text], index) => {
    const part = document.createElement("span"), swatch = document.createElement("i");
    swatch.className = name;
    part.append(swatch, ` ${text}: ${percent(counts[index] / all)}`);
    return counts[index] ? part : "";
  });
  const cut = outputs > shape[0] ? `, the first ${shape[0]} of ${outputs} outputs` : "";
  find("counts").replaceChildren(...parts, `${all.toLocaleString("en")} votes${cut}`);
}

function startVotes() {
  const canvas = find("votes"), note = find("vote");
  if (!canvas) return;
  let layer, votes, voteAt;
  const draw = () => { voteAt = drawVotes(layer, votes); };
  const choose = () => {
    layer = page.layers[find("layer").value];
    votes = votesOf(layer);
    showCounts(layer);
    note.textContent = "";
    draw();
  };
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const index = voteAt((event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
    if (index < 0) return;
    const [output, input, row, column] = placeOf(index, layer.shape).map((place) => place + 1);
    const inside = layer.shape[2] * layer.shape[3] > 1 ? `, row ${row}, column ${column}` : "";
    note.textContent = `output ${output}, input ${input}${inside}: ${["\u22121", "0", "+1"][votes[index] + 1]}`;
  });
  find("layer").addEventListener("change", choose);
  addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  choose();
}
