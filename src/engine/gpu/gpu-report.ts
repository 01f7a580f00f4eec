import { z } from "zod";

/** Longest name or description from a driver. */
const MAX_TEXT = 512;

const text = z.string().transform((value) => value.slice(0, MAX_TEXT));

/** Identifies an adapter on a machine, also in another process. A browser does not report its backend. */
export const gpuDeviceSchema = z.object({
  backend: z.enum(["d3d12", "metal", "vulkan", "webgpu"]),
  name: z.string().max(MAX_TEXT),
});
export type GpuDevice = z.infer<typeof gpuDeviceSchema>;

const gpuAdapterSchema = gpuDeviceSchema.extend({
  vendor: text,
  architecture: text,
  description: text,
  /** Computes on the CPU; never chosen automatically. */
  software: z.boolean(),
  features: z.object({
    /** 16-bit floats in shaders, which llama.cpp needs. */
    shaderF16: z.boolean(),
    /** Without them, llama.cpp has no flash attention and is far slower. */
    subgroups: z.boolean(),
    subgroupMatrices: z.boolean(),
    timestampQueries: z.boolean(),
  }),
  limits: z.object({
    maxBufferSize: z.number().min(0),
    /** Largest part of a buffer that a shader can access, in bytes. */
    maxStorageBufferBindingSize: z.number().min(0),
    /** Memory that the threads of a workgroup share, in bytes. */
    maxComputeWorkgroupStorageSize: z.number().min(0),
    maxComputeInvocationsPerWorkgroup: z.number().min(0),
  }),
  /** Its memory in bytes, if the operating system reports it. */
  memory: z.int().min(0).optional(),
  /** Explains why llama.cpp cannot run on it; absent when it can. */
  problem: text.optional(),
});
export type GpuAdapter = z.infer<typeof gpuAdapterSchema>;

const unopenedAdapterSchema = gpuDeviceSchema.extend({ problem: text });

export const probeMessageSchema = z.discriminatedUnion("type", [
  /** Dawn or its drivers cannot be used at all. The last message. */
  z.object({ type: z.literal("failed"), reason: text }),
  /** All adapters; they are opened next, in this order. */
  z.object({ type: z.literal("listed"), adapters: z.array(gpuDeviceSchema).max(64) }),
  z.object({ type: z.literal("opened"), adapter: gpuAdapterSchema }),
  z.object({ type: z.literal("unopened"), adapter: unopenedAdapterSchema }),
  /** The last message, with the system's preferred adapters, if any. */
  z.object({
    type: z.literal("done"),
    fastest: gpuDeviceSchema.optional(),
  }),
]);
export type ProbeMessage = z.infer<typeof probeMessageSchema>;

/** An adapter in the report; one that could not be opened has only a name and a problem. */
export type ReportedAdapter = GpuAdapter | z.infer<typeof unopenedAdapterSchema>;

/** The adapters of the machine, according to Dawn. */
export interface GpuReport {
  readonly adapters: readonly ReportedAdapter[];
  /** The system's choices for high performance and for low power. */
  readonly fastest?: GpuDevice | undefined;
  /** Explains why no adapter was found, and what to do; absent when there is one. */
  readonly problem?: string | undefined;
}

export function isSameDevice(a: GpuDevice, b: GpuDevice): boolean {
  return a.backend === b.backend && a.name === b.name;
}
