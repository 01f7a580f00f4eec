import { z } from "zod";
import { GPU_BACKENDS } from "./dawn.ts";

/** Longest name or description taken from a driver. */
const MAX_TEXT = 512;

const text = z.string().transform((value) => value.slice(0, MAX_TEXT));

/** What names one adapter on a machine, and finds it again in another process. */
export const gpuDeviceSchema = z.object({ backend: z.enum(GPU_BACKENDS), name: z.string().max(MAX_TEXT) });
export type GpuDevice = z.infer<typeof gpuDeviceSchema>;

/** An adapter as the probe found it. */
const gpuAdapterSchema = gpuDeviceSchema.extend({
  vendor: text,
  architecture: text,
  description: text,
  /** Computes on the CPU; for tests, never chosen automatically. */
  software: z.boolean(),
  features: z.object({
    /** 16-bit floats in shaders: llama.cpp needs them. */
    shaderF16: z.boolean(),
    /** Without them llama.cpp has no flash attention and is far slower. */
    subgroups: z.boolean(),
    subgroupMatrices: z.boolean(),
    timestampQueries: z.boolean(),
  }),
  limits: z.object({
    /** Largest buffer in bytes. */
    maxBufferSize: z.number().min(0),
    /** Largest part of a buffer that a shader can see, in bytes. */
    maxStorageBufferBindingSize: z.number().min(0),
    /** Memory that the threads of a workgroup share, in bytes. */
    maxComputeWorkgroupStorageSize: z.number().min(0),
    maxComputeInvocationsPerWorkgroup: z.number().min(0),
  }),
  /** Bytes of memory that it has, where the operating system tells. */
  memory: z.int().min(0).optional(),
  /** Why llama.cpp cannot run on it, in words; absent when it can. */
  problem: text.optional(),
});
export type GpuAdapter = z.infer<typeof gpuAdapterSchema>;

/** What is known of an adapter whose driver gave no answer. */
const silentAdapterSchema = gpuDeviceSchema.extend({ problem: text });

/** Everything that the probe process says to the daemon. */
export const probeMessageSchema = z.discriminatedUnion("type", [
  /** Dawn or the drivers below it cannot be used at all. The last message. */
  z.object({ type: z.literal("failed"), reason: text }),
  /** All adapters there are; each is opened next, in this order. */
  z.object({ type: z.literal("listed"), adapters: z.array(gpuDeviceSchema).max(64) }),
  z.object({ type: z.literal("opened"), adapter: gpuAdapterSchema }),
  z.object({ type: z.literal("unopened"), adapter: silentAdapterSchema }),
  /** The last message, with the system's own choices, when it has any. */
  z.object({
    type: z.literal("done"),
    fastest: gpuDeviceSchema.optional(),
    thriftiest: gpuDeviceSchema.optional(),
  }),
]);
export type ProbeMessage = z.infer<typeof probeMessageSchema>;

/** An adapter of the report; one that could not even be opened has a name and a problem only. */
export type ReportedAdapter = GpuAdapter | z.infer<typeof silentAdapterSchema>;

/** What the machine has, as far as Dawn can see. */
export interface GpuReport {
  readonly adapters: readonly ReportedAdapter[];
  /** The system's choices where speed, or a battery, counts. */
  readonly fastest?: GpuDevice | undefined;
  readonly thriftiest?: GpuDevice | undefined;
  /** Why no adapter was found, and what to do; absent when there is one. */
  readonly problem?: string | undefined;
}

export function isSameDevice(a: GpuDevice, b: GpuDevice): boolean {
  return a.backend === b.backend && a.name === b.name;
}
