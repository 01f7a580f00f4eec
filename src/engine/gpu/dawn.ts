import { fileURLToPath } from "node:url";
import type { GpuDevice } from "./gpu-report.ts";

/** The part of Dawn's WebGPU that we call ourselves; llama.cpp's glue uses the rest. */
export interface DawnAdapter {
  readonly features: ReadonlySet<string>;
  readonly limits: Readonly<Record<string, number>>;
  readonly info: {
    readonly vendor: string;
    readonly architecture: string;
    readonly device: string;
    readonly description: string;
    readonly isFallbackAdapter?: boolean;
  };
  requestDevice(descriptor: {
    requiredFeatures: readonly string[];
    requiredLimits?: Readonly<Record<string, number>>;
  }): Promise<{ destroy(): void }>;
}

export interface DawnGpu {
  requestAdapter(options?: {
    powerPreference?: "high-performance" | "low-power";
  }): Promise<DawnAdapter | null>;
}

/** The npm package `webgpu`: Dawn as an addon for Node. */
export interface Dawn {
  create(flags: readonly string[]): DawnGpu;
}

/** The entry file of the npm package, which is optional; undefined where it is not installed. */
export function findDawn(): string | undefined {
  try {
    return fileURLToPath(import.meta.resolve("webgpu"));
  } catch {
    return undefined;
  }
}

/** Dawn's flags for one adapter and no other. */
export function deviceFlags({ backend, name }: GpuDevice): string[] {
  return [`backend=${backend}`, `adapter=${name}`];
}
