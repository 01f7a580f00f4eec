import { setTimeout as sleep } from "node:timers/promises";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Beat, beatSchema, cardSchema } from "../../src/fleet/card.ts";
import { readFrame } from "../../src/fleet/frame.ts";
import { readJson, writeJson } from "../../src/fleet/json-message.ts";
import { NATS_SERVER } from "../support/nats-server.ts";
import type { TestDaemon } from "../support/start-daemon.ts";
import { ask, TestFleet } from "../support/test-fleet.ts";

const LONG = { max_tokens: 1900, ignore_eos: true };
const IMPOSTOR = "1".repeat(32);
const BEAT_MS = 500;
describe.skipIf(NATS_SERVER === null)("the machines of a fleet that work", () => {
  let fleet: TestFleet;
  let desk: TestDaemon;
  let attic: TestDaemon;
  let observer: NatsConnection;

  beforeAll(async () => {
    fleet = await TestFleet.start();
    observer = await connect({ servers: fleet.nats.url });
    [desk, attic] = await Promise.all([fleet.join("desk", { hasModel: false }), fleet.join("attic")]);
    await fleet.complete(desk, 2, 1);
  });
  afterAll(async () => {
    await observer.close();
    await fleet.stop();
  });

  test("of another engine do not continue its answers, and may begin others", async () => {
    const whole = await ask(desk, "once upon a time", LONG);
    const seen = await whatIsTold(observer, attic);
    const tell = (state: Beat["state"]): void => {
      observer.publish("daybreak.presence", writeJson({ ...seen.beat, id: IMPOSTOR, state }));
    };
    observer.subscribe(`daybreak.card.${IMPOSTOR}`, {
      callback: (_error, message) => {
        const card = { ...seen.card, id: IMPOSTOR, name: "impostor", engine: "e".repeat(64) };
        void message.respond(writeJson(card));
      },
    });
    let offers = 0;
    observer.subscribe(`daybreak.call.${IMPOSTOR}`, {
      callback: (_error, { data }) => {
        if (readFrame(data)?.kind === "offer") offers += 1;
      },
    });
    const asked = ask(desk, "once upon a time", LONG);
    await sleep(300);
    const beats = setInterval(() => tell("ready"), BEAT_MS);
    try {
      tell("ready");
      await sleep(200);
      attic.kill("SIGKILL");
      await attic.exited;
      await sleep(4000);
      expect(offers).toBe(0);
      await fleet.join("cellar");
      expect((await asked).text).toBe(whole.text);
      expect(offers).toBe(0);
      // It answers nothing, so that the other one does.
      const [first, second] = await Promise.all([ask(desk, "the end", LONG), ask(desk, "an end", LONG)]);
      expect([first.status, second.status]).toEqual([200, 200]);
      expect(offers).toBeGreaterThan(0);
    } finally {
      clearInterval(beats);
      tell("gone");
    }
  });

  test("may come and leave while they answer, and nobody notices", async () => {
    const prompts = Array.from({ length: 8 }, (_, index) => `once upon a time there was ${index * 7919}`);
    const texts = new Map<string, string>();
    for (const prompt of prompts) texts.set(prompt, (await ask(desk, prompt, { max_tokens: 300 })).text);
    const over = new AbortController();
    const wrong: unknown[] = [];
    let answered = 0;
    const clients = Array.from({ length: 4 }, async (_, client) => {
      for (let turn = client; !over.signal.aborted; turn += 1) {
        const prompt = prompts[turn % prompts.length] ?? "";
        const { status, text, body } = await ask(desk, prompt, { max_tokens: 300 });
        answered += 1;
        if (status !== 200 || text !== texts.get(prompt)) wrong.push({ status, body });
      }
    });
    for (const name of ["one", "two", "three"]) {
      const guest = await fleet.join(name);
      await fleet.complete(desk, 3, 2);
      await sleep(500);
      await guest.stop();
    }
    over.abort();
    await Promise.all(clients);
    expect(wrong).toEqual([]);
    expect(answered).toBeGreaterThan(8);
  });
});

/** What a machine says of itself, once it has loaded the model. */
async function whatIsTold(nats: NatsConnection, { url }: TestDaemon) {
  const fleet: { machines: { self: boolean; id: string }[] } = JSON.parse(
    await (await fetch(`${url}/api/fleet`)).text(),
  );
  const id = fleet.machines.find(({ self }) => self)?.id ?? "";
  const card = readJson(cardSchema, (await nats.request(`daybreak.card.${id}`)).data);
  const beat = await new Promise<Beat>((resolve) => {
    const beats = nats.subscribe("daybreak.presence", {
      callback: (_error, { data }) => {
        const each = readJson(beatSchema, data);
        if (each?.id !== id || each.loaded.length === 0) return;
        beats.unsubscribe();
        resolve(each);
      },
    });
  });
  if (!card) throw new Error("it has no card");
  return { card, beat };
}
