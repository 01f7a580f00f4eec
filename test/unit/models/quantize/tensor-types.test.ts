import { expect, test } from "vitest";
import { findFileType } from "../../../../src/models/quantize/quantize-options.ts";
import { chooseTypes } from "../../../../src/models/quantize/tensor-types.ts";

/** Choices of native llama.cpp, recorded for every architecture and number of blocks. */
test.each([
  ["llama", 80, 8, "Q5_K"],
  ["llama", 80, 1, "Q3_K"],
  ["llama", 79, 8, "Q3_K"],
  ["llama-embed", 80, 8, "Q5_K"],
  ["llama-embed", 80, 1, "Q3_K"],
  ["deci", 80, 1, "Q5_K"],
  ["olmo", 80, 1, "Q5_K"],
  ["qwen2", 80, 1, "Q5_K"],
  ["jais2", 68, 1, "Q5_K"],
  ["jais2", 80, 8, "Q3_K"],
  ["qwen2vl", 80, 8, "Q3_K"],
])(
  "attention values of %s with %i blocks and %i query heads per key head are %s",
  (architecture, blocks, headsPerKey, type) => {
    const tensor = { name: "blk.0.attn_v.weight", shape: [256, 2], type: "F16" };
    const model = { architecture, blocks, headsPerKey, experts: 0 };
    expect(chooseTypes([tensor], model, findFileType("Q3_K_S"))).toEqual([{ type, isFallback: false }]);
  },
);
