// Start everything. The page can be drawn on while the network is still loading.
const empty = ink ? "Draw something." : "Choose an image.";

// The first answers of a session are slow, and not timed.
async function warmUp() {
  const nothing = new Float32Array(page.asks.shape.reduce((product, side) => product * side, 1));
  for (let turn = 0; turn < 3; turn += 1) await outputsOf(nothing);
  for (let turn = 0; turn < 5; turn += 1) {
    const begun = performance.now();
    await outputsOf(nothing);
    timed(performance.now() - begun);
  }
}

async function startPage() {
  startVotes();
  if (pad) {
    if (ink) startDrawing();
    startImages();
    addEventListener("resize", paintPad);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paintPad);
    paintPad();
    forgetImage("Starting \u2026");
  }
  await startSession();
  await warmUp();
  if (!pad) return startForm();
  if (strokes.length) return drawAgain();
  return chosen ? undefined : forgetImage(empty);
}

const started = startPage().catch((error) => {
  find("answer").textContent = `The network cannot run here: ${error.message}`;
});
