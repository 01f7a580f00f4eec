import { expect, test } from "vitest";
import { EngineHandle } from "../../../src/engine/engine-handle.ts";
import type { DaemonMessage } from "../../../src/engine/protocol/messages.ts";
import { NEVER, promptRequest } from "../../support/engine-fixture.ts";
import { FakeEngine } from "../../support/fake-engine.ts";

test("a call that an engine would end at is not sent", async () => {
  const { spec, info, exited } = new FakeEngine();
  const sent: DaemonMessage[] = [];
  const connection = {
    pid: 1,
    alive: true,
    exited,
    post: (message: DaemonMessage) => void sent.push(message),
    end() {},
  };
  const handle = new EngineHandle(connection, spec, info, 1000);
  const refused = { code: "internal_error", message: expect.stringContaining("slot") };
  await expect(handle.slots({ action: "erase", slot: 64 }, NEVER)).rejects.toMatchObject(refused);
  await expect(handle.generate(promptRequest("hi", { maxTokens: 0 }), () => {}, NEVER)).rejects.toMatchObject(
    {
      code: "internal_error",
    },
  );
  expect(sent).toEqual([]);
});
