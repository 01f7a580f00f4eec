import { readFileSync } from "node:fs";
import path from "node:path";
import type { GpuState } from "../../engine/gpu/gpu-finder.ts";
import type { GpuMode } from "../../engine/gpu/offload-to-gpu.ts";
import { machineProcessors, type Processors } from "../../engine/machine-limits.ts";
import type { SandboxState } from "../../engine/sandbox/sandbox-finder.ts";
import { TRIAL_MS } from "../../engine/sandbox/try-engine-start.ts";
import { platformPackages } from "../../launch/platform-packages.mjs";
import { LARGE_MEMORY } from "../../launch/machine-problem.mjs";
import { MINIMUM_NODE, isSuitableRuntime } from "../../launch/runtime.mjs";
import { type MemoryLimit, memoryLimits } from "../../machine/memory.ts";
import { formatBytes } from "../../json/quantities.ts";
import { type Check, createCheck, note, ok, problem, type Result } from "./run-checks.ts";

/** A minimal WebAssembly module that needs 128-bit vectors. */
const SIMD = Uint8Array.from(
  [
    [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123],
    [3, 2, 1, 0, 10, 8, 1, 6, 0, 65, 0, 253, 15, 11],
  ].flat(),
);

/** Version and features of Node, and the processors. */
export interface RuntimeProperties {
  readonly version: string;
  readonly binary: string;
  readonly jspi: boolean;
  readonly memory64: boolean;
  readonly simd: boolean;
  readonly processors: Processors;
  /** CPU flags as Linux lists them; undefined on other systems. */
  readonly instructions: readonly string[] | undefined;
}

/** Checks Node and the processors. */
export function runtimeCheck(facts: () => RuntimeProperties = readRuntimeProperties): Check {
  return createCheck("Runtime", () => {
    const found = facts();
    return [runtimeFinding(found), { name: "Processors", ...processorsFinding(found) }];
  });
}

function runtimeFinding({ version, binary, jspi, memory64 }: RuntimeProperties): Result {
  const origin = isBundled(binary) ? "which came with Daybreak" : binary;
  const what = `Node ${version}, ${origin}`;
  const missing = [...(jspi ? [] : ["JSPI"]), ...(memory64 ? [] : ["memory64"])];
  if (isSuitableRuntime({ node: version }) && missing.length === 0)
    return ok(`${what}; JSPI and memory64 work`);
  return problem(
    missing.length === 0
      ? `${what}, is too old`
      : `${what}, lacks ${missing.join(" and ")}, which engines need`,
    `Install Node ${MINIMUM_NODE} or later (https://nodejs.org), and check that NODE_OPTIONS does not switch off V8 features.`,
  );
}

/** True if the binary belongs to a package of Daybreak that contains Node. */
function isBundled(binary: string): boolean {
  const packages = platformPackages(process.platform, process.arch);
  if (packages === undefined) return false;
  return [packages.node, packages.nodeSource].some((name) =>
    binary.endsWith(path.join("node_modules", name, packages.nodeBinary)),
  );
}

function processorsFinding({ simd, processors, instructions }: RuntimeProperties): Result {
  const { usable, cores } = processors;
  const count = `${usable} usable, ${cores} ${cores === 1 ? "core" : "cores"}`;
  if (!simd) {
    return problem(
      `${count}; they have no SIMD that WebAssembly can use, so no engine can run`,
      "Use a machine with SSE4.1 or NEON; in a virtual machine, pass the host's processor through.",
    );
  }
  const slow = instructions !== undefined && !["avx2", "fma"].every((name) => instructions.includes(name));
  if (!slow) return ok(`${count}; SIMD is available`);
  return note(
    `${count}; SIMD is available but AVX2 with FMA is not, so models are slow`,
    "In a virtual machine, pass the host's processor through.",
  );
}

function readRuntimeProperties(): RuntimeProperties {
  return {
    version: process.versions.node,
    binary: process.execPath,
    jspi: "Suspending" in WebAssembly,
    memory64: WebAssembly.validate(LARGE_MEMORY),
    simd: WebAssembly.validate(SIMD),
    processors: machineProcessors(),
    instructions: process.arch === "x64" ? instructionsOfLinux() : undefined,
  };
}

function instructionsOfLinux(): readonly string[] | undefined {
  try {
    return /^flags\s*:\s*(.*)$/m.exec(readFileSync("/proc/cpuinfo", "utf8"))?.[1]?.split(" ");
  } catch {
    return undefined; // not Linux
  }
}

/** Longer than the trials of two sandboxes, so that the finding says which one is slow. */
const SANDBOX_DEADLINE_MS = 2 * TRIAL_MS + 10_000;

/** Reports the system's sandbox for engines. */
export function sandboxCheck(look: () => Promise<SandboxState>): Check {
  return createCheck("Sandbox", async () => sandboxFinding(await look()), SANDBOX_DEADLINE_MS);
}

function sandboxFinding({ mode, wall: sandbox, parts, problem: reason }: SandboxState): Result {
  if (sandbox === "unknown")
    return note("not known yet: the daemon has started no engine", "daybreak load <model>");
  if (sandbox === "none") {
    const what = "only Node's permission model confines engines";
    if (mode === "off")
      return note(`${what}: ${reason}`, "Set sandbox to auto to use the system's sandbox too.");
    if (mode === "require")
      return problem("no model can be loaded: a sandbox is required, and none works", reason ?? "");
    return note(what, reason);
  }
  const what = `Node's permission model and ${sandbox}: ${parts.join(", ")}`;
  return reason === undefined ? ok(what) : note(what, reason);
}

/** Opening a driver for the first time takes long. */
const GPU_DEADLINE_MS = 45_000;

/** Summarizes what `daybreak gpu` shows. */
export function gpuCheck(mode: GpuMode, look: () => Promise<GpuState>): Check {
  return createCheck("GPU", async () => gpuFinding(mode, await look()), GPU_DEADLINE_MS);
}

function gpuFinding(mode: GpuMode, { adapter, adapters, problem: why }: GpuState): Result {
  if (adapter) {
    const memory = adapter.memory === undefined ? "" : `, ${formatBytes(adapter.memory)}`;
    return ok(`models use ${adapter.name} (${adapter.backend}${memory})`);
  }
  const found =
    adapters.length === 0 ? "" : ` (${adapters.map(({ name }) => name).join(", ")}: daybreak gpu shows more)`;
  if (mode === "require") {
    return problem(`no model can be loaded: a GPU is required, and none can be used${found}`, why ?? "");
  }
  return note(`models run on the CPU${found}`, why);
}

/** Free memory below which almost no model runs; only the model that ships needs less. */
const TOO_LITTLE_BYTES = 400e6;
/** Free memory for a model of half a billion weights with its context. */
const SCARCE_BYTES = 1.5e9;

/** Checks the free memory, by the narrowest limit. */
export function memoryCheck(
  limits: () => readonly MemoryLimit[] = memoryLimits,
  platform: NodeJS.Platform = process.platform,
): Check {
  return createCheck("Memory", () => memoryFinding(limits(), platform));
}

function memoryFinding(limits: readonly MemoryLimit[], platform: NodeJS.Platform) {
  const [narrowest] = limits.toSorted((a, b) => freeBytes(a) - freeBytes(b));
  if (narrowest === undefined) return note("not known");
  // Other systems do not report what other programs would free.
  if (platform !== "linux") return ok(`${formatBytes(narrowest.bytes)} in total`);
  const free = freeBytes(narrowest);
  const what = `${formatBytes(free)} free of ${formatBytes(narrowest.bytes)} (${narrowest.name})`;
  if (free >= SCARCE_BYTES) return ok(what);
  const cure =
    "Unload models (daybreak unload), end other programs, or raise the limit of the container or control group.";
  if (free >= TOO_LITTLE_BYTES) return note(`${what}: enough for small models only`, cure);
  return problem(`${what}: too little for almost any model`, cure);
}

function freeBytes({ bytes, usedBytes }: MemoryLimit): number {
  return Math.max(0, bytes - usedBytes);
}
