import { Writable } from "node:stream";
import { expect, onTestFinished, test, vi } from "vitest";
import type { BatchClient, BatchObject } from "../../../../src/cli/batch/batch-client.ts";
import { BatchDisplay, followBatch } from "../../../../src/cli/batch/follow-batch.ts";
import { fakeIo } from "../run-cli.ts";

function batchOf(change: Partial<BatchObject>): BatchObject {
  const counts = { total: 2, completed: 0, failed: 0 };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the fields that the test needs
  return { id: "batch_1", status: "in_progress", request_counts: counts, ...change } as BatchObject;
}

test("prints a line when a batch waits and one when it continues, without a terminal", async () => {
  const waiting = "waits for a machine that has tiny";
  const later = [{}, { waiting }, { waiting }, {}, {}, { status: "completed" as const }].map(batchOf);
  const get = async (): Promise<BatchObject> => later.shift() ?? batchOf({ status: "failed" });
  const { io, output } = fakeIo();
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the method that the test needs
  const last = await followBatch(io, { get } as unknown as BatchClient, batchOf({}));
  expect(last.status).toBe("completed");
  expect(output().stderr).toBe(`batch_1 ${waiting}.\nbatch_1 goes on.\n`);
});

function batchDisplayBatchOf(completed: number, change: Partial<BatchObject> = {}): BatchObject {
  const counts = { total: 10, completed, failed: 0 };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the fields that the test needs
  return { status: "in_progress", request_counts: counts, ...change } as BatchObject;
}

const nothing = (): boolean => true;
const CURSOR = { cursorTo: nothing, clearLine: nothing, moveCursor: nothing };

test("the progress bar shows the remaining time, or why the batch waits", () => {
  // The bar is drawn at intervals.
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  let shown = "";
  const stream = new Writable({
    write(chunk, _encoding, done) {
      shown += String(chunk);
      done();
    },
  });
  let now = 0;
  const output = Object.assign(stream, { isTTY: true, columns: 120, ...CURSOR });
  using display = new BatchDisplay(output, () => now);
  const look = (millis: number, batch: BatchObject): string => {
    now = millis;
    shown = "";
    display.show(batch);
    vi.advanceTimersByTime(500);
    return shown;
  };
  look(0, batchDisplayBatchOf(0));
  expect(look(1000, batchDisplayBatchOf(5))).toContain("5 of 10, 1.0 s left");
  expect(look(60_000, batchDisplayBatchOf(5))).toContain("5 of 10, in_progress");
  const waiting = "waits for a machine that has tiny";
  expect(look(61_000, batchDisplayBatchOf(5, { waiting }))).toContain(`5 of 10, ${waiting}`);
  const counts = { total: 10, completed: 5, failed: 5, unanswered: 4 };
  expect(look(62_000, batchDisplayBatchOf(5, { status: "cancelled", request_counts: counts }))).toContain(
    "6 of 10, 1 failed, cancelled",
  );
});
