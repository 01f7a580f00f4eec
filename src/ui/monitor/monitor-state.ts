import { computed, signal as createSignal } from "@preact/signals";
import { pause } from "../../async/promises.ts";
import type { ActivityReport } from "../../api/wire/activity.ts";
import { toError } from "../../errors/service-error.ts";
import { lineChunks } from "../../json/json-values.ts";
import { request } from "../daemon-api.ts";
import {
  type Engine,
  type Fleet,
  readActivity,
  readEngines,
  readFleet,
  readMetrics,
  readStatus,
  type Status,
} from "./monitor-api.ts";
import { type FirstToken, type Sample, SAMPLE_INTERVAL_MS, SampleHistory } from "./samples.ts";

export type PastRequest = ActivityReport["requests"][number];
export type PastEvent = ActivityReport["events"][number];
export type PastLog = ActivityReport["logs"][number];

/** Limits of the lists, the same as in the daemon, so that memory does not grow while the page is open. */
const MAX_REQUESTS = 500;
const MAX_EVENTS = 200;
const MAX_LOGS = 800;
/**
 * Engines, machine and fleet are read only with every third sample, since each request adds a line to the daemon's log.
 */
const SAMPLES_PER_STATE = 3;

/** State of the view, read by its components. All lists are sorted oldest first. */
export const samples = createSignal<readonly Sample[]>([]);
export const engines = createSignal<readonly Engine[]>([]);
export const status = createSignal<Status | undefined>(undefined);
export const fleet = createSignal<Fleet | undefined>(undefined);
/** Speed of each model's last answer, in tokens per second. */
export const speeds = createSignal<ReadonlyMap<string, number>>(new Map());
export const gpuFailures = createSignal({ losses: 0, abandonments: 0 });
export const requests = createSignal<readonly PastRequest[]>([]);
export const events = createSignal<readonly PastEvent[]>([]);
export const logs = createSignal<readonly PastLog[]>([]);
/** Error of the last poll; empty if it succeeded. */
export const connectionProblem = createSignal("");
/** True while the event stream is open. */
export const isLive = createSignal(false);

export const firstTokens = computed((): readonly FirstToken[] =>
  requests.value.flatMap(({ time, first_token_ms: ms }) =>
    ms === undefined ? [] : [{ at: (Date.parse(time) + ms) / 1000, seconds: ms / 1000 }],
  ),
);

const history = new SampleHistory();
/** Number of the last known request, event or log record. */
let lastNumber = 0;
/** Aborts running requests; undefined while the view is stopped. */
let watching: AbortController | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;

/** Polls the daemon while the page is visible. Returns a function that stops it. */
export function watchDaemon(): () => void {
  document.addEventListener("visibilitychange", startOrStop);
  startOrStop();
  return () => {
    document.removeEventListener("visibilitychange", startOrStop);
    stop();
  };
}

function startOrStop(): void {
  if (document.hidden) stop();
  else start();
}

function start(): void {
  if (watching) return;
  const controller = new AbortController();
  watching = controller;
  void listen(controller.signal);
  void sample(controller.signal, 0);
}

function stop(): void {
  watching?.abort();
  watching = undefined;
  isLive.value = false;
  clearTimeout(timer);
}

async function sample(signal: AbortSignal, round: number): Promise<void> {
  try {
    const [metrics, activity] = await Promise.all([
      readMetrics(signal),
      readActivity(lastNumber, signal),
      round % SAMPLES_PER_STATE === 0 && readState(signal),
    ]);
    history.add(Date.now() / 1000, metrics);
    samples.value = history.samples;
    speeds.value = metrics.byLabel("service_tokens_per_second", "model");
    gpuFailures.value = {
      losses: metrics.value("service_gpu_losses_total"),
      abandonments: metrics.value("service_gpu_abandonments_total"),
    };
    addActivity(activity);
    connectionProblem.value = "";
  } catch (error) {
    if (!signal.aborted) connectionProblem.value = toError(error).message;
  }
  if (!signal.aborted) timer = setTimeout(() => void sample(signal, round + 1), SAMPLE_INTERVAL_MS);
}

async function readState(signal: AbortSignal): Promise<void> {
  const [list, read, machines] = await Promise.all([
    readEngines(signal),
    readStatus(signal),
    readFleet(signal),
  ]);
  engines.value = list;
  status.value = read;
  fleet.value = machines;
}

/** Reads the newest activity without waiting for the next sample. */
async function catchUp(signal: AbortSignal): Promise<void> {
  try {
    const [activity] = await Promise.all([readActivity(lastNumber, signal), readState(signal)]);
    addActivity(activity);
  } catch {
    // The next sample shows the error.
  }
}

/** Appends new activity. Concurrent polls may return the same entries, which are skipped. */
function addActivity(activity: ActivityReport): void {
  if (activity.next <= lastNumber) return;
  const fresh = <Entry extends { readonly number: number }>(list: readonly Entry[]): readonly Entry[] =>
    list.filter(({ number }) => number > lastNumber);
  const more = {
    requests: fresh(activity.requests),
    events: fresh(activity.events),
    logs: fresh(activity.logs),
  };
  if (more.requests.length > 0) requests.value = [...requests.value, ...more.requests].slice(-MAX_REQUESTS);
  if (more.events.length > 0) events.value = [...events.value, ...more.events].slice(-MAX_EVENTS);
  if (more.logs.length > 0) logs.value = [...logs.value, ...more.logs].slice(-MAX_LOGS);
  lastNumber = activity.next;
}

const RETRY_MS = 3000;

/** Listens to GET /api/events of the chosen daemon. Reconnects when the stream breaks, until the signal aborts. */
async function listen(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    // The poll reports an unreachable daemon.
    await readEvents(signal).catch(() => undefined);
    if (signal.aborted) return;
    isLive.value = false;
    await pause(RETRY_MS);
  }
}

/** Reads one stream with fetch(), since an EventSource cannot send the API key. */
async function readEvents(signal: AbortSignal): Promise<void> {
  const answer = await request("/api/events", { signal, headers: { accept: "text/event-stream" } });
  isLive.value = true;
  // Events may have happened before the connection was open.
  void catchUp(signal);
  for await (const lines of lineChunks(answer.body)) {
    // Heartbeats are comments.
    if (lines.some((line) => line.startsWith("event:"))) void catchUp(signal);
  }
}
