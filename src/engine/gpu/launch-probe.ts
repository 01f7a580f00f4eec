import type { ChildProcess } from "node:child_process";
import path from "node:path";
import {
  driverEnvironment,
  gpuPermissions,
  MINIMAL_ENVIRONMENT,
  type SpawnEngine,
  spawnFailure,
} from "../launch.ts";
import type { ServiceError } from "../../errors/service-error.ts";
import type { GpuDevice } from "./gpu-report.ts";

interface LaunchProbeOptions {
  readonly spawn: SpawnEngine;
  readonly dawnPath: string;
  /** Adapters that must not be opened. */
  readonly skipped: readonly GpuDevice[];
}

/** The error for a probe process that could not be started. */
export function probeFailure(cause: unknown): ServiceError {
  return spawnFailure("The process that looks for GPUs", cause);
}

/**
 * Starts a probe process, which may load Dawn and read its own code, and nothing else that Node can forbid.
 * @throws ServiceError resources_exhausted or model_load_failed when the process cannot be started
 */
export function launchProbe({ spawn, dawnPath, skipped }: LaunchProbeOptions): ChildProcess {
  const entry = path.join(import.meta.dirname, `probe-process${path.extname(import.meta.filename)}`);
  const args = [
    "--permission",
    ...gpuPermissions(dawnPath),
    `--allow-fs-read=${path.join(import.meta.dirname, path.sep)}`,
    `--allow-fs-read=${path.join(import.meta.dirname, "..", "channel", path.sep)}`,
    `--allow-fs-read=${path.join(import.meta.dirname, "..", "..", "json", path.sep)}`,
    "--disable-warning=ExperimentalWarning",
    "--disable-warning=SecurityWarning",
    entry,
    dawnPath,
    JSON.stringify(skipped),
  ];
  try {
    return spawn(process.execPath, args, {
      env: { ...driverEnvironment(process.env), ...MINIMAL_ENVIRONMENT },
      cwd: path.parse(entry).root,
    });
  } catch (error) {
    // Some failures are thrown, others are emitted by the child.
    throw probeFailure(error);
  }
}
