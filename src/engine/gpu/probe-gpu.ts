import type { ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import { Watchdog } from "../../async/timers.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { platformPackages } from "../../launch/platform-packages.mjs";
import { ChildChannel } from "../channel/child-channel.ts";
import { describeExit, LastLines } from "../child-process.ts";
import { restrictedProcess, type SpawnEngine, spawnFailure, startRestricted } from "../launch.ts";
import { PROBE_MESSAGE_KINDS } from "./dawn.ts";
import { findGpuMemory } from "./find-gpu-memory.ts";
import {
  type GpuDevice,
  type GpuReport,
  isSameDevice,
  type ProbeMessage,
  probeMessageSchema,
  type ReportedAdapter,
} from "./gpu-report.ts";

/** Longest silence of a probe. After a boot, opening a driver takes long on slow disks and busy machines. */
const PROBE_DEADLINE_MS = 30_000;

/** Advice when a driver crashes the process. */
const ADVICE =
  "Update the driver. If you do not need it, remove it or exclude it (VK_DRIVER_FILES lists the manifests of the Vulkan drivers to open).";

/** Maximum messages of one probe; a healthy one sends far fewer. */
const MAX_MESSAGES = 256;

interface ProbeOptions {
  readonly spawn?: SpawnEngine;
  /** Dawn's entry file; undefined: not installed. */
  readonly dawnPath?: string | undefined;
  readonly deadlineMs?: number;
}

/**
 * Finds all GPUs, in a separate process. When a driver crashes or hangs, that process is ended, and the remaining
 * adapters are probed in another one. Never rejects.
 */
export async function probeGpu({
  spawn,
  deadlineMs = PROBE_DEADLINE_MS,
  ...options
}: ProbeOptions = {}): Promise<GpuReport> {
  const dawnPath = "dawnPath" in options ? options.dawnPath : findDawn();
  if (dawnPath === undefined) return { adapters: [], problem: missingDawn() };
  const broken: ReportedAdapter[] = [];
  for (;;) {
    const skipped = broken.map(({ backend, name }) => ({ backend, name }));
    const start = restrictedProcess("gpu/probe-process", {
      args: [dawnPath, JSON.stringify(skipped)],
      gpu: { dawnPath },
    });
    const round = await runProbe(() => startRestricted(PROCESS_NAME, start, spawn), skipped, deadlineMs);
    if (round.culprit === undefined) {
      const found = await Promise.all(round.report.adapters.map(withMemory));
      return { ...round.report, adapters: [...found, ...broken] };
    }
    broken.push(round.culprit);
  }
}

async function withMemory(adapter: ReportedAdapter): Promise<ReportedAdapter> {
  const memory = "features" in adapter ? await findGpuMemory(adapter) : undefined;
  return memory === undefined ? adapter : { ...adapter, memory };
}

interface ProbeRound {
  readonly report: GpuReport;
  /** The adapter on which the process crashed or hung. */
  readonly culprit?: ReportedAdapter;
}

/** Runs one probe process; one that cannot be started finds nothing. */
async function runProbe(
  launch: () => ChildProcess,
  skipped: readonly GpuDevice[],
  deadlineMs: number,
): Promise<ProbeRound> {
  try {
    return await readProbe(launch(), skipped, deadlineMs);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return { report: { adapters: [], problem: error.message } };
  }
}

/** @throws ServiceError when the process could not be started */
async function readProbe(
  child: ChildProcess,
  skipped: readonly GpuDevice[],
  deadlineMs: number,
): Promise<ProbeRound> {
  const output = LastLines.of(child);
  const messages: ProbeMessage[] = [];
  let isLate = false;
  const kill = (): void => void child.kill("SIGKILL");
  const watchdog = new Watchdog(deadlineMs, () => {
    isLate = true;
    kill();
  });
  const channel = new ChildChannel<ProbeMessage, never>({
    child,
    incoming: PROBE_MESSAGE_KINDS,
    outgoing: {},
    onMessage: (message) => {
      const parsed = probeMessageSchema.safeParse(message);
      if (!parsed.success || messages.length === MAX_MESSAGES) return kill();
      messages.push(parsed.data);
      watchdog.reset();
    },
    onProblem: kill,
  });
  const exitText = await new Promise<string>((resolve, reject) => {
    child.on("error", (error) => {
      if (child.pid === undefined) reject(spawnFailure(PROCESS_NAME, error));
      else resolve(`could not be reached: ${error.message}`);
    });
    child.on("close", (code, signal) => resolve(describeExit(code, signal)));
  }).finally(() => {
    channel.finish();
    watchdog.stop();
  });
  const lastLine = output.lastError ?? output.last;
  const line = lastLine === undefined ? "" : ` (${lastLine})`;
  const end = isLate ? `did not answer for ${Math.round(deadlineMs / 1000)} s` : `${exitText}${line}`;
  return summarize(messages, skipped, end);
}

function summarize(
  messages: readonly ProbeMessage[],
  skipped: readonly GpuDevice[],
  end: string,
): ProbeRound {
  const adapters: ReportedAdapter[] = [];
  let pending: GpuDevice[] = [];
  for (const message of messages) {
    switch (message.type) {
      case "listed":
        pending = message.adapters.filter((device) => !skipped.some((other) => isSameDevice(other, device)));
        break;
      case "opened":
      case "unopened":
        adapters.push(message.adapter);
        pending = pending.filter((device) => !isSameDevice(device, message.adapter));
        break;
      case "failed":
        return { report: { adapters, problem: message.reason } };
      case "done":
        return { report: { adapters, fastest: message.fastest } };
    }
  }
  const [culprit] = pending;
  // All adapters are known; only the system's preferences are missing.
  if (adapters.length > 0 && culprit === undefined) return { report: { adapters } };
  const problem = `The process that opened the driver ${end}. ${ADVICE}`;
  if (culprit === undefined) return { report: { adapters, problem } };
  return { report: { adapters }, culprit: { ...culprit, problem } };
}

/** Name of the process in errors. */
const PROCESS_NAME = "The process that looks for GPUs";

/** The entry file of the optional package with Dawn; undefined when none is installed. */
export function findDawn(): string | undefined {
  const packages = platformPackages(process.platform, process.arch);
  for (const name of packages ? [packages.dawn, packages.dawnSource] : []) {
    try {
      return fileURLToPath(import.meta.resolve(name));
    } catch {
      // not installed
    }
  }
  return undefined;
}

/** Explains what to do when {@link findDawn} finds nothing. */
function missingDawn(): string {
  const { platform, arch } = process;
  const name = platformPackages(platform, arch)?.dawn;
  return name === undefined
    ? `Dawn, through which Daybreak uses GPUs, is not available for ${platform} on ${arch}.`
    : `The optional package ${name}, through which Daybreak uses GPUs, is not installed; add it with: npm install ${name} (with -g if Daybreak is installed globally; in a clone: npm ci)`;
}
