import { expect, test, vi } from "vitest";
import type { FleetMachine, FleetModel } from "../../../../src/ui/monitor/monitor-api.ts";

// The modules of the page read its document and its address when they are loaded.
vi.stubGlobal("document", { querySelector: () => null });
vi.stubGlobal("location", { origin: "http://page", host: "page" });
const { describeModel, machineFacts } = await import("../../../../src/ui/monitor/monitor-api.ts");

const GIB = 1024 ** 3;

const MACHINE: FleetMachine = {
  id: "1",
  name: "first",
  self: true,
  state: "ready",
  version: "1.2.3",
  engine: "0123456789abcdef",
  processor: { name: "Ryzen 7", system: "linux x64", usable: 16, cores: 8 },
  gpus: [],
  memory: { total_bytes: 64 * GIB, models_bytes: 48 * GIB, used_bytes: 1.5 * GIB },
  running: 1200,
  waiting: 3,
  models: [],
};

const MODEL: FleetModel = { alias: "mini", loaded: false, size_bytes: GIB, files: "f", settings: "s" };

test("a machine of the fleet is described by its load and hardware", () => {
  expect(machineFacts(MACHINE)).toEqual([
    ["Requests", "1,200 running, 3 waiting"],
    ["Memory of models", "1.6 GB of 51.5 GB"],
    ["Processors", "16 × Ryzen 7"],
    ["GPU", "none"],
    ["Version", "1.2.3"],
    ["Engine", "01234567"],
  ]);
  expect(machineFacts({ ...MACHINE, waiting: 0 })[0]).toEqual(["Requests", "1,200 running"]);
});

test("the description of a machine names all GPUs", () => {
  const gpus = ["RTX 4090", "Radeon"].map((name) => ({ name, backend: "vulkan" }));
  expect(machineFacts({ ...MACHINE, gpus })).toContainEqual(["GPU", "RTX 4090, Radeon"]);
});

test.each<[Partial<FleetModel>, string]>([
  [{}, "1.1 GB"],
  [{ decode_tokens_per_second: 0 }, "1.1 GB"],
  [{ decode_tokens_per_second: 12.345 }, "1.1 GB, 12.3 tokens/s"],
  [{ loaded: true, running: 1, waiting: 0, slots: 4 }, "1 of 4 requests"],
  [
    { loaded: true, running: 4, waiting: 2, slots: 4, decode_tokens_per_second: 80 },
    "4 of 4 requests, 2 waiting, 80 tokens/s",
  ],
])("a fleet model with %j is described as: %s", (part, words) => {
  expect(describeModel({ ...MODEL, ...part })).toBe(words);
});
