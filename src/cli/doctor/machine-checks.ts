import { readFileSync } from "node:fs";
import path from "node:path";
import type { GpuState } from "../../engine/gpu/gpu-finder.ts";
import type { GpuMode } from "../../engine/gpu/offload-to-gpu.ts";
import { machineProcessors, type Processors } from "../../engine/machine-limits.ts";
import type { SandboxState } from "../../engine/sandbox/sandbox-finder.ts";
import { TRIAL_MS } from "../../engine/sandbox/try-engine-start.ts";
import { platformPackages } from "../../launch/platform-packages.mjs";
import { MINIMUM_NODE, runtimeSuits } from "../../launch/runtime.mjs";
import { type MemoryLimit, memoryLimits } from "../../machine/memory.ts";
import { formatBytes } from "../terminal/format.ts";
import { type Check, type Finding, note, ok, problem } from "./run-checks.ts";

const NAME = "Runtime";
const PROCESSORS = "Processors";

/** The smallest modules that need what an engine needs: a memory of 64-bit addresses, and a vector of 128 bits. */
const MEMORY64 = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 5, 3, 1, 4, 1);
const SIMD = Uint8Array.from(
  [
    [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123],
    [3, 2, 1, 0, 10, 8, 1, 6, 0, 65, 0, 253, 15, 11],
  ].flat(),
);

/** What the runtime is and can do. */
export interface RuntimeFacts {
  readonly version: string;
  readonly binary: string;
  readonly jspi: boolean;
  readonly memory64: boolean;
  readonly simd: boolean;
  readonly processors: Processors;
  /** Instructions that the processors know, as Linux lists them; undefined where nothing lists them. */
  readonly instructions: readonly string[] | undefined;
}

/** The runtime, and the processors that it computes on. */
export function runtimeCheck(facts: () => RuntimeFacts = runtimeFacts): Check {
  return {
    name: NAME,
    deadlineMs: 5000,
    look: async () => {
      const found = facts();
      return [runtimeFinding(found), processorsFinding(found)];
    },
  };
}

function runtimeFinding({ version, binary, jspi, memory64 }: RuntimeFacts): Finding {
  const origin = cameAlong(binary) ? "which came with Daybreak" : binary;
  const what = `Node ${version}, ${origin}`;
  const missing = [...(jspi ? [] : ["JSPI"]), ...(memory64 ? [] : ["memory64"])];
  if (runtimeSuits({ node: version }) && missing.length === 0)
    return ok(NAME, `${what}; JSPI and memory64 work`);
  return problem(
    NAME,
    missing.length === 0
      ? `${what}, is too old`
      : `${what}, lacks ${missing.join(" and ")}, which engines need`,
    `Install Node ${MINIMUM_NODE} or later (https://nodejs.org), and check that NODE_OPTIONS does not switch off V8 features.`,
  );
}

/** Whether the binary is of a package that brings a Node along. */
function cameAlong(binary: string): boolean {
  const packages = platformPackages(process.platform, process.arch);
  if (packages === undefined) return false;
  return [packages.node, packages.nodeSource].some((name) =>
    binary.endsWith(path.join("node_modules", name, packages.nodeBinary)),
  );
}

function processorsFinding({ simd, processors, instructions }: RuntimeFacts): Finding {
  const { usable, cores } = processors;
  const count = `${usable} usable, ${cores} ${cores === 1 ? "core" : "cores"}`;
  if (!simd) {
    return problem(
      PROCESSORS,
      `${count}; they have no SIMD that WebAssembly can use, so no engine can run`,
      "Use a machine with SSE4.1 or NEON; in a virtual machine, pass the host's processor through.",
    );
  }
  const slow = instructions !== undefined && !["avx2", "fma"].every((name) => instructions.includes(name));
  if (!slow) return ok(PROCESSORS, `${count}; SIMD is available`);
  return note(
    PROCESSORS,
    `${count}; SIMD is available but AVX2 with FMA is not, so models are slow`,
    "In a virtual machine, pass the host's processor through.",
  );
}

function runtimeFacts(): RuntimeFacts {
  return {
    version: process.versions.node,
    binary: process.execPath,
    jspi: "Suspending" in WebAssembly,
    memory64: WebAssembly.validate(MEMORY64),
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

const WALL_CHECK_NAME = "Sandbox";

/** Longer than two walls are tried for, so that the finding says which one is slow. */
const DEADLINE_MS = 2 * TRIAL_MS + 10_000;

/** The system's wall around engines: as the daemon has it, or as it turns out to be when tried here. */
export function sandboxCheck(look: () => Promise<SandboxState>): Check {
  return { name: WALL_CHECK_NAME, deadlineMs: DEADLINE_MS, look: async () => [judge(await look())] };
}

function judge({ mode, wall, parts, problem: why }: SandboxState): Finding {
  if (wall === "unknown")
    return note(WALL_CHECK_NAME, "not known yet: the daemon has started no engine", "daybreak load <model>");
  if (wall === "none") {
    const what = "only Node's permission model confines engines";
    if (mode === "off")
      return note(WALL_CHECK_NAME, `${what}: ${why}`, "Set sandbox to auto to use the system's sandbox too.");
    if (mode === "require")
      return problem(
        WALL_CHECK_NAME,
        "no model can be loaded: a sandbox is required, and none works",
        why ?? "",
      );
    return note(WALL_CHECK_NAME, what, why);
  }
  const what = `Node's permission model and ${wall}: ${parts.join(", ")}`;
  return why === undefined ? ok(WALL_CHECK_NAME, what) : note(WALL_CHECK_NAME, what, why);
}

const GPU_CHECK_NAME = "GPU";

/** Drivers that are opened for the first time take long. */
const GPU_CHECK_DEADLINE_MS = 45_000;

/** What `daybreak gpu` shows, in a sentence. */
export function gpuCheck(mode: GpuMode, look: () => Promise<GpuState>): Check {
  return {
    name: GPU_CHECK_NAME,
    deadlineMs: GPU_CHECK_DEADLINE_MS,
    look: async () => [gpuCheckJudge(mode, await look())],
  };
}

function gpuCheckJudge(mode: GpuMode, { adapter, adapters, problem: why }: GpuState): Finding {
  if (adapter) {
    const memory = adapter.memory === undefined ? "" : `, ${formatBytes(adapter.memory)}`;
    return ok(GPU_CHECK_NAME, `models use ${adapter.name} (${adapter.backend}${memory})`);
  }
  const found =
    adapters.length === 0 ? "" : ` (${adapters.map(({ name }) => name).join(", ")}: daybreak gpu shows more)`;
  if (mode === "require") {
    return problem(
      GPU_CHECK_NAME,
      `no model can be loaded: a GPU is required, and none can be used${found}`,
      why ?? "",
    );
  }
  return note(GPU_CHECK_NAME, `models run on the CPU${found}`, why);
}

const MEMORY_CHECK_NAME = "Memory";

/** The model that ships runs with less. */
const LITTLE_BYTES = 400e6;
/** A model of half a billion weights with its context needs about as much. */
const SCARCE_BYTES = 1.5e9;

/** Memory that is left to models, by the narrowest of the limits. */
export function memoryCheck(
  limits: () => readonly MemoryLimit[] = memoryLimits,
  platform: NodeJS.Platform = process.platform,
): Check {
  return {
    name: MEMORY_CHECK_NAME,
    deadlineMs: 5000,
    look: async () => [memoryCheckJudge(limits(), platform)],
  };
}

function memoryCheckJudge(limits: readonly MemoryLimit[], platform: NodeJS.Platform) {
  const [narrowest] = limits.toSorted((a, b) => left(a) - left(b));
  if (narrowest === undefined) return note(MEMORY_CHECK_NAME, "not known");
  // Other systems do not report what other programs would free.
  if (platform !== "linux") return ok(MEMORY_CHECK_NAME, `${formatBytes(narrowest.bytes)} in total`);
  const free = left(narrowest);
  const what = `${formatBytes(free)} free of ${formatBytes(narrowest.bytes)} (${narrowest.name})`;
  if (free >= SCARCE_BYTES) return ok(MEMORY_CHECK_NAME, what);
  const cure =
    "Unload models (daybreak unload), end other programs, or raise the limit of the container or control group.";
  if (free >= LITTLE_BYTES) return note(MEMORY_CHECK_NAME, `${what}: enough for small models only`, cure);
  return problem(MEMORY_CHECK_NAME, `${what}: too little for almost any model`, cure);
}

function left({ bytes, usedBytes }: MemoryLimit): number {
  return Math.max(0, bytes - usedBytes);
}
