import {
  type GpuAdapter,
  type GpuDevice,
  type GpuReport,
  isSameDevice,
  type ReportedAdapter,
} from "./gpu-report.ts";

export interface AdapterPreferences {
  /** Part of the name or description of the adapter; absent: the best one. */
  readonly adapter?: string | undefined;
  readonly powerPreference: "high-performance" | "low-power";
}

export type AdapterChoice =
  | { readonly adapter: GpuAdapter }
  /** Why there is none, and what to do. */
  | { readonly problem: string };

/**
 * Picks the adapter for all models. A software adapter is used only when it is named: it computes on the CPU, more
 * slowly than llama.cpp's CPU kernels.
 */
export function chooseAdapter(report: GpuReport, preferences: AdapterPreferences): AdapterChoice {
  if (report.adapters.length === 0) return { problem: report.problem ?? "No GPU was found." };
  const wanted = preferences.adapter === "" ? undefined : preferences.adapter;
  const named =
    wanted === undefined ? report.adapters : report.adapters.filter((each) => matchesName(each, wanted));
  if (named.length === 0) {
    return {
      problem: `No adapter matches "${wanted}"; available: ${report.adapters.map(title).join("; ")}.`,
    };
  }
  const usable = named.filter(isUsable);
  const candidates = wanted === undefined ? usable.filter(({ software }) => !software) : usable;
  const preferred = preferences.powerPreference === "low-power" ? report.lowPower : report.fastest;
  const adapter = candidates.find((each) => preferred && isSameDevice(each, preferred)) ?? candidates[0];
  if (adapter) return { adapter };
  const problems = named.filter((each) => !isUsable(each)).map((each) => `${title(each)}: ${each.problem}`);
  const [software] = usable;
  if (!software) return { problem: problems.join(" ") };
  // Without versions, as in "llvmpipe (LLVM 15.0.6, 256 bits)": daybreak gpu shows them.
  const name = software.name.replace(/ \(.*\)$/, "");
  const slow = `${name}, computes on the CPU itself, and more slowly`;
  return {
    problem:
      problems.length > 0
        ? `${problems.join(" ")} The only other adapter, ${slow}; it is used only when gpu.adapter names it.`
        : `The only adapter, ${slow}. If there is a GPU, install its driver; to use ${name} anyway, name it in gpu.adapter.`,
  };
}

function isUsable(adapter: ReportedAdapter): adapter is GpuAdapter {
  return adapter.problem === undefined && "features" in adapter;
}

function matchesName(adapter: ReportedAdapter, name: string): boolean {
  const description = "description" in adapter ? adapter.description : "";
  return `${adapter.name}\n${description}`.toLowerCase().includes(name.toLowerCase());
}

/** "NVIDIA GeForce RTX 4070 (vulkan)" */
export function title({ name, backend }: GpuDevice): string {
  return `${name} (${backend})`;
}
