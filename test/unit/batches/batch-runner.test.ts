import { expect, test } from "vitest";
import type { AnsweredLine, Batch } from "../../../src/batches/batch.ts";
import { writeOutput } from "../../../src/batches/batch-runner.ts";
import { TEXT_LINES } from "../../support/batch-machines.ts";

const MIB = 1024 * 1024;
const BATCH: Batch = {
  id: "batch_1",
  api: "test",
  owner: "",
  endpoint: "/",
  inputFile: "file-1",
  status: "finalizing",
  times: {},
  createdAt: 0,
  expiresAt: 1,
  outputLifeMs: 1,
  metadata: null,
  problems: [],
  total: 0,
  counts: { succeeded: 0, errored: 0, cancelled: 0, expired: 0 },
  usage: { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 },
};

/** Returns the output, and the maximum answers that were read at once. */
async function written(count: number, body: string): Promise<{ lines: string[]; most: number }> {
  let most = 0;
  const parts: Uint8Array[] = [];
  const answers = async (after: number, limit: number): Promise<readonly AnsweredLine[]> => {
    const numbers = Array.from({ length: Math.min(limit, count - after) }, (_, at) => after + at + 1);
    most = Math.max(most, numbers.length);
    return numbers.map((number) => ({
      number,
      customId: `${number}`,
      outcome: "succeeded",
      answer: { status: 200, requestId: "r", body },
    }));
  };
  await writeOutput(BATCH, {
    answers,
    store: { file: async () => undefined },
    folder: {
      write: async (_id, pieces) => {
        for await (const piece of pieces) parts.push(piece);
        return 0;
      },
      remove: async () => undefined,
    },
    format: { ...TEXT_LINES, formatAnswer: ({ customId, answer }) => `${customId}:${answer?.body.length}` },
    now: () => 0,
  });
  return { lines: Buffer.concat(parts).toString().trimEnd().split("\n"), most };
}

test("reads many short answers at once, and few long ones", async () => {
  const short = await written(1000, '"x"');
  expect(short.lines).toEqual(Array.from({ length: 1000 }, (_, at) => `${at + 1}:3`));
  expect(short.most).toBe(32);
  const long = await written(40, "x".repeat(5 * MIB));
  expect(long.lines).toHaveLength(40);
  expect(long.most).toBe(3);
});
