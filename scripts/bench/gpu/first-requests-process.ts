import { pathToFileURL } from "node:url";
import { EngineCore } from "../../../src/engine/core/engine-core.ts";
import { warmUpBeforeRequests } from "../../../src/engine/core/warm-up.ts";
import { deviceFlags } from "../../../src/engine/gpu/dawn.ts";
import { findDawn } from "../../../src/engine/gpu/probe-gpu.ts";
import { openEngineFiles } from "../../../src/engine/host/engine-files.ts";
import { createNodePlatform } from "../../../src/engine/host/node-platform.ts";
import {
  FIRST_PROMPT_TOKENS,
  FIRST_TOKENS,
  type FirstRequests,
  type FirstRequestsTask,
  type RequestTimes,
} from "./first-requests.ts";
import { greedyRequest } from "./greedy-request.ts";
import { generated } from "../../../test/support/generated.ts";

// Loads a model onto a GPU as an engine process does, with the warm-up or without, and prints the times as JSON.
// A separate process, because drivers and V8 cache what they compile. Argument: a FirstRequestsTask as JSON.

const LONGEST_WAIT_MS = 600_000;

const task: FirstRequestsTask = JSON.parse(process.argv[2] ?? "");
const { engine: prepared, adapter, spec, isWarm } = task;

const begin = performance.now();
const processorTime = process.cpuUsage();
const platform = createNodePlatform(pathToFileURL(prepared.wasmPath).href, () => {}, {
  gpu: { dawnPath: findDawn() ?? "", flags: deviceFlags(adapter), maxWaitMs: LONGEST_WAIT_MS },
  heapLimitBytes: prepared.heapLimitBytes,
});
const engine = await EngineCore.load(platform, spec, openEngineFiles(spec));
if (isWarm) await warmUpBeforeRequests(engine, spec);
const loadMs = performance.now() - begin;
const { user, system } = process.cpuUsage(processorTime);
const loadProcessorMs = (user + system) / 1000;
const times: FirstRequests = {
  loadMs,
  loadProcessorMs,
  peakBytes: process.resourceUsage().maxRSS * 1024,
  first: await timeRequest(),
  second: await timeRequest(),
};
console.log(JSON.stringify(times));
process.exit();

async function timeRequest(): Promise<RequestTimes> {
  const asked = performance.now();
  let firstTokenMs: number | undefined;
  const events = generated(
    engine,
    greedyRequest(" a".repeat(FIRST_PROMPT_TOKENS), FIRST_TOKENS),
    new AbortController().signal,
  );
  for await (const { type } of events) if (type === "text-delta") firstTokenMs ??= performance.now() - asked;
  const decodeMs = performance.now() - asked - (firstTokenMs ?? 0);
  return { firstTokenMs: firstTokenMs ?? 0, decode: ((FIRST_TOKENS - 1) / decodeMs) * 1000 };
}
