// The network: ONNX Runtime Web from runtime.js, and the ONNX file inside this page.
"use strict";

const page = JSON.parse(document.querySelector('script[type="application/json"]').textContent);
const find = (id) => document.getElementById(id);
let session, makeTensor;

function bytesOf(base64) {
  const text = atob(base64), bytes = new Uint8Array(text.length);
  for (let index = 0; index < text.length; index += 1) bytes[index] = text.charCodeAt(index);
  return bytes;
}

async function startSession() {
  if (!self.RUNTIME) throw new Error("runtime.js is not beside this page: copy the whole folder");
  const source = URL.createObjectURL(new Blob([RUNTIME.module], { type: "text/javascript" }));
  const { InferenceSession, Tensor, env } = await import(source);
  URL.revokeObjectURL(source);
  const packed = new Blob([bytesOf(RUNTIME.wasm)]).stream();
  env.wasm.wasmBinary = await new Response(packed.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
  env.wasm.numThreads = 1;  // more need headers that a file has not
  RUNTIME.wasm = "";
  makeTensor = Tensor;
  session = await InferenceSession.create(bytesOf(page.network), { executionProviders: ["wasm"], logSeverityLevel: 3 });
}

// The outputs for one input, whose values are in the order of its shape and as in the dataset.
async function outputsOf(values) {
  const { dtype, shape } = page.asks;
  const typed = dtype === "uint8" ? Uint8Array.from(values) : Float32Array.from(values);
  const answers = await session.run({ [page.input]: new makeTensor(dtype, typed, [1, ...shape]) });
  return [...answers[page.output].data];
}
