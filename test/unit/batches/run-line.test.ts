import { pino } from "pino";
import { expect, test } from "vitest";
import type { Batch } from "../../../src/batches/batch.ts";
import { LineRunner } from "../../../src/batches/run-line.ts";
import { TEXT_LINES, USAGE } from "../../support/batch-machines.ts";

const BATCH: Batch = {
  id: "batch_1",
  api: "test",
  owner: "",
  endpoint: "/",
  inputFile: "file-1",
  status: "in_progress",
  times: {},
  createdAt: 0,
  expiresAt: 1,
  outputLifeMs: 1,
  metadata: null,
  problems: [],
  total: 1,
  counts: { succeeded: 0, errored: 0, cancelled: 0, expired: 0 },
  usage: USAGE,
};

test.each([
  ["overloaded", 5, true],
  ["overloaded", 1, false],
  ["fleet_unreachable", 5, false],
])(
  "a line that is refused with %s for %i s blocks all lines: %s",
  async (code, retryAfterSecs, blocksAll) => {
    const body = JSON.stringify({ error: { message: "Later.", code } });
    const runner = new LineRunner(
      BATCH,
      TEXT_LINES,
      {
        saveAnswer: async () => true,
        folder: { text: async () => '"m/line"' },
        runLine: async () => ({ status: 503, body, retryable: true, retryAfterSecs }),
        logger: pino({ level: "silent" }),
        onLine: () => undefined,
        now: () => 1000,
      },
      new AbortController().signal,
    );
    const line = { number: 1, start: 0, length: 8, model: "m", customId: "line", sortKey: "" };
    const retry = await runner.run({ line, failures: 0, refusals: 0 });
    expect(retry).toMatchObject({ blocksAll });
  },
);
