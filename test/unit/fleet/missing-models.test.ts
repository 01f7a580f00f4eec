import { expect, test } from "vitest";
import type { SharedBatch } from "../../../src/fleet/batches/batch-record.ts";
import { MissingModels } from "../../../src/fleet/batches/shared-runner.ts";

const model = { files: "0".repeat(64), settings: "0".repeat(64) };
const groups = ["tiny", "big", ""].map((name) => ({ name, model }));

test("the log is told once that a batch waits, and for which models of the lines that are left", async () => {
  const away = new Set<string>();
  const left = new Set([0, 1]);
  const told: string[] = [];
  const missing = new MissingModels({
    models: { isAway: ({ name }) => away.has(name) },
    runs: { groups: async () => left },
    logger: { warn: (_fields: unknown, text?: string) => void told.push(text ?? "") },
  });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what is looked at of a batch
  const batch = { id: "batch", status: "in_progress", groups } as unknown as SharedBatch;
  await missing.tell(batch);
  expect(told).toEqual([]);
  for (const name of ["tiny", ""]) away.add(name);
  for (let count = 0; count < 3; count += 1) await missing.tell(batch);
  expect(told).toEqual(["A batch waits for a machine that has tiny"]);
  left.add(2);
  expect(await missing.reason(batch)).toBe(
    "waits for a machine that has tiny and for one that has the default model that it began with",
  );
  expect(await missing.reason({ ...batch, status: "cancelling" })).toBeUndefined();
  away.clear();
  await missing.tell(batch);
  away.add("tiny");
  await missing.tell(batch);
  expect(told).toHaveLength(2);
});
