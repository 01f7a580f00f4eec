import { pathToFileURL } from "node:url";
import { ParentChannel, onParentGone } from "../channel/parent-channel.ts";
import {
  type Dawn,
  type DawnGpu,
  describeAdapter,
  deviceFlags,
  glibcVersion,
  GPU_BACKENDS,
  loadProblem,
  PROBE_MESSAGE_KINDS,
  unusableReason,
} from "./dawn.ts";
import { type GpuDevice, isSameDevice, type ProbeMessage } from "./gpu-report.ts";

/**
 * Entry of the probe process: opens every adapter once and reports its properties. A driver may crash or hang at any
 * step, so each result is sent immediately.
 *
 * Arguments: the path of Dawn's entry file, then a JSON array of adapters to leave out.
 */

/** Name that no adapter has, so that Dawn answers with a list of all adapters. */
const NO_SUCH_ADAPTER = "daybreak: no such adapter";
/** A line of that list. */
const LISTED_ADAPTER = /^ \* backend: '([^']+)', name: '(.*)'$/gm;

/** Flag that makes Dawn list experimental features of an adapter. */
const ALL_FEATURES = "enable-dawn-features=allow_unsafe_apis";

/** Advice when a driver fails without an explanation. */
const ADVICE = "Close programs that may use all of its memory, or update the driver.";

/** The Vulkan loader that Dawn uses on Linux. */
const VULKAN_LOADER = "libvulkan.so.1";

const [, , dawnPath = "", skipped = "[]"] = process.argv;

// Without its parent, the result is useless.
onParentGone(() => process.exit());

const channel = new ParentChannel<never, ProbeMessage>({
  incoming: {},
  outgoing: PROBE_MESSAGE_KINDS,
  onMessage: () => {},
  onProblem: () => process.exit(1),
});
await probe();
// Drivers may have threads that would keep the process alive.
process.exit();

async function probe(): Promise<void> {
  let dawn: Dawn;
  try {
    dawn = await import(pathToFileURL(dawnPath).href);
  } catch (error) {
    const reason = loadProblem(messageOf(error), { platform: process.platform, glibc: glibcVersion() });
    return await send({ type: "failed", reason });
  }
  const adapters = await listAdapters(dawn);
  await send({ type: "listed", adapters });
  if (adapters.length === 0) return await send({ type: "failed", reason: noAdapterReason() });
  const skip: readonly GpuDevice[] = JSON.parse(skipped);
  for (const device of adapters) {
    if (skip.some((other) => isSameDevice(other, device))) continue;
    await send(await open(dawn, device));
  }
  if (skip.length > 0) return await send({ type: "done" });
  const fastest = await findFastest(dawn, adapters);
  await send({ type: "done", ...(fastest && { fastest }) });
}

async function listAdapters(dawn: Dawn): Promise<GpuDevice[]> {
  let text = "";
  try {
    await dawn.create([`adapter=${NO_SUCH_ADAPTER}`]).requestAdapter();
  } catch (error) {
    text = messageOf(error);
  }
  const found = new Map<string, GpuDevice>();
  for (const [, backend, name] of text.matchAll(LISTED_ADAPTER)) {
    const known = GPU_BACKENDS.find((each) => each === backend);
    // Identical cards have the same name, and Dawn cannot tell them apart.
    if (known && name) found.set(`${known} ${name}`, { backend: known, name });
  }
  return [...found.values()];
}

async function open(dawn: Dawn, device: GpuDevice): Promise<ProbeMessage> {
  try {
    const adapter = await dawn.create([...deviceFlags(device), ALL_FEATURES]).requestAdapter();
    if (!adapter)
      return { type: "unopened", adapter: { ...device, problem: `The driver could not open it. ${ADVICE}` } };
    const found = describeAdapter(device, adapter);
    const problem = unusableReason(found) ?? (await deviceProblem(dawn, device));
    return { type: "opened", adapter: problem === undefined ? found : { ...found, problem } };
  } catch (error) {
    return { type: "unopened", adapter: { ...device, problem: firstLine(error) } };
  }
}

/** Opens and closes the device as llama.cpp does; returns the problem, if any. */
async function deviceProblem(dawn: Dawn, device: GpuDevice): Promise<string | undefined> {
  try {
    const adapter = await dawn.create(deviceFlags(device)).requestAdapter();
    const opened = await adapter?.requestDevice({ requiredFeatures: ["shader-f16"] });
    opened?.destroy();
    return opened ? undefined : `The driver could not open it a second time. ${ADVICE}`;
  } catch (error) {
    return `The device cannot be opened (${firstLine(error)}). ${ADVICE}`;
  }
}

/** Adapter that the system prefers for speed; undefined if it has no preference. */
async function findFastest(dawn: Dawn, adapters: readonly GpuDevice[]): Promise<GpuDevice | undefined> {
  if (adapters.length < 2) return adapters[0];
  const fastestId = await fastestAdapterId(dawn.create([]));
  if (fastestId === undefined) return undefined;
  for (const device of adapters)
    if ((await fastestAdapterId(dawn.create(deviceFlags(device)))) === fastestId) return device;
  return undefined;
}

async function fastestAdapterId(gpu: DawnGpu): Promise<string | undefined> {
  const info = (await gpu.requestAdapter({ powerPreference: "high-performance" }).catch(() => null))?.info;
  return info && [info.vendor, info.device, info.description].join("\n");
}

function noAdapterReason(): string {
  if (process.platform === "linux" && !canLoad(VULKAN_LOADER)) {
    return `There is no Vulkan loader (${VULKAN_LOADER}); install it and the GPU's Vulkan driver (on Debian and Ubuntu: libvulkan1, and mesa-vulkan-drivers or NVIDIA's driver).`;
  }
  return "No driver offers an adapter that WebGPU can use: there is no GPU, its driver is missing or too old, or this user may not open it. Install or update the driver of the GPU.";
}

function canLoad(library: string): boolean {
  try {
    process.dlopen({ exports: {} }, library);
    return true;
  } catch (error) {
    // The library was found and loaded, but it is not a Node addon.
    return messageOf(error).includes("did not self-register");
  }
}

function send(message: ProbeMessage): Promise<void> {
  return new Promise((resolve) => channel.post(message, resolve));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function firstLine(error: unknown): string {
  return messageOf(error).split("\n", 1)[0] ?? "";
}
