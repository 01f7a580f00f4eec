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

/** Dawn as an addon for Node, in the form of the npm package `webgpu`. */
export interface Dawn {
  create(flags: readonly string[]): DawnGpu;
}

/** Dawn's flags for one adapter and no other. */
export function deviceFlags({ backend, name }: GpuDevice): string[] {
  return [`backend=${backend}`, `adapter=${name}`];
}
