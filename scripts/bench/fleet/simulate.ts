import { pino } from "pino";
import { Dispatch } from "../../../src/fleet/dispatch.ts";
import { FleetInference } from "../../../src/fleet/fleet-inference.ts";
import { Presence } from "../../../src/fleet/presence.ts";
import { RemoteCalls } from "../../../src/fleet/remote-calls.ts";
import { ServedCalls } from "../../../src/fleet/served-calls.ts";
import type { Inference } from "../../../src/inference/inference.ts";
import { compileGrammar } from "../../../src/grammar/grammar-work.ts";
import { FakeMetrics } from "../../../test/support/fake-metrics.ts";
import { FakeModels } from "../../../test/support/fake-models.ts";
import { heartbeat, memberInfo, memberModel, FleetWire } from "../../../test/support/fleet-wire.ts";
import { median } from "../daemon/statistics.ts";
import { SLOTS, TimedInference, TOKEN_MS, TOKENS } from "./timed-inference.ts";

const logger = pino({ level: "silent" });
const NO_OBSERVER = { report: () => undefined, end: () => undefined, fork: () => NO_OBSERVER };
const HEARTBEAT_MS = 500;

interface Simulated {
  readonly local: TimedInference;
  readonly close: () => void;
  /** Inference of the entrance; other machines have none. */
  readonly inference?: Inference;
}

/** Has machines that only keep time answer many requests at once; returns what was measured, in lines. */
export async function simulate(machines: number, requests: number, entrances: number): Promise<string> {
  const wire = new FleetWire();
  const all = Array.from({ length: machines }, (_, index) =>
    machine(wire, index, index < entrances, requests),
  );
  await new Promise((resolve) => setTimeout(resolve, 3 * HEARTBEAT_MS));
  const doors = all.flatMap(({ inference }) => (inference ? [inference] : []));
  const before = wire.messages;
  const startedAt = performance.now();
  const answers = await Promise.all(
    Array.from({ length: requests }, async (_, index) => {
      const door = index % doors.length;
      const tokens = await answer(doors[door], index);
      return { door, tokens, ms: performance.now() - startedAt };
    }),
  );
  const seconds = (performance.now() - startedAt) / 1000;
  const messages = wire.messages - before - (seconds * 1000 * machines) / HEARTBEAT_MS;
  for (const { close } of all) close();
  const given = all.map(({ local }) => local.answers);
  return report(answers, { messages, given, machines, doors: doors.length });
}

function machine(wire: FleetWire, index: number, isEntrance: boolean, queueSize: number): Simulated {
  const connection = wire.connect();
  const local = new TimedInference();
  const name = `machine-${index}`;
  const own = memberInfo(name, { models: [{ ...memberModel("timed"), isDefault: false }] });
  const self = {
    info: own,
    get heartbeat() {
      const running = local.loads[0]?.running ?? 0;
      const loaded = { alias: "timed", slots: SLOTS, running, waiting: 0, contextSize: 1, gpuLayers: 0 };
      return heartbeat(name, { loaded: [loaded] });
    },
    model: () => own.models[0],
  };
  const served = new ServedCalls({
    connection,
    selfId: own.id,
    inference: () => local,
    followRequest: async (_head, next) => {
      await next();
      return () => ({});
    },
    refusal: () => undefined,
  });
  // Two hundred machines that all read all heartbeats would be two hundred times the work of one.
  if (!isEntrance) {
    connection.listen(connection.subject("card", own.id), (_data, _subject, reply) =>
      reply?.(new TextEncoder().encode(JSON.stringify(own))),
    );
    const tell = (): void =>
      void connection.publish(
        connection.subject("presence"),
        new TextEncoder().encode(JSON.stringify(self.heartbeat)),
      );
    const timer = setInterval(tell, HEARTBEAT_MS);
    return { local, close: () => (clearInterval(timer), served.close()) };
  }
  const presence = new Presence({ connection, logger, self });
  const calls = new RemoteCalls(connection, own.id);
  const dispatch = new Dispatch({
    self,
    presence,
    models: new FakeModels(),
    queueSize,
    onWaiting: () => undefined,
  });
  local.onEnd = () => dispatch.wake();
  const inference = new FleetInference({
    local,
    dispatch,
    calls,
    metrics: new FakeMetrics(),
    followWork: () => NO_OBSERVER,
    config: { engine: { request_timeout: Number.POSITIVE_INFINITY } },
    logger,
    isLowPriority: () => false,
    makeOffThread: async (work) => compileGrammar(work),
  });
  const close = (): void => {
    for (const part of [presence, dispatch, calls, served]) part.close();
  };
  return { local, inference, close };
}

async function answer(inference: Inference | undefined, index: number): Promise<number> {
  const stream = await inference?.generate(
    {
      endpoint: "generate",
      model: "timed",
      input: { kind: "prompt", prompt: `request ${index}` },
      sampling: {},
      format: { type: "text" },
      defaults: { sampling: {} },
    },
    new AbortController().signal,
  );
  let tokens = 0;
  for await (const event of stream?.events ?? []) if (event.type === "text-delta") tokens += 1;
  return tokens;
}

function report(
  answers: readonly { door: number; tokens: number; ms: number }[],
  fleet: { messages: number; given: readonly number[]; machines: number; doors: number },
): string {
  const capacity = fleet.machines * SLOTS;
  const sorted = answers.map(({ ms }) => ms).toSorted((a, b) => a - b);
  // The best that one queue before all slots could do.
  const added = sorted.map((ms, rank) => ms - Math.ceil((rank + 1) / capacity) * TOKENS * TOKEN_MS);
  const ranked = added.toSorted((a, b) => a - b);
  const p99 = ranked[Math.ceil(ranked.length * 0.99) - 1] ?? 0;
  const byDoor = [...Map.groupBy(answers, ({ door }) => door).values()].map((each) =>
    median(each.map(({ ms }) => ms)),
  );
  const tokens = answers.reduce((sum, each) => sum + each.tokens, 0);
  const complete = answers.filter((each) => each.tokens === TOKENS).length;
  return [
    `${complete} of ${answers.length} requests answered by ${fleet.machines} machines with ${SLOTS} slots, at ${fleet.doors} entrances.`,
    `Added latency over one perfect queue: median ${median(added).toFixed(0)} ms, p99 ${p99.toFixed(0)} ms.`,
    `All done after ${((sorted.at(-1) ?? 0) / 1000).toFixed(2)} s; at best ${((Math.ceil(answers.length / capacity) * TOKENS * TOKEN_MS) / 1000).toFixed(2)} s.`,
    `Fairness (Jain) of median latency between entrances: ${jain(byDoor).toFixed(3)}; of answers between machines: ${jain(fleet.given).toFixed(3)}.`,
    `Messages per token, without beats: ${(fleet.messages / tokens).toFixed(2)}.`,
  ].join("\n");
}

/** 1: all have the same; 1/n: one has all. */
function jain(values: readonly number[]): number {
  const sum = values.reduce((total, value) => total + value, 0);
  const squares = values.reduce((total, value) => total + value ** 2, 0);
  return squares === 0 ? 1 : sum ** 2 / (values.length * squares);
}
