import { z } from "zod";
import { readStored } from "../browser.ts";

/** Unfinished downloads, stored in the browser so that they survive a reload of the page. */

const storedSchema = z.array(
  z.object({
    name: z.string(),
    downloaded: z.number(),
    total: z.number(),
    /** Reason of a failure. */
    problem: z.string().optional(),
  }),
);
type StoredPull = z.output<typeof storedSchema>[number];

/** Key in localStorage: unfinished downloads of all tabs. */
const UNFINISHED_KEY = "daybreak-pulls";
/** Key in sessionStorage: downloads that run in this tab and continue after a reload. */
const RUNNING_KEY = "daybreak-pulls-here";

export function storePulls(pulls: readonly StoredPull[], running: readonly string[]): void {
  try {
    localStorage.setItem(UNFINISHED_KEY, JSON.stringify(pulls));
    sessionStorage.setItem(RUNNING_KEY, JSON.stringify(running));
  } catch {
    // The browser stores nothing. The daemon still has the partial files.
  }
}

export function storedPulls(): readonly StoredPull[] {
  return readStored(() => localStorage, UNFINISHED_KEY, storedSchema, []);
}

/** Returns the names of the downloads that ran in this tab before a reload. */
export function runningPulls(): readonly string[] {
  return readStored(() => sessionStorage, RUNNING_KEY, z.array(z.string()), []);
}

/** Long enough for a steady number, short enough to follow changes of the network. */
const MAX_WINDOW_MS = 5000;
/** A shorter measurement would be too inaccurate. */
const MIN_WINDOW_MS = 400;

/** Measures the speed of a download over the last seconds. */
export class DownloadSpeed {
  readonly #now: () => number;
  #samples: readonly { readonly at: number; readonly bytes: number }[] = [];

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** @param bytes total number of bytes received so far */
  add(bytes: number): void {
    const at = this.#now();
    this.#samples = [...this.#samples.filter((each) => at - each.at <= MAX_WINDOW_MS), { at, bytes }];
  }

  /** Bytes per second; undefined at first. */
  get speed(): number | undefined {
    const [first] = this.#samples;
    const last = this.#samples.at(-1);
    if (!first || !last || last.at - first.at < MIN_WINDOW_MS) return undefined;
    return ((last.bytes - first.bytes) / (last.at - first.at)) * 1000;
  }
}
