import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import Anthropic from "@anthropic-ai/sdk";
import { describe, expect, onTestFinished, test } from "vitest";
import { runCli } from "../e2e/cli-process.ts";
import {
  answeredBy,
  clientOf,
  completed,
  completeLines,
  createLines,
  lineOf,
} from "../support/batch-clients.ts";
import {
  BatchMachines,
  createBatch,
  named,
  nameModel,
  outputOf,
  TEXT_API,
} from "../support/batch-machines.ts";
import { NATS, startNats } from "../support/nats-server.ts";
import type { TestDaemon } from "../support/start-daemon.ts";
import { FLEET_MODEL, TestFleet } from "../support/test-fleet.ts";

/** 10000 take three minutes with two cores. */
const LINES = Number(process.env["FLEET_BATCH_LINES"] ?? 1000);
const SECONDS = 1000;
const MINUTES = 60_000;
/** The same command on another machine goes on with the same batch. */
async function goOnWithCommand(one: TestDaemon, two: TestDaemon): Promise<void> {
  const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-batch-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const input = path.join(folder, "in.jsonl");
  writeFileSync(input, [1, 2, 3].map((at) => `${JSON.stringify(lineOf(at, FLEET_MODEL))}\n`).join(""));
  const run = async ({ socket }: TestDaemon, output: string): Promise<string> => {
    const file = path.join(folder, output);
    const result = await runCli(["batch", input, "-o", file], { env: { SERVICE_SOCKET: socket } });
    expect(result).toMatchObject({ code: 0 });
    return readFileSync(file, "utf8");
  };
  const answers = await run(one, "one.jsonl");
  expect(answers.trimEnd().split("\n")).toHaveLength(3);
  // With the same ids of requests: nothing was answered again.
  expect(await run(two, "two.jsonl")).toBe(answers);
}

/** Anthropic's API has batches of its own. */
async function readMessages(one: TestDaemon, two: TestDaemon): Promise<void> {
  const [first, second] = [one, two].map(({ url }) => new Anthropic({ baseURL: url, apiKey: "any" }));
  if (!first || !second) throw new Error("there are no clients");
  const messages = [{ role: "user" as const, content: "Hello" }];
  const params = { model: FLEET_MODEL, max_tokens: 2, messages };
  const { id } = await first.messages.batches.create({ requests: [{ custom_id: "one", params }] });
  await expect
    .poll(async () => (await second.messages.batches.retrieve(id)).processing_status, { interval: 100 })
    .toBe("ended");
  const results: string[] = [];
  for await (const { custom_id: custom, result } of await second.messages.batches.results(id))
    results.push(`${custom} ${result.type}`);
  expect(results).toEqual(["one succeeded"]);
}

async function startFleet(): Promise<{ fleet: TestFleet; daemons: TestDaemon[] }> {
  const fleet = await TestFleet.start({ jetStream: true });
  onTestFinished(async () => await fleet.stop());
  const daemons = await Promise.all(["one", "two", "three"].map(async (name) => await fleet.join(name)));
  const [one] = daemons;
  if (!one) throw new Error("there is no machine");
  await fleet.complete(one, 3, 3);
  return { fleet, daemons };
}

describe.skipIf(NATS.isMissing)(`batches that all machines of a fleet answer${NATS.note}`, () => {
  test(
    "are created on one entrance with the file of another, seen and cancelled on a third, and outlive each",
    async () => {
      const { fleet, daemons } = await startFleet();
      const [one, two, three] = daemons;
      if (!one || !two || !three) throw new Error("there are no machines");
      const [first, second, third] = [clientOf(one), clientOf(two), clientOf(three)];
      const whole = await createLines(first, 400, FLEET_MODEL, second);
      await completeLines(() => [third], whole, 400, 2 * MINUTES);
      for (const daemon of daemons) expect(await answeredBy(daemon)).toBeGreaterThan(0);
      const listed = await second.batches.list();
      expect(listed.data.map(({ id }) => id)).toEqual([whole]);
      await goOnWithCommand(one, two);
      await readMessages(one, two);

      const cancelled = await createLines(first, 2000);
      await third.batches.cancel(cancelled);
      await expect.poll(async () => (await second.batches.retrieve(cancelled)).status).toBe("cancelled");

      const orphan = await createLines(first, 400);
      const answered = async (): Promise<number> =>
        (await second.batches.retrieve(orphan)).request_counts?.completed ?? 0;
      await expect.poll(answered, { interval: 50 }).toBeGreaterThan(20);
      one.kill("SIGKILL");
      await one.exited;
      await completeLines(() => [second], orphan, 400, 2 * MINUTES);

      const interrupted = await createLines(second, 400);
      const done = async (): Promise<number> =>
        (await third.batches.retrieve(interrupted)).request_counts?.completed ?? 0;
      await expect.poll(done, { interval: 50 }).toBeGreaterThan(20);
      await fleet.nats.kill("SIGKILL");
      await sleep(3 * SECONDS);
      await expect(third.batches.retrieve(interrupted)).rejects.toMatchObject({ status: 503 });
      await fleet.nats.restart();
      await completeLines(() => [third], interrupted, 400, 2 * MINUTES);
    },
    10 * MINUTES,
  );

  test(
    "are answered exactly once, whichever machines and NATS servers are killed",
    async () => {
      const { fleet, daemons } = await startFleet();
      let alive = daemons;
      const [entrance] = daemons;
      if (!entrance) throw new Error("there is no machine");
      const id = await createLines(clientOf(entrance), LINES);
      const over = new AbortController();
      const killed = { daemons: 0, servers: 0 };
      const faults = (async () => {
        for (let fault = 1; ; fault += 1) {
          const pause = 1000 + Math.random() * 4000;
          await sleep(pause, undefined, { signal: over.signal }).catch(() => undefined);
          if (over.signal.aborted) return;
          if (fault % 3 === 0) {
            killed.servers += 1;
            await fleet.nats.kill("SIGKILL");
            await sleep(Math.random() * 2000);
            await fleet.nats.restart();
            continue;
          }
          const victim = alive[Math.floor(Math.random() * alive.length)];
          if (!victim) continue;
          killed.daemons += 1;
          alive = alive.filter((each) => each !== victim);
          victim.kill("SIGKILL");
          await victim.exited;
          alive = [...alive, await fleet.join(`new-${fault}`)];
        }
      })();
      faults.catch(() => undefined); // awaited below
      try {
        await completed(() => alive.map(clientOf), id, 40 * MINUTES);
      } finally {
        over.abort();
        await faults;
      }
      // Without faults: the clients try nothing again.
      await completeLines(() => alive.map(clientOf), id, LINES, MINUTES);
      process.stdout.write(
        `${LINES} lines, ${killed.daemons} daemons and ${killed.servers} servers killed\n`,
      );
      expect(killed.daemons).toBeGreaterThan(0);
    },
    45 * MINUTES,
  );
});

test.skipIf(NATS.isMissing)(
  `answers for which the server has no room are kept until it has${NATS.note}`,
  async () => {
    const nats = await startNats({ jetStream: { maxFileBytes: 48 * 1024 * 1024 } });
    onTestFinished(async () => await nats.stop());
    const fleet = new BatchMachines(nats.url, "t");
    onTestFinished(async () => await fleet.close({ hasStreams: false }));
    let run = 0;
    const { batches } = await fleet.join("one", {
      runLine: async () => {
        run += 1;
        // Cannot be packed.
        const body = JSON.stringify(randomBytes(700_000).toString("base64"));
        return { status: 200, body, retryable: false, retryAfterSecs: 1 };
      },
    });
    await using received = await batches.receive([new Uint8Array(14_500_000)]);
    const filler = await received.store({ viewer: undefined, purpose: "batch", name: "" });
    const { id } = await createBatch(batches, named(6));
    const counts = async () => (await batches.batch(undefined, TEXT_API, id)).counts.succeeded;
    await expect.poll(() => run, { interval: 20 }).toBe(6);
    // Longer than saving everything that fits takes.
    await sleep(2 * SECONDS);
    expect(await counts()).toBeLessThan(6);
    await batches.deleteFile(undefined, filler.id, ["batch"]);
    await expect.poll(async () => (await batches.batch(undefined, TEXT_API, id)).status).toBe("completed");
    expect(await outputOf(batches, id)).toHaveLength(6);
    expect(run, "none is computed again").toBe(6);
  },
);

test.skipIf(NATS.isMissing)(
  `a machine that vanishes leaves its lines and its lead to the others${NATS.note}`,
  async () => {
    const nats = await startNats({ jetStream: true });
    onTestFinished(async () => await nats.stop());
    const fleet = new BatchMachines(nats.url, "t");
    onTestFinished(async () => await fleet.close({ hasStreams: false }));
    const one = await fleet.join("one", {
      runLine: async (line, signal) => {
        if (!line.body.includes("m/0"))
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
        return await nameModel(line, signal);
      },
    });
    const two = await fleet.join("two", { models: {} });
    const { id } = await createBatch(one.batches, named(100));
    const batch = async () => await two.batches.batch(undefined, TEXT_API, id);
    await expect.poll(async () => (await batch()).counts.succeeded, { interval: 20 }).toBe(1);
    await one.crash();
    await fleet.join("three");
    await expect.poll(async () => (await batch()).status, { interval: 100 }).toBe("completed");
    expect(await outputOf(two.batches, id)).toEqual(named(100).map((line) => [line, "succeeded", "m"]));
  },
);
