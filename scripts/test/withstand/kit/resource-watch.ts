import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { z } from "zod";
import { enginePids } from "../../../../test/support/daemon-children.ts";
import type { Findings } from "./findings.ts";

const SAMPLE_MS = 1000;
/** Fewer samples than this show no trend. */
const FEWEST_SAMPLES = 12;
/** First samples, the smallest of which the last one is compared with. */
const FIRST_SAMPLES = 4;
/** When nothing is done any more, engines that are not needed end in less. */
const QUIET_MS = 5 * SAMPLE_MS;
const MB = 1e6;
/** In the folder that is watched. */
const REPORT_FILE = "resources.ndjson";

/**
 * What may be held, and by how much it may grow over the last half of a run: the noise of caches, connections that
 * come and go, and of the allocator. A leak grows with the time and passes it in a long run.
 */
const KINDS = {
  "daemon memory (MB)": 40,
  "engine memory (MB)": 60,
  "daemon heap (MB)": 12,
  "daemon descriptors": 12,
  "daemon sockets": 12,
  "daemon timers": 12,
  engines: 2,
  files: 6,
} as const;

type Kind = keyof typeof KINDS;
type Sample = Readonly<Record<Kind, number | undefined>>;

const REPORT = z.object({ heap: z.number(), timers: z.number(), sockets: z.number() });

/** Looks once a second at what a daemon and its engines hold; what cannot be read on this system is left out. */
export class ResourceWatch {
  readonly #pid: number;
  readonly #folder: string;
  readonly #samples: Sample[] = [];
  readonly #timer: NodeJS.Timeout;

  /** @param folder of the daemon's cache and temporary files, and of its reports */
  constructor(pid: number, folder: string) {
    this.#pid = pid;
    this.#folder = folder;
    this.#timer = setInterval(() => this.#samples.push(this.#sample()), SAMPLE_MS);
  }

  /** The environment that makes a daemon report its heap and timers. */
  static environment(folder: string): Record<string, string> {
    const preload = pathToFileURL(path.join(import.meta.dirname, "report-resources.mjs")).href;
    return {
      NODE_OPTIONS: `--import=${preload}`,
      RESOURCE_REPORT: path.join(folder, REPORT_FILE),
      RESOURCE_REPORT_MS: String(SAMPLE_MS),
      TMPDIR: folder,
    };
  }

  /** Megabytes of the daemon's heap without garbage, as it has last reported. */
  get heap(): number {
    return (lastReport(path.join(this.#folder, REPORT_FILE))?.heap ?? Number.NaN) / MB;
  }

  /** Ends the watch once it has seen what is held when nothing is done, adds a finding for each kind that has grown too much, and says how each has gone. */
  async stop(findings: Findings): Promise<Record<string, string>> {
    const busy = [...this.#samples];
    await sleep(QUIET_MS);
    clearInterval(this.#timer);
    const quiet = [...this.#samples.slice(busy.length), this.#sample()];
    const figures: Record<string, string> = {};
    for (const [kind, most] of Object.entries(KINDS)) {
      // The keys of this object are its kinds.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      const valuesOf = (sample: Sample): number | readonly number[] => sample[kind as Kind] ?? [];
      const values = busy.flatMap(valuesOf);
      if (values.length === 0) continue;
      const lastHalf = values.slice(Math.floor(values.length / 2));
      const growth = lastHalf.length < FEWEST_SAMPLES ? 0 : growthOf(lastHalf, quiet.flatMap(valuesOf));
      const text = `${round(values[0])} → ${round(values.at(-1))}, at most ${round(Math.max(...values))}, last half ${growth < 0 ? "" : "+"}${round(growth)}`;
      figures[kind] = text;
      if (growth > most) findings.add("a leak", `${kind}: ${text}; allowed +${most}`);
    }
    return figures;
  }

  #sample(): Sample {
    const engines = enginePids(this.#pid);
    const { descriptors, sockets } = openFiles(this.#pid);
    const report = lastReport(path.join(this.#folder, REPORT_FILE));
    return {
      "daemon memory (MB)": residentMemory(this.#pid),
      "engine memory (MB)": engines.reduce((sum, pid) => sum + (residentMemory(pid) ?? 0), 0),
      "daemon heap (MB)": report && report.heap / MB,
      "daemon descriptors": descriptors,
      "daemon sockets": report?.sockets ?? sockets,
      "daemon timers": report?.timers,
      engines: engines.length,
      files: filesIn(this.#folder),
    };
  }
}

/**
 * By how much a value grows over all samples, as far as that is still held when nothing is done any more: on a slow machine,
 * an engine that a request has loaded may live through the whole end of a run, and is no leak.
 */
function growthOf(values: readonly number[], quiet: readonly number[]): number {
  const trend = slope(values) * values.length;
  return Math.min(trend, Math.min(...quiet) - Math.min(...values.slice(0, FIRST_SAMPLES)));
}

/** By how much a value grows from one sample to the next, by least squares. */
function slope(values: readonly number[]): number {
  const middle = (values.length - 1) / 2;
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  let above = 0;
  let below = 0;
  for (const [index, value] of values.entries()) {
    above += (index - middle) * (value - mean);
    below += (index - middle) ** 2;
  }
  return below === 0 ? 0 : above / below;
}

function residentMemory(pid: number): number | undefined {
  try {
    const kilobytes = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    return kilobytes === undefined ? undefined : (Number(kilobytes) * 1024) / MB;
  } catch {
    return undefined;
  }
}

function openFiles(pid: number): { descriptors: number | undefined; sockets: number | undefined } {
  try {
    const links = readdirSync(`/proc/${pid}/fd`).map((name) => readLink(`/proc/${pid}/fd/${name}`));
    return { descriptors: links.length, sockets: links.filter((link) => link.startsWith("socket:")).length };
  } catch {
    return { descriptors: undefined, sockets: undefined };
  }
}

function filesIn(folder: string): number | undefined {
  try {
    return readdirSync(folder, { recursive: true }).length;
  } catch {
    // A folder in it was removed while it was read.
    return undefined;
  }
}

function readLink(file: string): string {
  try {
    return readlinkSync(file);
  } catch {
    // It was closed since it was listed.
    return "";
  }
}

function lastReport(file: string): z.infer<typeof REPORT> | undefined {
  if (!existsSync(file)) return undefined;
  const lines = readFileSync(file, "utf8").trimEnd().split("\n");
  const parsed = REPORT.safeParse(JSON.parse(lines.at(-1) || "null"));
  return parsed.data;
}

function round(value: number | undefined): string {
  return value === undefined ? "?" : String(Math.round(value * 10) / 10);
}
