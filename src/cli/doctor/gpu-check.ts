import type { GpuState } from "../../engine/gpu/gpu-finder.ts";
import type { GpuMode } from "../../engine/gpu/place-on-gpu.ts";
import { formatBytes } from "../terminal/quantity.ts";
import { type Check, type Finding, note, ok, problem } from "./check.ts";

const NAME = "GPU";

/** Drivers that are opened for the first time take long. */
const DEADLINE_MS = 45_000;

/** What `daybreak gpu` shows, in a sentence. */
export function gpuCheck(mode: GpuMode, look: () => Promise<GpuState>): Check {
  return { name: NAME, deadlineMs: DEADLINE_MS, look: async () => [judge(mode, await look())] };
}

function judge(mode: GpuMode, { adapter, adapters, problem: why }: GpuState): Finding {
  if (adapter) {
    const memory = adapter.memory === undefined ? "" : `, ${formatBytes(adapter.memory)}`;
    return ok(NAME, `models use ${adapter.name} (${adapter.backend}${memory})`);
  }
  const found =
    adapters.length === 0 ? "" : ` (${adapters.map(({ name }) => name).join(", ")}: daybreak gpu shows more)`;
  if (mode === "require") {
    return problem(
      NAME,
      `no model can be loaded: a GPU is required, and none can be used${found}`,
      why ?? "",
    );
  }
  return note(NAME, `models run on the CPU${found}`, why);
}
