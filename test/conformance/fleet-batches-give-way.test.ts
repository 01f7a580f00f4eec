import { toFile } from "openai";
import { expect, onTestFinished, test } from "vitest";
import { clientOf } from "../support/batch-clients.ts";
import { NATS } from "../support/nats-server.ts";
import type { TestDaemon } from "../support/start-daemon.ts";
import { FLEET_MODEL, TestFleet } from "../support/test-fleet.ts";

const LINES = 1500;
const SLOTS = 2;
const ASKED = 4;
const MINUTES = 60_000;
const BRIEF = { model: FLEET_MODEL, max_tokens: 4, ignore_eos: true, stream: true } as const;

const line = (at: number): string =>
  JSON.stringify({
    custom_id: `line-${at}`,
    method: "POST",
    url: "/v1/chat/completions",
    body: {
      model: FLEET_MODEL,
      max_tokens: 64,
      ignore_eos: true,
      messages: [{ role: "user", content: `${at}` }],
    },
  });

/** When lines of batches were answered, in Unix milliseconds, as machines have logged it. */
function answeredAt(daemons: readonly TestDaemon[]): number[] {
  return daemons.flatMap((daemon) =>
    [...daemon.logs().matchAll(/"time":(\d+),"request_id":"batch_req_.*"status":200/g)].map(([, time]) =>
      Number(time),
    ),
  );
}

interface Wait {
  readonly asked: number;
  readonly begun: number;
}

/**
 * When an entrance was asked for what it has answered, and when the first token came, in Unix milliseconds, as it has logged it:
 * the test's own process may be held up. An answer without any text has no first token, but an end.
 */
function waitsAt(entrance: TestDaemon): Wait[] {
  const lines = entrance
    .logs()
    .matchAll(
      /"time":(\d+),"request_id":"(?!batch_req_).*"\/v1\/chat\/completions".*"ms":(\d+)(?:.*"first_token_ms":(\d+))?/g,
    );
  return [...lines].map(([, ended, ms, first]) => {
    const asked = Number(ended) - Number(ms);
    return { asked, begun: asked + Number(first ?? ms) };
  });
}

test.skipIf(NATS.isMissing)(
  `a request at any entrance comes before the lines of a batch that has all slots of all machines${NATS.note}`,
  async () => {
    const fleet = await TestFleet.start({ jetStream: true });
    onTestFinished(async () => await fleet.stop());
    const env = { SERVICE_MODELS_SLOTS: String(SLOTS) };
    const names = ["one", "two", "three"];
    const daemons = await Promise.all(names.map(async (name) => await fleet.join(name, { env })));
    // An entrance without the model: other machines answer all of its requests.
    const bare = await fleet.join("four", { hasModel: false });
    await fleet.complete(bare, 4, 3);
    const client = clientOf(bare);
    const text = Array.from({ length: LINES }, (_, at) => `${line(at)}\n`).join("");
    const file = await client.files.create({
      file: await toFile(Buffer.from(text), "in.jsonl"),
      purpose: "batch",
    });
    const request = { endpoint: "/v1/chat/completions", completion_window: "24h" } as const;
    const { id } = await client.batches.create({ input_file_id: file.id, ...request });
    // All machines work on it.
    await expect
      .poll(() => daemons.map((daemon) => answeredAt([daemon]).length > SLOTS), { timeout: MINUTES })
      .toEqual([true, true, true]);
    const waits: number[] = [];
    let before = 0;
    for (let time = 0; time < ASKED; time += 1) {
      for (const entrance of [...daemons, bare]) {
        const asks = waitsAt(entrance).length;
        const stream = await clientOf(entrance).chat.completions.create({
          ...BRIEF,
          messages: [{ role: "user", content: `Now, ${time}` }],
        });
        expect(await Array.fromAsync(stream)).not.toEqual([]);
        await expect.poll(() => waitsAt(entrance).length).toBe(asks + 1);
        const { asked = 0, begun = 0 } = waitsAt(entrance).at(-1) ?? {};
        waits.push(begun - asked);
        const isBetween = (at: number): boolean => at > asked && at < begun;
        const ended = daemons.map((daemon) => answeredAt([daemon]).filter(isBetween).length);
        // It may have been answered by any of them.
        before += Math.min(...ended);
      }
    }
    // Lines that are under way may end, and a busy machine may not run what takes a request; behind the others it would be dozens.
    expect(before, "lines before the requests").toBeLessThanOrEqual(waits.length);
    const { status, request_counts: counts } = await client.batches.retrieve(id);
    process.stdout.write(`first tokens after ${waits.join(", ")} ms; ${counts?.completed} lines answered\n`);
    expect(status).toBe("in_progress");
    await client.batches.cancel(id);
  },
  5 * MINUTES,
);
