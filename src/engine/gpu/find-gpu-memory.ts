import type { GpuAdapter } from "./gpu-report.ts";
import { type MemorySources, systemSources } from "./memory-sources.ts";

/** An integrated GPU computes in the machine's memory; what it may take of it without harm to the rest. */
const UNIFIED_SHARE = 0.5;

/** What Metal recommends on Apple's machines is two thirds, and three quarters of large ones. */
const APPLE_SHARE = 2 / 3;

/** Less dedicated memory than this is a window into the machine's. */
const LEAST_DEDICATED_BYTES = 3 * 1024 ** 3;

const MIB = 1024 * 1024;
const PCI_AMD = "0x1002";
const DRM_FOLDER = "/sys/class/drm";

/** Where Windows keeps what the drivers say of themselves. */
const WINDOWS_DRIVERS =
  "HKLM:\\SYSTEM\\CurrentControlSet\\Control\\Class\\{4d36e968-e325-11ce-bfc1-08002be10318}\\0*";

/**
 * Bytes of memory that an adapter has, as far as the operating system tells; WebGPU does not. Undefined when nobody
 * knows. Of several cards that cannot be told apart the smallest counts.
 */
export async function findGpuMemory(
  { vendor, name, description, software }: Omit<GpuAdapter, "features" | "limits">,
  sources: MemorySources = systemSources,
): Promise<number | undefined> {
  if (software) return undefined;
  const maker = vendor.toLowerCase();
  const isCalled = (other: string): boolean => `${name} ${description}`.includes(other);
  switch (sources.platform) {
    case "darwin":
      return maker === "apple" ? Math.floor(sources.machineMemory * APPLE_SHARE) : undefined;
    case "win32":
      return unlessShared(smallest(await windowsCards(sources), isCalled), maker, sources);
    default:
      if (maker === "nvidia") return smallest(await nvidiaCards(sources), isCalled);
      if (maker === "amd") return smallest(await amdCards(sources), () => true);
      return maker === "intel" ? Math.floor(sources.machineMemory * UNIFIED_SHARE) : undefined;
  }
}

interface Card {
  readonly name: string;
  readonly bytes: number;
}

/** The smallest of the cards with this name; of all, when none goes by it. */
function smallest(cards: readonly Card[], isCalled: (name: string) => boolean): number | undefined {
  const named = cards.filter((card) => isCalled(card.name));
  const candidates = (named.length > 0 ? named : cards)
    .map(({ bytes }) => bytes)
    .filter((bytes) => bytes > 0);
  return candidates.length > 0 ? Math.min(...candidates) : undefined;
}

/** A chip with little dedicated memory uses the machine's. */
function unlessShared(
  bytes: number | undefined,
  maker: string,
  { machineMemory }: MemorySources,
): number | undefined {
  const isChip = maker === "intel" || maker === "amd" || maker === "qualcomm";
  if (!isChip || (bytes !== undefined && bytes >= LEAST_DEDICATED_BYTES)) return bytes;
  return Math.floor(machineMemory * UNIFIED_SHARE);
}

/** NVIDIA's driver tells it through the program that comes with it: a line for each card, "NAME, MIB". */
async function nvidiaCards({ run }: MemorySources): Promise<Card[]> {
  const text = await run("nvidia-smi", ["--query-gpu=name,memory.total", "--format=csv,noheader,nounits"]);
  return (text ?? "").split("\n").flatMap((line) => {
    const [, name, mebibytes] = /^(.+),\s*(\d+)\s*$/.exec(line) ?? [];
    return name === undefined ? [] : [{ name, bytes: Number(mebibytes) * MIB }];
  });
}

/** AMD's Linux driver tells it in files: of the card itself, and of the machine's memory that it may use. */
async function amdCards({ list, read }: MemorySources): Promise<Card[]> {
  const cards: Card[] = [];
  for (const card of await list(DRM_FOLDER)) {
    if (!/^card\d+$/.test(card)) continue;
    const folder = `${DRM_FOLDER}/${card}/device`;
    if ((await read(`${folder}/vendor`))?.trim() !== PCI_AMD) continue;
    const own = Number(await read(`${folder}/mem_info_vram_total`)) || 0;
    const shared = Number(await read(`${folder}/mem_info_gtt_total`)) || 0;
    cards.push({ name: card, bytes: own < LEAST_DEDICATED_BYTES ? own + shared : own });
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
