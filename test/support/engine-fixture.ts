import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import type { Engine, StartEngine } from "../../src/engine/engine.ts";
import { type PreparedEngine, prepareEngine } from "../../src/engine/engine-image.ts";
import type { EngineSpec } from "../../src/engine/protocol/engine-spec.ts";
import type {
  ContentPart,
  GenerationEvent,
  GenerationRequest,
} from "../../src/engine/protocol/generation.ts";
import { createEngineStarter } from "../../src/engine/start-engine.ts";
import { type GgufFile, writeGguf } from "./gguf-writer.ts";
import { ENGINE_CACHE, spawnTestEngine } from "./program.ts";
import { generated } from "./generated.ts";

/** The model that ships: its chat template and tokens are real, its text may mean nothing. */
export const SHIPPED_MODEL = fileURLToPath(new URL("../../models/daybreak-mini.gguf", import.meta.url));

/** Long enough for a busy machine, short enough for a test that goes wrong. */
const TIMEOUT_MS = 120_000;

/** Made or checked once by a process, as by a daemon. */
let prepared: Promise<PreparedEngine> | undefined;

/** The engine that users run, with our kernels. */
export function preparedEngine(): Promise<PreparedEngine> {
  return (prepared ??= prepareEngine({ cacheDir: ENGINE_CACHE, kernels: "auto" }));
}

/** Starts it. */
export const startEngine: StartEngine = async (spec, options) => {
  const { wasmPath, heapLimitBytes } = await preparedEngine();
  const start = createEngineStarter({
    loadTimeoutMs: TIMEOUT_MS,
    stallTimeoutMs: TIMEOUT_MS,
    wasmPath,
    heapLimitBytes,
    spawn: spawnTestEngine,
  });
  return start(spec, options);
};

/** Starts the engine as @wllama/wllama ships it, for machines on which ours cannot be made. */
export const startStockEngine = createEngineStarter({
  loadTimeoutMs: TIMEOUT_MS,
  stallTimeoutMs: TIMEOUT_MS,
  spawn: spawnTestEngine,
});

/** A signal that is never aborted. */
export const NEVER = new AbortController().signal;

export function temporaryFolder(): string {
  return fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), "daybreak-engine-"));
}

/** Writes a model into a folder and returns its path. */
export function writeModel(folder: string, name: string, model: GgufFile): string {
  const file = path.join(folder, `${name}.gguf`);
  writeGguf(file, model);
  return file;
}

/** A small engine on one thread; the tests run beside each other. */
export function engineSpec(
  modelFile: string | readonly string[],
  overrides: Partial<EngineSpec> = {},
): EngineSpec {
  const { purpose = "generate" } = overrides;
  return {
    modelFiles: typeof modelFile === "string" ? [modelFile] : [...modelFile],
    adapters: [],
    purpose,
    contextSize: 512,
    sharedContext: purpose !== "generate",
    gpuLayers: 0,
    slots: 4,
    threads: 1,
    batchSize: 64,
    flashAttention: "auto",
    contextShift: false,
    ...overrides,
  };
}

/** Greedy, so that the same request gives the same text. */
const DEFAULTS = {
  stop: [],
  sampling: { temperature: 0, seed: 1 },
  format: { type: "text" },
  cachePrompt: true,
  maxTokens: 8,
} satisfies Omit<GenerationRequest, "input">;

export function promptRequest(prompt: string, overrides: Partial<GenerationRequest> = {}): GenerationRequest {
  return { ...DEFAULTS, input: { kind: "prompt", prompt }, ...overrides };
}

type ChatInput = Extract<GenerationRequest["input"], { kind: "chat" }>;

/** A chat whose last message is the user's; thinking is off for models that can. */
export function chatRequest(
  content: string | ContentPart[],
  overrides: Partial<GenerationRequest> = {},
  input: Partial<ChatInput> = {},
): GenerationRequest {
  const parts: ContentPart[] = typeof content === "string" ? [{ type: "text", text: content }] : content;
  return {
    ...DEFAULTS,
    input: {
      kind: "chat",
      messages: [{ role: "user", content: parts }],
      tools: [],
      toolChoice: "auto",
      parallelToolCalls: true,
      thinking: false,
      ...input,
    },
    ...overrides,
  };
}

export async function collect(events: AsyncIterable<GenerationEvent>): Promise<GenerationEvent[]> {
  const collected: GenerationEvent[] = [];
  for await (const event of events) collected.push(event);
  return collected;
}

export function textOf(events: readonly GenerationEvent[]): string {
  return events.map((event) => (event.type === "text-delta" ? event.text : "")).join("");
}

export function doneOf(events: readonly GenerationEvent[]): Extract<GenerationEvent, { type: "done" }> {
  const last = events.at(-1);
  if (last?.type !== "done") throw new Error(`the last event is ${last?.type}`);
  return last;
}

/** The text of a whole generation. */
export async function generateText(engine: Engine, request: GenerationRequest): Promise<string> {
  return textOf(await collect(generated(engine, request, NEVER)));
}
