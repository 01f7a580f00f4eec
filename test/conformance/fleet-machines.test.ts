import { setTimeout as sleep } from "node:timers/promises";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type Heartbeat, heartbeatSchema, memberInfoSchema } from "../../src/fleet/members.ts";
import { readFrame, readJson, writeJson } from "../../src/fleet/wire-format.ts";
import { NATS } from "../support/nats-server.ts";
import { postJson } from "../support/post-json.ts";
import type { TestDaemon } from "../support/start-daemon.ts";
import { ask as askFor, busyOf, FLEET_MODEL, fleetOf, TestFleet } from "../support/test-fleet.ts";

/** A prompt that is in one machine's cache and read by the other would be summed up in another order. */
const ask: typeof askFor = async (daemon, content, further) =>
  await askFor(daemon, content, { cache_prompt: false, ...further });
const LONG = { max_tokens: 1900, ignore_eos: true };
const IMPOSTOR = "1".repeat(32);
const HEARTBEAT_MS = 500;
/** An answer is offered at once to a machine that may go on with it. */
const OFFERED_MS = 2000;

/** The same long answer, streamed. */
function stream({ url }: TestDaemon, content: string): { hasBegun: Promise<void>; text: Promise<string> } {
  const { promise: hasBegun, resolve, reject } = Promise.withResolvers<void>();
  const read = async (): Promise<string> => {
    const response = await postJson(`${url}/v1/chat/completions`, {
      model: FLEET_MODEL,
      messages: [{ role: "user", content }],
      temperature: 0,
      cache_prompt: false,
      stream: true,
      ...LONG,
    });
    let [text, rest] = ["", ""];
    const pieces = response.body?.pipeThrough(new TextDecoderStream()) ?? [];
    for await (const piece of pieces) {
      const lines = (rest + piece).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines.filter((each) => each.startsWith("data: {"))) {
        const { choices }: { choices: { delta: { content?: string } }[] } = JSON.parse(line.slice(6));
        text += choices[0]?.delta.content ?? "";
      }
      if (text !== "") resolve();
    }
    reject(new Error("the answer is over without a word"));
    return text;
  };
  const text = read();
  text.catch(reject);
  return { hasBegun, text };
}

describe.skipIf(NATS.isMissing)(`the machines of a fleet that work${NATS.note}`, () => {
  let fleet: TestFleet;
  let entrance: TestDaemon;
  let observer: NatsConnection;

  beforeAll(async () => {
    fleet = await TestFleet.start();
    observer = await connect({ servers: fleet.nats.url });
    entrance = await fleet.join("desk", { hasModel: false });
  });
  afterAll(async () => {
    await observer?.close();
    await fleet?.stop();
  });

  /** A machine of the present test, which may be tried again. */
  async function visit(name: string): Promise<TestDaemon> {
    const daemon = await fleet.join(name);
    onTestFinished(async () => await daemon.stop());
    return daemon;
  }

  test("of another engine do not continue its answers, and may begin others", async () => {
    const [attic, cellar] = await Promise.all([visit("attic"), visit("cellar")]);
    await fleet.complete(entrance, 3, 2);
    // One that does not run is gone, and back as soon as it runs: it need not start while an answer waits for it.
    cellar.kill("SIGSTOP");
    onTestFinished(() => cellar.kill("SIGCONT"));
    await fleet.complete(entrance, 2, 1);
    const whole = await ask(entrance, "once upon a time", LONG);
    const seen = await reportedMachine(observer, attic);
    const tell = (state: Heartbeat["state"]): void => {
      observer.publish("daybreak.presence", writeJson({ ...seen.heartbeat, id: IMPOSTOR, state }));
    };
    const cards = observer.subscribe(`daybreak.card.${IMPOSTOR}`, {
      callback: (_error, message) => {
        const info = { ...seen.info, id: IMPOSTOR, name: "impostor", engine: "e".repeat(64) };
        void message.respond(writeJson(info));
      },
    });
    let offers = 0;
    const calls = observer.subscribe(`daybreak.call.${IMPOSTOR}`, {
      callback: (_error, { data }) => {
        if (readFrame(data)?.kind === "offer") offers += 1;
      },
    });
    const asked = stream(entrance, "once upon a time");
    asked.text.catch(() => undefined); // awaited below
    // An answer without a word may be begun anew by anybody.
    await asked.hasBegun;
    expect((await busyOf([attic])).pid).toBe(attic.pid);
    const heartbeats = setInterval(() => tell("ready"), HEARTBEAT_MS);
    try {
      tell("ready");
      await expect.poll(async () => await namesAt(entrance), { interval: 10 }).toContain("impostor");
      attic.kill("SIGKILL");
      await expect.poll(async () => await namesAt(entrance)).not.toContain("attic");
      await sleep(OFFERED_MS);
      expect(offers).toBe(0);
      cellar.kill("SIGCONT");
      expect(await asked.text).toBe(whole.text);
      expect(offers).toBe(0);
      // It answers nothing, so that the other one does.
      const [first, second] = await Promise.all([
        ask(entrance, "the end", LONG),
        ask(entrance, "an end", LONG),
      ]);
      expect([first.status, second.status]).toEqual([200, 200]);
      expect(offers).toBeGreaterThan(0);
    } finally {
      clearInterval(heartbeats);
      tell("gone");
      for (const subscription of [cards, calls]) subscription.unsubscribe();
    }
  });

  test("may come and leave while they answer, and nobody notices", async () => {
    await visit("cellar");
    await fleet.complete(entrance, 2, 1);
    const prompts = Array.from({ length: 8 }, (_, index) => `once upon a time there was ${index * 7919}`);
    const texts = new Map<string, string>();
    for (const prompt of prompts) texts.set(prompt, (await ask(entrance, prompt, { max_tokens: 300 })).text);
    const over = new AbortController();
    const wrong: unknown[] = [];
    let answered = 0;
    const client = async (first: number): Promise<void> => {
      for (let turn = first; !over.signal.aborted; turn += 1) {
        const prompt = prompts[turn % prompts.length] ?? "";
        const { status, text, body } = await ask(entrance, prompt, { max_tokens: 300 });
        answered += 1;
        if (status !== 200 || text !== texts.get(prompt)) wrong.push({ status, body });
      }
    };
    const clients = Promise.all([0, 1, 2, 3].map(client));
    clients.catch(() => undefined); // awaited below
    try {
      for (const name of ["one", "two", "three"]) {
        const guest = await visit(name);
        await fleet.complete(entrance, 3, 2);
        // For the clients to use it.
        await sleep(500);
        await guest.stop();
      }
    } finally {
      over.abort();
      await Promise.allSettled([clients]);
    }
    await clients;
    expect(wrong).toEqual([]);
    expect(answered).toBeGreaterThan(8);
  });
});

async function namesAt(daemon: TestDaemon): Promise<string[]> {
  return (await fleetOf(daemon)).machines.map(({ name }) => name);
}

/** Reads a machine's member info and heartbeat, once it has loaded the model. */
async function reportedMachine(nats: NatsConnection, { url }: TestDaemon) {
  const fleet: { machines: { self: boolean; id: string }[] } = JSON.parse(
    await (await fetch(`${url}/api/fleet`)).text(),
  );
  const id = fleet.machines.find(({ self }) => self)?.id ?? "";
  const info = readJson(memberInfoSchema, (await nats.request(`daybreak.card.${id}`)).data);
  const heartbeat = await new Promise<Heartbeat>((resolve) => {
    const heartbeats = nats.subscribe("daybreak.presence", {
      callback: (_error, { data }) => {
        const each = readJson(heartbeatSchema, data);
        if (each?.id !== id || each.loaded.length === 0) return;
        heartbeats.unsubscribe();
        resolve(each);
      },
    });
  });
  if (!info) throw new Error("it has no card");
  return { info, heartbeat: heartbeat };
}
