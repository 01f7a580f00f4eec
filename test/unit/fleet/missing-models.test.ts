import { expect, test } from "vitest";
import type { SharedBatch } from "../../../src/fleet/batches/batch-record.ts";
import { MissingModels } from "../../../src/fleet/batches/shared-runner.ts";

const model = { files: "0".repeat(64), settings: "0".repeat(64) };
const groups = ["tiny", "big", ""].map((name) => ({ name, model }));

test("logs once that a batch waits, with the models of the lines that are left", async () => {
  const away = new Set<string>();
  const left = new Set([0, 1]);
  const logged: string[] = [];
  const missing = new MissingModels({
    models: { isMissing: ({ name }) => away.has(name) },
    runs: { groups: async () => left },
    logger: { warn: (_fields: unknown, text?: string) => void logged.push(text ?? "") },
  });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what is looked at of a batch
  const batch = { id: "batch", status: "in_progress", groups } as unknown as SharedBatch;
  await missing.logOnce(batch);
  expect(logged).toEqual([]);
  for (const name of ["tiny", ""]) away.add(name);
  for (let count = 0; count < 3; count += 1) await missing.logOnce(batch);
  expect(logged).toEqual(["A batch waits for a machine that has tiny"]);
  left.add(2);
  expect(await missing.reason(batch)).toBe(
    "waits for a machine that has tiny and for one that has the default model that it began with",
  );
  expect(await missing.reason({ ...batch, status: "cancelling" })).toBeUndefined();
  away.clear();
  await missing.logOnce(batch);
  away.add("tiny");
  await missing.logOnce(batch);
  expect(logged).toHaveLength(2);
});
