import { expect, test } from "vitest";
import { EngineHandle } from "../../../src/engine/engine-handle.ts";
import type { DaemonMessage } from "../../../src/engine/protocol/messages.ts";
import { NEVER, promptRequest } from "../../support/engine-fixture.ts";
import { FakeEngine } from "../../support/fake-engine.ts";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A handle on a silent engine, with the messages that it received. */
function handleOf(slots: number) {
  const { spec, info, exited } = new FakeEngine();
  const sent: DaemonMessage[] = [];
  const connection = {
    pid: 1,
    alive: true,
    exited,
    post: (message: DaemonMessage) => void sent.push(message),
    end() {},
  };
  return { handle: new EngineHandle(connection, { ...spec, slots }, info, 60_000), sent };
}

test("a message that would make the engine end is not sent", async () => {
  const { handle, sent } = handleOf(1);
  const refused = { code: "internal_error", message: expect.stringContaining("slot") };
  await expect(handle.slots({ action: "erase", slot: 64 }, NEVER)).rejects.toMatchObject(refused);
  await expect(handle.generate(promptRequest("hi", { maxTokens: 0 }), () => {}, NEVER)).rejects.toMatchObject(
    {
      code: "internal_error",
    },
  );
  expect(sent).toEqual([]);
});

test("a call waits for a cancelled one when the only other slot is reserved", async () => {
  const { handle, sent } = handleOf(2);
  const leave = new AbortController();
  const generate = (signal: AbortSignal, slot?: number): void => {
    handle.generate(promptRequest("hi", { slot }), () => {}, signal).catch(() => {});
  };
  const generated = (): unknown[] =>
    sent.flatMap((each) => (each.type === "generate" ? [each.request.slot] : []));
  generate(leave.signal);
  leave.abort();
  await turn();
  void handle.slots({ action: "reserve", slot: 0 }, NEVER);
  generate(NEVER);
  await turn();
  generate(NEVER, 0);
  await turn();
  expect(generated()).toEqual([undefined, 0]);
  handle.receive({ type: "cancelled", call: 1 });
  await turn();
  expect(generated()).toEqual([undefined, 0, undefined]);
});

test("a call that waits for a cancelled one gets a slot whose reservation ends meanwhile", async () => {
  const { handle, sent } = handleOf(2);
  const leave = new AbortController();
  handle.generate(promptRequest("hi"), () => {}, leave.signal).catch(() => {});
  leave.abort();
  await turn();
  void handle.slots({ action: "reserve", slot: 0 }, NEVER);
  handle.generate(promptRequest("hi"), () => {}, NEVER).catch(() => {});
  await turn();
  expect(sent.at(-1)).toMatchObject({ type: "slots" });
  void handle.slots({ action: "release", slot: 0 }, NEVER);
  await turn();
  expect(sent.map(({ type }) => type).slice(-2)).toEqual(["slots", "generate"]);
});

test("a call gets a slot whose reservation has ended", async () => {
  const { handle, sent } = handleOf(1);
  void handle.slots({ action: "reserve", slot: 0 }, NEVER);
  void handle.slots({ action: "release", slot: 0 }, NEVER);
  handle.generate(promptRequest("hi"), () => {}, NEVER).catch(() => {});
  await turn();
  expect(sent.at(-1)).toMatchObject({ type: "generate" });
});
