import { describe, expect, test } from "vitest";
import { type AdapterChoice, adapterScales } from "../../../src/inference/lora-adapters.ts";
import { nameAdapters } from "../../../src/models/registry/model-record.ts";

const MODEL = {
  alias: "base",
  adapters: [
    { path: "/a.gguf", scale: 1, name: "style" },
    { path: "/b.gguf", scale: 0.5, name: "tone" },
  ],
};
const PLAIN = { alias: "plain", adapters: [] };

const named = (path: string, name?: string) => ({
  file: { path, within: [] },
  scale: 1,
  name,
});

describe("the scales of LoRA adapters", () => {
  test("are the model's, unless the request has its own", () => {
    expect(adapterScales(MODEL, undefined)).toEqual([1, 0.5]);
    expect(adapterScales(PLAIN, undefined)).toBeUndefined();
    expect(adapterScales(PLAIN, [])).toBeUndefined();
  });

  test.for<[AdapterChoice[], number[]]>([
    [[{ name: "tone", scale: 2 }], [0, 2]],
    [[{ id: 0, scale: -1 }], [-1, 0]],
    [
      [
        { id: 1, scale: 0.1 },
        { name: "style", scale: 0.2 },
      ],
      [0.2, 0.1],
    ],
    [[], [0, 0]],
  ])("of the request %j are %j", ([chosen, scales]) => {
    expect(adapterScales(MODEL, chosen)).toEqual(scales);
  });

  test.for([
    [MODEL, [{ id: 2, scale: 1 }], /has no adapter 2; it has 0 \(style\), 1 \(tone\)\.$/],
    [MODEL, [{ name: "constructor", scale: 1 }], /has no adapter "constructor"/],
    [
      MODEL,
      [
        { id: 0, scale: 1 },
        { name: "style", scale: 1 },
      ],
      /"style" is named twice/,
    ],
    [PLAIN, [{ id: 0, scale: 1 }], /^lora: "plain" has no adapters/],
  ] as const)("of the model %j may not be %j", ([model, chosen, message]) => {
    expect(() => adapterScales(model, chosen)).toThrow(message);
  });
});

test("adapters have unique names, from the Modelfile or their files", () => {
  const adapters = [named("/x/a b.gguf"), named("/y/A-b.gguf", "a-b"), named("/z/…"), named("/a-b.GGUF")];
  expect(nameAdapters(adapters).map(({ name }) => name)).toEqual(["a-b-2", "a-b", "adapter", "a-b-3"]);
});
