import { describe, expect, test } from "vitest";
import { findTabGpu } from "../../../src/tab/tab-model.ts";

const LIMITS = { maxComputeWorkgroupStorageSize: 32_768, maxBufferSize: 2 ** 31 };

interface Adapter {
  readonly features?: readonly string[];
  readonly limits?: object;
  readonly info?: object;
}

/** Global scope of a worker in a browser with one GPU adapter, or none. */
function browserWith(adapter: Adapter | null): { navigator: object } {
  const requestAdapter = async (): Promise<object | null> =>
    adapter && {
      features: new Set(adapter.features ?? ["shader-f16", "subgroups"]),
      limits: { ...LIMITS, ...adapter.limits },
      info: { vendor: "acme", architecture: "one", device: "", description: "", ...adapter.info },
    };
  return { navigator: { gpu: { requestAdapter } } };
}

describe("the GPU of a page", () => {
  test("is the adapter that the browser offers, with the name that it reports", async () => {
    const found = await findTabGpu(true, browserWith({}));
    expect(found).toMatchObject({ settings: { mode: "auto" }, problem: undefined });
    expect(found.adapter).toMatchObject({ backend: "webgpu", name: "acme one", software: false });
    const described = await findTabGpu(true, browserWith({ info: { description: "Acme One 4000" } }));
    expect(described.adapter?.name).toBe("Acme One 4000");
  });

  test("is not requested unless the page asks for it", async () => {
    expect(await findTabGpu(false, browserWith({}))).toMatchObject({
      settings: { mode: "off" },
      adapter: undefined,
      problem: undefined,
    });
  });

  test.each([
    ["has no WebGPU", { navigator: {} }, /has no WebGPU/],
    ["has no adapter", browserWith(null), /no GPU for it/],
    ["has only one without 16-bit floats", browserWith({ features: [] }), /shader-f16/],
    [
      "has only one with small workgroups",
      browserWith({ limits: { maxComputeWorkgroupStorageSize: 8192 } }),
      /8192 bytes/,
    ],
    [
      "has only one that computes on the CPU",
      browserWith({ info: { architecture: "swiftshader" } }),
      /computes on the CPU/,
    ],
  ])("is missing with an explanation in a browser that %s", async (_what, browser, problem) => {
    const found = await findTabGpu(true, browser);
    expect(found.adapter).toBeUndefined();
    expect(found.problem).toMatch(problem);
  });

  test("may compute on the CPU if the page allows it", async () => {
    const found = await findTabGpu("software", browserWith({ info: { architecture: "swiftshader" } }));
    expect(found.adapter).toMatchObject({ software: true });
  });
});
