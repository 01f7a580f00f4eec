import { pino } from "pino";
import { afterEach, expect, test, vi } from "vitest";
import { configSchema } from "../../../src/config/schema.ts";
import { ServiceError } from "../../../src/errors/service-error.ts";
import { Dispatch } from "../../../src/fleet/dispatch.ts";
import { FleetInference } from "../../../src/fleet/fleet-inference.ts";
import { RemoteCalls } from "../../../src/fleet/remote-calls.ts";
import { ServedCalls } from "../../../src/fleet/served-calls.ts";
import { eventsOf } from "../../support/fake-engine.ts";
import { heartbeat, memberInfo, memberModel, FleetWire, idOf } from "../../support/fleet-wire.ts";
import { endless, never, REQUEST, setup } from "../inference/inference-setup.ts";

const closed: { close(): void }[] = [];

afterEach(() => {
  for (const each of closed.splice(0)) each.close();
});

/** Fleet of two machines, seen from the one where requests arrive; all slots of the other one are in use or free. */
async function entrance(options: {
  readonly wire: FleetWire;
  readonly isLowPriority: () => boolean;
  /** True if the other machine has the free slot. */
  readonly isFar: boolean;
}) {
  const { isLowPriority, isFar } = options;
  const { engine, models, metrics, inference: local } = setup({ slots: 1, isBackground: isLowPriority });
  const [model] = await models.list();
  const alias = model?.alias ?? "";
  const described = { models: [memberModel(alias)] };
  const load = { alias, slots: 1, running: 1, waiting: 0, contextSize: 512, gpuLayers: 0 };
  const loaded = [{ ...load, running: isFar ? 0 : 1 }];
  const other = { info: memberInfo("other", described), heartbeat: heartbeat("other", { loaded }) };
  const dispatch = new Dispatch({
    self: {
      info: memberInfo("self", described),
      // As in its heartbeat.
      get heartbeat() {
        const running = local.loads.reduce((sum, each) => sum + each.running - each.lowPriority, 0);
        return heartbeat("self", { loaded: isFar ? [] : [{ ...load, running }] });
      },
      model: () => memberModel(alias),
    },
    presence: {
      isConnected: true,
      lostMs: 0,
      machines: [other],
      get: () => other,
      onChange: () => () => undefined,
      unreachableError: () => undefined,
      missingModelError: () => undefined,
    },
    models,
    queueSize: 8,
    onWaiting: () => undefined,
  });
  const calls = new RemoteCalls(options.wire.connect(), idOf("self"));
  closed.push(dispatch, calls);
  const inference = new FleetInference({
    local,
    dispatch,
    calls,
    metrics,
    followWork: () => ({ report: () => undefined, end: () => undefined, fork: () => expect.fail() }),
    config: configSchema.parse({}),
    logger: pino({ level: "silent" }),
    isLowPriority,
    makeOffThread: () => expect.fail(),
  });
  return { inference, engine, metrics, dispatch, alias };
}

/** The other machine, which serves calls until it leaves. */
function otherMachine(wire: FleetWire) {
  const { engine, inference } = setup();
  let isGone = false;
  const served = new ServedCalls({
    connection: wire.connect(),
    selfId: idOf("other"),
    inference: () => inference,
    followRequest: async (_head, next) => {
      await next();
      return () => ({});
    },
    refusal: () => (isGone ? new ServiceError("shutting_down", "The machine leaves.") : undefined),
  });
  closed.push(served);
  const leave = (): void => {
    isGone = true;
    served.close();
  };
  return { engine, leave };
}

test("low-priority requests stay on their machine, and are preempted by a request when all machines are busy", async () => {
  let isLowPriority = true;
  const fleet = { wire: new FleetWire(), isLowPriority: () => isLowPriority, isFar: false };
  const { inference, engine, dispatch, alias } = await entrance(fleet);
  engine.script = endless;
  const line = await inference.generate({ ...REQUEST, model: alias }, never);
  const second = inference.generate({ ...REQUEST, model: alias }, never).catch((error: unknown) => error);
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(dispatch.waiting).toBe(0);
  isLowPriority = false;
  const request = await inference.generate({ ...REQUEST, model: alias }, never);
  await expect(Array.fromAsync(line.events)).rejects.toMatchObject({ code: "overloaded" });
  await request.events.return?.();
  expect(await second).toMatchObject({ model: alias });
});

test("an answer that moves to the machine of its request is counted once", async () => {
  const wire = new FleetWire();
  const far = otherMachine(wire);
  far.engine.script = async function* (request, signal) {
    yield { type: "start" };
    yield { type: "text-delta", text: "Hello", soFar: undefined };
    yield* endless(request, signal);
  };
  const { inference, metrics, alias, dispatch } = await entrance({
    wire,
    isLowPriority: () => false,
    isFar: true,
  });
  const begin = vi.spyOn(dispatch, "begin");
  const { events } = await inference.generate({ ...REQUEST, model: alias, isBuffered: true }, never);
  const texts: string[] = [];
  let tokens = 0;
  for await (const event of events) {
    if (event.type === "done") tokens = event.usage.completionTokens;
    if (event.type !== "text-delta") continue;
    texts.push(event.text);
    if (texts.length > 1) continue;
    far.leave();
  }
  expect(texts).toEqual(["Hello", " world"]);
  // The buffered answer has not been sent yet.
  expect(begin.mock.lastCall?.[2].continues).toMatchObject({ hasOutput: false });
  expect(metrics.started).toEqual(["generate"]);
  expect(metrics.finished).toEqual(["generate"]);
  expect(metrics.generated).toBe(tokens);
  expect(dispatch.waiting).toBe(0);
});

test("an answer continues from the tokens of a lost machine, and counts tokens that differ", async () => {
  const wire = new FleetWire();
  const far = otherMachine(wire);
  far.engine.script = async function* (request, signal) {
    expect(request.reportsTokens).toBe(true);
    yield { type: "start" };
    yield { type: "tokens", ids: [5, 6], replaced: 0 };
    yield { type: "text-delta", text: "Hello", soFar: undefined };
    yield* endless(request, signal);
  };
  const near = await entrance({ wire, isLowPriority: () => false, isFar: true });
  near.engine.script = async function* () {
    yield { type: "start" };
    yield { type: "tokens", ids: [5, 6, 7], replaced: 1 };
    yield* eventsOf("Hello", " there").slice(1);
  };
  const begin = vi.spyOn(near.dispatch, "begin");
  const { events } = await near.inference.generate({ ...REQUEST, model: near.alias }, never);
  const texts: string[] = [];
  let moved: unknown;
  for await (const event of events) {
    if (event.type === "done") ({ moved } = event);
    if (event.type !== "text-delta") continue;
    texts.push(event.text);
    if (texts.length > 1) continue;
    far.leave();
  }
  expect(near.engine.requests.at(-1)).toMatchObject({ given: [5, 6] });
  expect(texts).toEqual(["Hello", " there"]);
  expect(begin.mock.lastCall?.[2].continues).toMatchObject({ hasOutput: true });
  expect(moved).toEqual({ times: 1, otherTokens: 1 });
  expect(near.metrics.moves).toEqual([false]);
});

test("another machine receives the compiled grammar, and no unsupported regular expression", async () => {
  const wire = new FleetWire();
  const far = otherMachine(wire);
  const { inference, alias } = await entrance({ wire, isLowPriority: () => false, isFar: true });
  const ask = async (given: string) => {
    const format = { type: "texts", language: "regex", source: given, param: "regex" } as const;
    return await inference.generate({ ...REQUEST, model: alias, format }, never);
  };
  await Array.fromAsync((await ask("a|b")).events);
  expect(far.engine.requests).toMatchObject([{ format: { type: "grammar", param: "regex" } }]);
  await expect(ask(String.raw`(a)\1`)).rejects.toMatchObject({ code: "invalid_parameter", param: "regex" });
  expect(far.engine.requests).toHaveLength(1);
});
