import { expect, test } from "vitest";
import { mapFields, readField } from "../../../../scripts/test/withstand/model-files/field-map.ts";
import { ggufHeader } from "../../../support/gguf-writer.ts";
import { tinyLlama } from "../../../support/tiny-models.ts";

test("the byte ranges of a header locate its numbers", () => {
  const model = tinyLlama({ embedding: 96 });
  const header = ggufHeader(model);
  const fields = new Map(mapFields(header).map((field) => [field.name, field]));
  const read = (name: string): number => {
    const field = fields.get(name);
    return field ? Number(readField(header, field)) : NaN;
  };
  expect(read("version")).toBe(3);
  expect(read("number of keys")).toBe(Object.keys(model.metadata).length);
  expect(read("dimension 0 of tensor 0")).toBe(96);
  expect(read("offset of tensor 0")).toBe(0);
  const last = model.tensors.length - 1;
  expect(read(`length of tensor ${last}`)).toBe(model.tensors[last]?.name.length);
});
