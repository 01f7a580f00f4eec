import { expect, test } from "vitest";
import type { BatchClient, BatchObject } from "../../../../src/cli/batch/batch-client.ts";
import { followBatch } from "../../../../src/cli/batch/follow-batch.ts";
import { fakeIo } from "../run-cli.ts";

function batchOf(change: Partial<BatchObject>): BatchObject {
  const counts = { total: 2, completed: 0, failed: 0 };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what is looked at of a batch
  return { id: "batch_1", status: "in_progress", request_counts: counts, ...change } as BatchObject;
}

test("without a terminal, one line tells that a batch waits, and one that it goes on", async () => {
  const waiting = "waits for a machine that has tiny";
  const later = [{}, { waiting }, { waiting }, {}, {}, { status: "completed" as const }].map(batchOf);
  const get = async (): Promise<BatchObject> => later.shift() ?? batchOf({ status: "failed" });
  const { io, output } = fakeIo();
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what it uses of a client
  const last = await followBatch(io, { get } as unknown as BatchClient, batchOf({}));
  expect(last.status).toBe("completed");
  expect(output().stderr).toBe(`batch_1 ${waiting}.\nbatch_1 goes on.\n`);
});
