import { KIB } from "../../json/quantities.ts";
import type { MessageKind, MessageKinds } from "../channel/message-kinds.ts";
import type { GpuAdapter, GpuDevice, ProbeMessage } from "./gpu-report.ts";

/** Part of Dawn's WebGPU that the daemon calls; llama.cpp's script uses the rest. */
interface DawnAdapter {
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
  requestAdapter(options?: { powerPreference: "high-performance" }): Promise<DawnAdapter | null>;
}

/** Dawn as a Node addon, with the interface of the npm package `webgpu`. */
export interface Dawn {
  create(flags: readonly string[]): DawnGpu;
}

/** Dawn's flags for exactly one adapter. */
export function deviceFlags({ backend, name }: GpuDevice): string[] {
  return [`backend=${backend}`, `adapter=${name}`];
}

/** Backends on which Dawn's WebGPU is complete; the others are for tests or lack compute shaders. */
export const GPU_BACKENDS = ["d3d12", "metal", "vulkan"] as const satisfies readonly GpuDevice["backend"][];

/** The system on which Dawn could not be loaded. */
interface LoadingSystem {
  readonly platform: NodeJS.Platform;
  /** Version of glibc; undefined on Linux means another C library, musl. */
  readonly glibc: string | undefined;
}

/** Explains why Dawn's native code cannot be loaded, and what to do. */
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

/** Version of the glibc of this process; undefined with another C library. */
export function glibcVersion(): string | undefined {
  if (process.platform !== "linux") return undefined;
  const { header } = process.report.getReport() as { header?: { glibcVersionRuntime?: string } };
  return header?.glibcVersionRuntime;
}

/** Names of software adapters whose driver does not report that they are. */
const SOFTWARE_NAMES = /llvmpipe|lavapipe|swiftshader|basic render driver|\bwarp\b/i;

/** Describes an adapter, of Dawn or of a browser, by the properties that matter for llama.cpp. */
export function describeAdapter(device: GpuDevice, { features, limits, info }: DawnAdapter): GpuAdapter {
  const limit = (name: string): number => limits[name] ?? 0;
  return {
    ...device,
    vendor: info.vendor,
    architecture: info.architecture,
    description: info.description,
    software:
      info.isFallbackAdapter === true ||
      info.architecture === "software" ||
      SOFTWARE_NAMES.test(`${device.name} ${info.description}`),
    features: {
      shaderF16: features.has("shader-f16"),
      subgroups: features.has("subgroups"),
      subgroupMatrices: features.has("chromium-experimental-subgroup-matrix"),
      timestampQueries: features.has("timestamp-query"),
    },
    limits: {
      maxBufferSize: limit("maxBufferSize"),
      maxStorageBufferBindingSize: limit("maxStorageBufferBindingSize"),
      maxComputeWorkgroupStorageSize: limit("maxComputeWorkgroupStorageSize"),
      maxComputeInvocationsPerWorkgroup: limit("maxComputeInvocationsPerWorkgroup"),
    },
  };
}

/** Workgroup memory in bytes that llama.cpp's matrix shaders need: the minimum that WebGPU guarantees. */
const MIN_WORKGROUP_STORAGE = 16_384;

/** Explains why llama.cpp cannot run on an adapter; undefined when it can. */
export function unusableReason({
  features,
  limits,
}: Pick<GpuAdapter, "features" | "limits">): string | undefined {
  if (!features.shaderF16) {
    return "It has no 16-bit floats in shaders (shader-f16), which llama.cpp needs; a newer driver may add them.";
  }
  if (limits.maxComputeWorkgroupStorageSize < MIN_WORKGROUP_STORAGE) {
    return `Its workgroups share ${limits.maxComputeWorkgroupStorageSize} bytes of memory, but llama.cpp needs ${MIN_WORKGROUP_STORAGE}.`;
  }
  return undefined;
}

/** Limits for the names and descriptions of one adapter, or the names of all adapters. */
const DESCRIPTIONS: MessageKind = {
  limits: { json: 256 * KIB, depth: 5, values: 1024, attachments: 0, binary: 0 },
};

/** Messages from a probe process. A driver may have compromised it, so the limits are tight. */
export const PROBE_MESSAGE_KINDS: MessageKinds<ProbeMessage> = {
  failed: DESCRIPTIONS,
  listed: DESCRIPTIONS,
  opened: DESCRIPTIONS,
  unopened: DESCRIPTIONS,
  done: DESCRIPTIONS,
};
