// Start everything. The page can be drawn on while the network is still loading.

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
  await showTime();
  if (!pad) startForm();
  else if (!wanted) forgetImage(ink ? "Draw something." : "Choose an image.");
  await answerAll();
}

const started = startPage().catch((error) => {
  find("answer").textContent = `The network cannot run here: ${error.message}`;
});
