import { readFileSync } from "node:fs";
import path from "node:path";
import { machineProcessors, type Processors } from "../../engine/machine-processors.ts";
import { platformPackages } from "../../launch/platform-packages.mjs";
import { MINIMUM_NODE, runtimeSuits } from "../../launch/runtime.mjs";
import { type Check, type Finding, note, ok, problem } from "./check.ts";

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
