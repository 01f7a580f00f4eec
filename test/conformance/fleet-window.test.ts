import { setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";
import { afterEach, expect, test } from "vitest";
import { configSchema } from "../../src/config/schema.ts";
import { FleetConnection } from "../../src/fleet/fleet-connection.ts";
import { beginRemote, encodeGenerate } from "../../src/fleet/remote-answers.ts";
import { RemoteCalls, WINDOW_BYTES } from "../../src/fleet/remote-calls.ts";
import { ServedCalls } from "../../src/fleet/served-calls.ts";
import type { Inference, InferenceEvent } from "../../src/inference/inference.ts";
import { idOf } from "../support/fleet-wire.ts";
import { NATS, type NatsServer, startNats } from "../support/nats-server.ts";

const PIECE = "x".repeat(4096);
/** Longer than either side is silent for. */
const PAUSE_MS = 4000;

const closed: (() => void | Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closed.splice(0).toReversed()) await close();
});

async function join(nats: NatsServer): Promise<FleetConnection> {
  const { fleet } = configSchema.parse({ fleet: { nats: nats.url } });
  const connection = new FleetConnection(fleet, pino({ level: "silent" }));
  closed.push(() => connection.close());
  await connection.joined;
  return connection;
}

test.skipIf(NATS.isMissing)(
  `a machine is no more than a window ahead of who reads its answer, and waits for a reader who pauses${NATS.note}`,
  async () => {
    const nats = await startNats();
    closed.push(() => nats.stop());
    const [entrance, attic] = [await join(nats), await join(nats)];
    let given = 0;
    let hasEnded = false;
    async function* endless(): AsyncGenerator<InferenceEvent, undefined> {
      try {
        for (;;) {
          given += 1;
          yield { type: "text-delta", text: PIECE };
        }
      } finally {
        hasEnded = true;
      }
    }
    const generate: Inference["generate"] = async () => ({
      model: "tiny",
      loadMs: 0,
      sampling: {},
      warnings: [],
      events: endless(),
    });
    const served = new ServedCalls({
      connection: attic,
      selfId: idOf("attic"),
      // The rest of an inference is not called.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      inference: () => ({ generate }) as unknown as Inference,
      followRequest: async (_head, work) => {
        await work();
        return () => ({});
      },
      refusal: () => undefined,
    });
    const calls = new RemoteCalls(entrance, idOf("desk"));
    closed.push(
      () => served.close(),
      () => calls.close(),
    );
    await attic.nats?.flush();
    const request = {
      endpoint: "chat" as const,
      input: { kind: "prompt" as const, prompt: "a" },
      sampling: {},
      format: { type: "text" as const },
      defaults: { sampling: {} },
    };
    const offer = { files: "", settings: "", name: "tiny", needsSlot: true };
    const stop = new AbortController();
    const call = calls.open(idOf("attic"), offer, encodeGenerate(request), stop.signal);
    const { events } = await beginRemote(call, "tiny", {});
    let read = 0;
    const readOn = async (count: number): Promise<void> => {
      for (const until = read + count; read < until;) {
        const { value } = await events.next();
        // Several pieces may have become one.
        const text = value?.type === "text-delta" ? value.text : "";
        expect(text).not.toBe("");
        read += text.length / PIECE.length;
      }
    };
    const mostAhead = (2 * WINDOW_BYTES) / PIECE.length + 64;
    await readOn(10);
    await sleep(PAUSE_MS);
    const before = given;
    expect(given - read).toBeLessThan(mostAhead);
    await sleep(500);
    expect(given).toBe(before);
    for (let turn = 0; turn < 20; turn += 1) {
      await readOn(100);
      expect(given - read).toBeLessThan(mostAhead);
    }
    expect(hasEnded).toBe(false);
    stop.abort();
    await expect.poll(() => served.count).toBe(0);
    await expect.poll(() => hasEnded).toBe(true);
  },
);
