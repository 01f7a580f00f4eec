import OpenAI, { toFile } from "openai";
import { expect } from "vitest";
import { answeredLines } from "./answered-lines.ts";
import type { TestDaemon } from "./start-daemon.ts";
import { FLEET_MODEL } from "./test-fleet.ts";

/** Beginnings of the lines' prompts. */
const STARTS = Array.from({ length: 8 }, (_, at) => `Answer in the manner of number ${at}. `.repeat(4));

/** A client of OpenAI's for a machine, which tries nothing again. */
export function clientOf({ url }: TestDaemon): OpenAI {
  return new OpenAI({ baseURL: `${url}/v1`, apiKey: "any", maxRetries: 0 });
}

/** Each 97th is refused by the route. */
export function lineOf(at: number, model: string): object {
  return {
    custom_id: `line-${at}`,
    method: "POST",
    url: "/v1/chat/completions",
    body: {
      model,
      max_tokens: at % 97 === 0 ? "no number" : 1 + (at % 3),
      temperature: 0,
      messages: [{ role: "user", content: `${STARTS[at % STARTS.length]}${at}` }],
    },
  };
}

/** Creates a batch of so many lines. */
export async function createLines(
  client: OpenAI,
  lines: number,
  model = FLEET_MODEL,
  creator: OpenAI = client,
): Promise<string> {
  const text = Array.from({ length: lines }, (_, at) => `${JSON.stringify(lineOf(at, model))}\n`).join("");
  const file = await client.files.create({
    file: await toFile(Buffer.from(text), "in.jsonl"),
    purpose: "batch",
  });
  const request = { endpoint: "/v1/chat/completions", completion_window: "24h" } as const;
  return (await creator.batches.create({ input_file_id: file.id, ...request })).id;
}

/** Waits until a batch is completed. Resolves to it, and to the client that has reported so. */
export async function completed(
  clients: () => readonly OpenAI[],
  id: string,
  timeout: number,
): Promise<{ client: OpenAI; batch: OpenAI.Batch }> {
  const retrieve = async () => {
    for (const client of clients()) {
      const batch = await client.batches.retrieve(id).catch(() => undefined);
      if (batch) return { client, batch };
    }
    return undefined;
  };
  let found: Awaited<ReturnType<typeof retrieve>>;
  const status = async (): Promise<string | undefined> => (found = await retrieve())?.batch.status;
  await expect.poll(status, { timeout, interval: 500 }).toBe("completed");
  if (!found) throw new Error("no machine answers");
  return found;
}

/** Waits for the end of a batch, and compares all answers with the lines. */
export async function completeLines(
  clients: () => readonly OpenAI[],
  id: string,
  lines: number,
  timeout: number,
): Promise<void> {
  const { client, batch } = await completed(clients, id, timeout);
  const all = Array.from({ length: lines }, (_, at) => at);
  const [right, wrong] = [all.filter((at) => at % 97 !== 0), all.filter((at) => at % 97 === 0)];
  expect(await answeredLines(client, batch.output_file_id)).toEqual(right.map((at) => `line-${at}`));
  expect(await answeredLines(client, batch.error_file_id)).toEqual(wrong.map((at) => `line-${at}`));
  expect(batch.request_counts).toEqual({ total: lines, completed: right.length, failed: wrong.length });
  expect(batch.usage?.output_tokens).toBeGreaterThanOrEqual(right.length);
}

/** Lines that a machine has answered, as its metrics say. */
export async function answeredBy({ url }: TestDaemon): Promise<number> {
  const metrics = await (await fetch(`${url}/metrics`)).text();
  return [...metrics.matchAll(/^service_batch_lines_total\{.*\} (\d+)$/gm)].reduce(
    (sum, [, count]) => sum + Number(count),
    0,
  );
}
