// Stands in for an engine process: plays the part that its first argument names.
const [, , part] = process.argv;

const info = {
  contextSize: 512,
  contextTokens: 512,
  trainedContextSize: 512,
  vocabSize: 100,
  embeddingSize: 8,
  layers: 1,
  gpuLayers: 0,
  threads: 1,
  hasChatTemplate: false,
  hasImageInput: false,
  backendVersion: "b1",
};

const answers = {
  /** Never says that it has loaded. */
  "silent while loading": {},
  /** Says something that no schema knows. */
  "forged while loading": { load: () => [{ type: "load-progress", progress: "much" }] },
  "premature while loading": { load: () => [{ type: "cancelled", call: 1 }] },
  "exits while loading": {
    load: () => {
      process.stderr.write("Error: the disk is on fire\n", () => process.exit(7));
      return [];
    },
  },
  silent: { load: () => [{ type: "loaded", info }] },
  forged: {
    load: () => [{ type: "loaded", info }],
    generate: ({ call }) => [
      { type: "events", call, events: [{ type: "text-delta", text: { toString: 1 } }] },
    ],
  },
  "answers another call": {
    load: () => [{ type: "loaded", info }],
    generate: ({ call }) => [{ type: "events", call: call + 1, events: [{ type: "start" }] }],
  },
  "answers with the wrong kind": {
    load: () => [{ type: "loaded", info }],
    generate: ({ call }) => [{ type: "embedded", call, result: { vector: [1], tokens: 1 } }],
  },
  fatal: {
    load: () => [{ type: "loaded", info }],
    generate: () => {
      setTimeout(() => process.exit(1), 10);
      return [{ type: "fatal", reason: "(ABORT) GGML_ASSERT(1 == 2) failed" }];
    },
  },
  "fails one call": {
    load: () => [{ type: "loaded", info }],
    generate: ({ call }) => [
      { type: "events", call, events: [{ type: "start" }, { type: "text-delta", text: "half" }] },
      { type: "call-failed", call, error: { code: "inference_failed", message: "too hard" } },
    ],
    embed: ({ call }) => [{ type: "embedded", call, result: { vector: [1, 0], tokens: 2 } }],
  },
}[part];

process.on("message", (message) => {
  for (const answer of answers[message.type]?.(message) ?? []) process.send(answer);
});
process.on("disconnect", () => process.exit());
