import { Writable } from "node:stream";
import { expect, onTestFinished, test, vi } from "vitest";
import type { BatchObject } from "../../../../src/cli/batch/batch-client.ts";
import { BatchDisplay } from "../../../../src/cli/terminal/batch-display.ts";

function batchOf(completed: number, change: Partial<BatchObject> = {}): BatchObject {
  const counts = { total: 10, completed, failed: 0 };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what is shown of a batch
  return { status: "in_progress", request_counts: counts, ...change } as BatchObject;
}

const nothing = (): boolean => true;
const CURSOR = { cursorTo: nothing, clearLine: nothing, moveCursor: nothing };

test("the time that is left is shown while lines are answered, and else why none are", () => {
  // The bar is drawn so often in a second.
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
  look(0, batchOf(0));
  expect(look(1000, batchOf(5))).toContain("5 of 10, 1.0 s left");
  expect(look(60_000, batchOf(5))).toContain("5 of 10, in_progress");
  const waiting = "waits for a machine that has tiny";
  expect(look(61_000, batchOf(5, { waiting }))).toContain(`5 of 10, ${waiting}`);
  const counts = { total: 10, completed: 5, failed: 5, unanswered: 4 };
  expect(look(62_000, batchOf(5, { status: "cancelled", request_counts: counts }))).toContain(
    "6 of 10, 1 failed, cancelled",
  );
});
