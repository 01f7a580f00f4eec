import { computed, signal as value } from "@preact/signals";
import { toError } from "../../errors/to-error.ts";
import { models, refresh, showProblem } from "../page-state.ts";
import { keepPulls, storedPulls } from "./stored-pulls.ts";
import { discardPull, pullModel } from "./models-api.ts";
import { SpeedMeter } from "./speed-meter.ts";

/** A download of a model from the hub. */
export interface Pull {
  /** What was asked for: an alias or a hub spec. */
  readonly name: string;
  /** elsewhere: another tab or program has begun it. */
  readonly state: "running" | "paused" | "failed" | "done" | "elsewhere";
  /** Bytes. */
  readonly downloaded: number;
  /** 0: not known yet. */
  readonly total: number;
  /** Bytes a second. */
  readonly speed?: number | undefined;
  /** Why nothing arrives at the moment. */
  readonly note?: string | undefined;
  /** Why it has failed. */
  readonly problem?: string | undefined;
  /** Name of the model, when it is done. */
  readonly model?: string | undefined;
}

/** For so long the daemon may list a download that this page has stopped. */
const CLOSING_MS = 2000;

const own = value<readonly Pull[]>([]);
const controllers = new Map<string, AbortController>();
/** When downloads of this page have stopped, by their names. */
const stoppedAt = new Map<string, number>();
let isLeaving = false;

/** All downloads, those of other tabs and programs as well. */
export const pulls = computed<readonly Pull[]>(() => {
  const running = new Set(own.value.filter(({ state }) => state === "running").map(({ name }) => name));
  const others = models.value
    .filter(({ progress }) => progress !== undefined)
    .filter(({ alias, from = "" }) => ![alias, from].some((name) => running.has(name) || isClosing(name)))
    .map(({ alias, from = alias, progress = 0, size_bytes: total = 0 }): Pull => {
      return { name: from, state: "elsewhere", downloaded: progress * total, total };
    });
  const elsewhere = new Set(others.map(({ name }) => name));
  return [...own.value.filter(({ name }) => !elsewhere.has(name)), ...others];
});

function isClosing(name: string): boolean {
  return performance.now() - (stoppedAt.get(name) ?? Number.NEGATIVE_INFINITY) < CLOSING_MS;
}

/** Begins a download, or goes on with it. */
export async function startPull(name: string): Promise<void> {
  if (controllers.has(name)) return;
  const controller = new AbortController();
  controllers.set(name, controller);
  const known = own.value.find((each) => each.name === name) ?? { downloaded: 0, total: 0 };
  set({ name, state: "running", downloaded: known.downloaded, total: known.total });
  const meter = new SpeedMeter();
  try {
    for await (const line of pullModel(name, controller.signal)) {
      if (line.status === "success") set({ ...find(name), state: "done", model: line.model });
      else if (line.status === "verifying") set({ ...find(name), note: "Checking what has arrived …" });
      else {
        const { downloaded_bytes: downloaded = 0, total_bytes: total = 0, note } = line;
        meter.add(downloaded);
        set({ name, state: "running", downloaded, total, note, speed: meter.speed });
      }
    }
    if (find(name).state === "running")
      throw new Error("The daemon has ended the download without a reason.");
  } catch (error) {
    if (isLeaving) return;
    const { downloaded, total } = find(name);
    const problem = controller.signal.aborted ? undefined : toError(error).message;
    set({ name, state: problem === undefined ? "paused" : "failed", downloaded, total, problem });
  } finally {
    controllers.delete(name);
    stoppedAt.set(name, performance.now());
    await refresh();
    setTimeout(() => void refresh(), CLOSING_MS);
  }
}

/** Stops a download; what has arrived stays on disk. */
export function pausePull(name: string): void {
  controllers.get(name)?.abort();
}

/** Stops a download and deletes what has arrived. */
export async function cancelPull(name: string): Promise<void> {
  try {
    pausePull(name);
    // One that has failed before its first byte may be of something that the hub does not have.
    if (find(name).downloaded > 0 || find(name).state !== "failed") await discardPull(name);
    forgetPull(name);
  } catch (error) {
    showProblem(error);
  }
}

/** Takes a download that has ended off the list. */
export function forgetPull(name: string): void {
  own.value = own.value.filter((each) => each.name !== name);
  keep();
}

function find(name: string): Pull {
  return own.value.find((each) => each.name === name) ?? { name, state: "running", downloaded: 0, total: 0 };
}

function set(pull: Pull): void {
  const isNew = !own.value.some(({ name }) => name === pull.name);
  const isChanged = find(pull.name).state !== pull.state;
  own.value = isNew ? [...own.value, pull] : own.value.map((each) => (each.name === pull.name ? pull : each));
  if (isNew || isChanged) keep();
}

function keep(): void {
  const unfinished = own.value.filter(({ state }) => state !== "done");
  const here = unfinished.filter(({ state }) => state === "running").map(({ name }) => name);
  keepPulls(
    unfinished.map(({ name, downloaded, total, problem }) => ({ name, downloaded, total, problem })),
    here,
  );
}

/** Goes on where the page was left. */
function restore(): void {
  const kept = storedPulls();
  own.value = kept.pulls.map((pull) => ({
    ...pull,
    state: pull.problem === undefined ? "paused" : "failed",
  }));
  for (const name of kept.here) void startPull(name);
}

addEventListener("pagehide", () => {
  keep();
  isLeaving = true;
});
addEventListener("pageshow", () => (isLeaving = false));
restore();
