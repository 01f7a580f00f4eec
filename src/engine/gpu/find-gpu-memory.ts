import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import os from "node:os";
import { MIB } from "../../json/quantities.ts";
import type { GpuAdapter } from "./gpu-report.ts";

/** Share of the machine's memory that an integrated GPU may use without harm to other programs. */
const UNIFIED_SHARE = 0.5;

/** Metal recommends two thirds of the memory, and three quarters on large machines. */
const APPLE_SHARE = 2 / 3;

/** With less dedicated memory than this, a GPU mainly uses the machine's. */
const MIN_DEDICATED_BYTES = 3 * 1024 ** 3;

const PCI_AMD = "0x1002";
const DRM_FOLDER = "/sys/class/drm";

/** Registry keys of the display drivers on Windows. */
const WINDOWS_DRIVERS =
  "HKLM:\\SYSTEM\\CurrentControlSet\\Control\\Class\\{4d36e968-e325-11ce-bfc1-08002be10318}\\0*";

/**
 * Returns an adapter's memory in bytes as reported by the operating system, because WebGPU does not report it; undefined
 * when unknown. If several cards have the same name, the smallest counts.
 */
export async function findGpuMemory(
  { vendor, name, description, software }: Omit<GpuAdapter, "features" | "limits">,
  sources: MemorySources = systemSources,
): Promise<number | undefined> {
  if (software) return undefined;
  const maker = vendor.toLowerCase();
  const matches = (other: string): boolean => `${name} ${description}`.includes(other);
  switch (sources.platform) {
    case "darwin":
      return maker === "apple" ? Math.floor(sources.machineMemory * APPLE_SHARE) : undefined;
    case "win32":
      return dedicatedOrShared(smallestMemory(await windowsCards(sources), matches), maker, sources);
    default:
      if (maker === "nvidia") return smallestMemory(await nvidiaCards(sources), matches);
      if (maker === "amd") return smallestMemory(await amdCards(sources), () => true);
      return maker === "intel" ? Math.floor(sources.machineMemory * UNIFIED_SHARE) : undefined;
  }
}

interface Card {
  readonly name: string;
  readonly bytes: number;
}

/** Memory of the smallest card with this name, or of the smallest card when none has it. */
function smallestMemory(cards: readonly Card[], matches: (name: string) => boolean): number | undefined {
  const named = cards.filter((card) => matches(card.name));
  const candidates = (named.length > 0 ? named : cards)
    .map(({ bytes }) => bytes)
    .filter((bytes) => bytes > 0);
  return candidates.length > 0 ? Math.min(...candidates) : undefined;
}

/** Dedicated memory, or, for an integrated GPU with little of it, a share of the machine's memory. */
function dedicatedOrShared(
  bytes: number | undefined,
  maker: string,
  { machineMemory }: MemorySources,
): number | undefined {
  const mayBeIntegrated = maker === "intel" || maker === "amd" || maker === "qualcomm";
  if (!mayBeIntegrated || (bytes !== undefined && bytes >= MIN_DEDICATED_BYTES)) return bytes;
  return Math.floor(machineMemory * UNIFIED_SHARE);
}

/** nvidia-smi, which comes with the driver, prints a line "NAME, MIB" for each card. */
async function nvidiaCards({ run }: MemorySources): Promise<Card[]> {
  const text = await run("nvidia-smi", ["--query-gpu=name,memory.total", "--format=csv,noheader,nounits"]);
  return (text ?? "").split("\n").flatMap((line) => {
    const [, name, mebibytes] = /^(.+),\s*(\d+)\s*$/.exec(line) ?? [];
    return name === undefined ? [] : [{ name, bytes: Number(mebibytes) * MIB }];
  });
}

/** Reads the files of AMD's Linux driver: the card's own memory, and the machine's memory that it may use. */
async function amdCards({ list, read }: MemorySources): Promise<Card[]> {
  const cards: Card[] = [];
  for (const card of await list(DRM_FOLDER)) {
    if (!/^card\d+$/.test(card)) continue;
    const folder = `${DRM_FOLDER}/${card}/device`;
    if ((await read(`${folder}/vendor`))?.trim() !== PCI_AMD) continue;
    const dedicated = Number(await read(`${folder}/mem_info_vram_total`)) || 0;
    const shared = Number(await read(`${folder}/mem_info_gtt_total`)) || 0;
    cards.push({ name: card, bytes: dedicated < MIN_DEDICATED_BYTES ? dedicated + shared : dedicated });
  }
  return cards;
}

async function windowsCards({ run }: MemorySources): Promise<Card[]> {
  const script = `Get-ItemProperty '${WINDOWS_DRIVERS}' -ErrorAction SilentlyContinue | ForEach-Object { "$($_.DriverDesc), $($_.'HardwareInformation.qwMemorySize')" }`;
  const text = await run("powershell.exe", ["-NoProfile", "-NonInteractive", "-Command", script]);
  return (text ?? "").split(/\r?\n/).flatMap((line) => {
    const [, name, bytes] = /^(.+), (\d+)$/.exec(line) ?? [];
    return name === undefined ? [] : [{ name, bytes: Number(bytes) }];
  });
}

/** Sources of the operating system for the memory of graphics cards. No method rejects. */
export interface MemorySources {
  readonly platform: NodeJS.Platform;
  /** The machine's memory in bytes. */
  readonly machineMemory: number;
  /** Reads a text file; undefined when it cannot be read. */
  readonly read: (file: string) => Promise<string | undefined>;
  /** Lists a folder; empty when it cannot be read. */
  readonly list: (folder: string) => Promise<readonly string[]>;
  /** Output of a program; undefined when it does not exist, fails, or takes too long. */
  readonly run: (program: string, args: readonly string[]) => Promise<string | undefined>;
}

/** Deadline of a program: PowerShell takes seconds to start on a slow disk. */
const PROGRAM_DEADLINE_MS = 8000;

export const systemSources: MemorySources = {
  platform: process.platform,
  machineMemory: os.totalmem(),
  read: async (file) => {
    try {
      return await readFile(file, "utf8");
    } catch {
      return undefined; // does not exist with every driver and kernel
    }
  },
  list: async (folder) => {
    try {
      return await readdir(folder);
    } catch {
      return [];
    }
  },
  run: async (program, args) =>
    await new Promise((resolve) => {
      const options = { timeout: PROGRAM_DEADLINE_MS, windowsHide: true } as const;
      try {
        execFile(program, args, options, (error, stdout) => resolve(error ? undefined : stdout));
      } catch {
        resolve(undefined); // the process cannot be started
      }
    }),
};
