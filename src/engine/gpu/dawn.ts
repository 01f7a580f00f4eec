import type { GpuDevice } from "./gpu-report.ts";

/** The part of Dawn's WebGPU that we call; llama.cpp's script uses the rest. */
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

/** Dawn as a Node addon, with the interface of the npm package `webgpu`. */
export interface Dawn {
  create(flags: readonly string[]): DawnGpu;
}

/** Dawn's flags for exactly one adapter. */
export function deviceFlags({ backend, name }: GpuDevice): string[] {
  return [`backend=${backend}`, `adapter=${name}`];
}

/** Backends on which Dawn's WebGPU is complete; its others are for tests or lack compute shaders. */
export const GPU_BACKENDS = ["d3d12", "metal", "vulkan"] as const;

/** The system on which Dawn could not be loaded. */
interface LoadingSystem {
  readonly platform: NodeJS.Platform;
  /** Version of glibc; undefined on Linux means another C library, musl. */
  readonly glibc: string | undefined;
}

/** Why Dawn's native code cannot be loaded, and what to do, in words. */
export function loadProblem(message: string, { platform, glibc }: LoadingSystem): string {
  const [line = ""] = message.split("\n", 1);
  if (platform === "linux" && glibc === undefined) {
    return "Dawn cannot be loaded here: it is built for Linux with glibc, but this system has another C library (musl, as in Alpine). Use a system with glibc, such as Debian or Ubuntu.";
  }
  if (/GLIBC(XX)?_[\d.]+' not found/.test(line)) {
    return `Dawn cannot be loaded here: it needs glibc 2.34 or later, but this system has ${glibc ?? "an older one"}. Upgrade to a newer release of the system.`;
  }
  return `Dawn cannot be loaded here: ${line}`;
}

/** Version of the glibc that this process runs with; undefined when it runs with another C library. */
export function glibcVersion(): string | undefined {
  if (process.platform !== "linux") return undefined;
  const { header } = process.report.getReport() as { header?: { glibcVersionRuntime?: string } };
  return header?.glibcVersionRuntime;
}
