import { ServiceError } from "../../errors/service-error.ts";
import { chooseAdapter, type FoundGpu, type GpuMode } from "./offload-to-gpu.ts";
import type { GpuAdapter, GpuReport, ReportedAdapter } from "./gpu-report.ts";
import type { SandboxMode } from "../sandbox/sandbox-finder.ts";
import { probeGpu } from "./probe-gpu.ts";

interface GpuSettings {
  /** Part of the name or description of the adapter; absent: the best one. */
  readonly adapter?: string | undefined;
  readonly mode: GpuMode;
  /** "require" forbids GPUs: their drivers are native code, which cannot run inside a sandbox. */
  readonly sandbox: SandboxMode;
}

/** State of the search for GPUs, as the daemon reports it. */
export interface GpuState extends Pick<FoundGpu, "adapter" | "problem"> {
  /** True when models can be loaded onto a GPU. */
  readonly available: boolean;
  /** All adapters, including unusable ones. */
  readonly adapters: readonly ReportedAdapter[];
}

/** Searches for a GPU once, in the background; until the search ends, none is available. */
export class GpuFinder implements GpuState, FoundGpu {
  readonly settings: GpuSettings;
  /** Resolves when the search is done; never rejects. */
  readonly ready: Promise<void>;
  adapter: GpuAdapter | undefined;
  problem: string | undefined = "The search for GPUs is still running.";
  adapters: readonly ReportedAdapter[] = [];

  constructor(settings: GpuSettings, probe: () => Promise<GpuReport> = probeGpu) {
    this.settings = settings;
    const forbidden =
      settings.sandbox === "require"
        ? "A required sandbox forbids native code and therefore GPUs; start with --sandbox auto (sandbox = auto) to use one."
        : settings.mode === "off"
          ? "The configuration turns the GPU off; set gpu.mode to auto to use one."
          : undefined;
    if (forbidden === undefined) {
      this.ready = this.#search(probe);
    } else {
      this.problem = forbidden;
      this.ready = Promise.resolve();
    }
  }

  get available(): boolean {
    return this.adapter !== undefined;
  }

  async #search(probe: () => Promise<GpuReport>): Promise<void> {
    const report = await probe().catch((error: unknown): GpuReport => ({
      adapters: [],
      problem: ServiceError.from(error).message,
    }));
    const choice = chooseAdapter(report, this.settings.adapter);
    this.adapters = report.adapters;
    this.adapter = "adapter" in choice ? choice.adapter : undefined;
    this.problem = "problem" in choice ? choice.problem : undefined;
  }
}
