import { existsSync, statfsSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { benchModelBytes, benchModelFile, type Quantization, type ShapeName } from "../cpu/bench-models.ts";

/** node-llama-cpp with all of its prebuilt binaries. */
const NATIVE_BYTES = 1e9;

export interface BenchModelName {
  readonly shape: ShapeName;
  readonly quantization: Quantization;
}

interface FreeMemory {
  /** Bytes that will be written to disk. */
  readonly diskBytes: number;
  /** Bytes of memory that the largest model takes, on the CPU. */
  readonly memoryBytes: number;
  /** Explains which memory or disk space is missing and what to do; undefined when everything fits. */
  readonly problem?: string;
}

/** Computes the memory and disk space that measuring these models takes, before anything is made. */
export function memoryForModels(
  folder: string,
  models: readonly BenchModelName[],
  installs: boolean,
): FreeMemory {
  const sizes = models.map(({ shape, quantization }) => ({
    bytes: benchModelBytes(shape, quantization),
    isThere: existsSync(benchModelFile(folder, shape, quantization)),
  }));
  const missing = sizes.filter(({ isThere }) => !isThere).reduce((sum, { bytes }) => sum + bytes, 0);
  const diskBytes = missing + (installs ? NATIVE_BYTES : 0);
  const largest = Math.max(0, ...sizes.map(({ bytes }) => bytes));
  const memoryBytes = largest * 1.1 + 0.5e9;
  const { bavail, bsize } = statfsSync(folder);
  const problem =
    diskBytes > bavail * bsize
      ? `${path.resolve(folder)} has ${gigabytes(bavail * bsize)} free; choose another folder with --cache, or fewer models with --shapes and --quantizations`
      : memoryBytes > os.totalmem()
        ? `this machine has ${gigabytes(os.totalmem())} of memory; choose smaller models with --shapes and --quantizations`
        : undefined;
  return { diskBytes, memoryBytes, ...(problem !== undefined && { problem }) };
}

export function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}
