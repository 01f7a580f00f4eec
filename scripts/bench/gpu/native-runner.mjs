// Runs beside an installed node-llama-cpp and prints the tokens per second of one model on one backend as JSON.
// Arguments: the model's file, cpu or a backend, the workload as JSON.
import { getLlama } from "node-llama-cpp";

const [, , modelPath, gpu, workloadJson] = process.argv;
const { promptTokens, tokens, runs, threads, layers } = JSON.parse(workloadJson);

const llama = await getLlama({ gpu: gpu === "cpu" ? false : gpu, build: "never", progressLogs: false });
// llama.cpp passes over adapters that compute on the CPU, and then computes there itself.
const devices = gpu === "cpu" ? [gpu] : await llama.getGpuDeviceNames();
if (devices.length === 0) throw new Error(`llama.cpp finds no device for ${gpu}`);
const model = await llama.loadModel({
  modelPath,
  gpuLayers: gpu === "cpu" ? 0 : layers < 0 ? "max" : layers,
});
const context = await model.createContext({
  contextSize: promptTokens + tokens + 16,
  batchSize: 512,
  threads: gpu === "cpu" || layers >= 0 ? threads : 1,
  flashAttention: gpu !== "cpu",
});
const prompt = model.tokenize(" a".repeat(promptTokens)).slice(0, promptTokens);

let prefill = 0;
let decode = 0;
// The first run compiles, as our warm-up does, and does not count.
for (let run = 0; run <= runs; run++) {
  const sequence = context.getSequence();
  const times = [performance.now()];
  const generated = sequence.evaluate(prompt, { temperature: 0, yieldEogToken: true });
  while (times.length <= tokens) {
    if ((await generated.next()).done) break;
    times.push(performance.now());
  }
  await generated.return();
  sequence.dispose();
  if (run === 0) continue;
  prefill = Math.max(prefill, (prompt.length / (times[1] - times[0])) * 1000);
  decode = Math.max(decode, ((times.length - 2) / (times.at(-1) - times[1])) * 1000);
}
console.log(JSON.stringify({ prefill, decode }));
process.exit();
