import { pino } from "pino";
import { afterEach, expect, test } from "vitest";
import { configSchema } from "../../../src/config/schema.ts";
import { Dispatch } from "../../../src/fleet/dispatch.ts";
import { FleetInference } from "../../../src/fleet/fleet-inference.ts";
import { RemoteCalls } from "../../../src/fleet/remote-calls.ts";
import { FakeMetrics } from "../../support/fake-metrics.ts";
import { beat, card, cardModel, FleetWire, idOf } from "../../support/fleet-wire.ts";
import { endless, never, REQUEST, setup } from "../inference/inference-setup.ts";

const closed: { close(): void }[] = [];

afterEach(() => {
  for (const each of closed.splice(0)) each.close();
});

test("lines of a batch stay on their machine, and make way for a request when all machines are busy", async () => {
  let isBackground = true;
  const { engine, models, inference: local } = setup({ slots: 1, isBackground: () => isBackground });
  engine.script = endless;
  const [model] = await models.list();
  const alias = model?.alias ?? "";
  const described = { models: [cardModel(alias)] };
  const load = { alias, slots: 1, running: 1, waiting: 0, contextSize: 512, gpuLayers: 0 };
  const other = { card: card("other", described), beat: beat("other", { loaded: [load] }) };
  const dispatch = new Dispatch({
    self: {
      card: card("self", described),
      // As it tells the others.
      get beat() {
        const running = local.loads.reduce((sum, each) => sum + each.running - each.yielding, 0);
        return beat("self", { loaded: [{ ...load, running }] });
      },
      model: () => cardModel(alias),
    },
    presence: { machines: [other], get: () => other, onChange: () => () => undefined },
    models,
    queueSize: 8,
    onWaiting: () => undefined,
  });
  const calls = new RemoteCalls(new FleetWire().connect(), idOf("self"));
  closed.push(dispatch, calls);
  const inference = new FleetInference({
    local,
    dispatch,
    calls,
    metrics: new FakeMetrics(),
    followWork: () => ({ note: () => undefined, end: () => undefined, further: () => expect.fail() }),
    config: configSchema.parse({}),
    logger: pino({ level: "silent" }),
    isBackground: () => isBackground,
  });
  const line = await inference.generate({ ...REQUEST, model: alias }, never);
  const second = inference.generate({ ...REQUEST, model: alias }, never).catch((error: unknown) => error);
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(dispatch.waiting).toBe(0);
  isBackground = false;
  const request = await inference.generate({ ...REQUEST, model: alias }, never);
  await expect(Array.fromAsync(line.events)).rejects.toMatchObject({ code: "overloaded" });
  await request.events.return?.();
  expect(await second).toMatchObject({ model: alias });
});
