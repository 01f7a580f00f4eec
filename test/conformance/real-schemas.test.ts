import { expect, test } from "vitest";
import { z } from "zod";
import {
  checkAgainstCalls,
  checkAgainstSchema,
  compileCalls,
  compileSchema,
} from "../../src/grammar/compile-grammar.ts";
import { SchemaDocument } from "../../src/grammar/schema-document.ts";
import { sampleGrammar } from "../support/sample-grammar.ts";
import { judge } from "./judge.ts";
import { REAL_SCHEMAS } from "./real-schemas.ts";

const SAMPLES = 200;

test.each(Object.entries(REAL_SCHEMAS))(
  "%s: what the grammar and the check let through fits",
  (_, schema) => {
    const { grammar, ignored, checked } = compileSchema(schema);
    const check = (text: string) => checkAgainstSchema(schema, text);
    // The judge understands only what is JSON Schema.
    const validate =
      judge(schema, "draft2020-12") ??
      judge(schema, "draft7") ??
      judge(new SchemaDocument(schema).root, "draft2020-12");
    expect(validate, "the judge reads the schema").toBeDefined();
    expect(ignored).toEqual([]);
    let fitting = 0;
    for (const text of sampleGrammar(grammar, SAMPLES)) {
      const failure = check(text);
      if (failure && checked.length > 0) continue;
      fitting += 1;
      expect([failure, validate?.(JSON.parse(text)), text]).toEqual([undefined, true, text]);
    }
    expect(fitting).toBeGreaterThan(0);
  },
);

test("all of them at once are tools of one grammar", () => {
  const tools = Object.entries(REAL_SCHEMAS)
    .slice(0, 20)
    .map(([name, parameters]) => ({ name, parameters }));
  const { grammar, checked } = compileCalls(tools);
  const check = (text: string) => checkAgainstCalls({ tools }, text);
  const texts = sampleGrammar(grammar, SAMPLES);
  const called = new Set(texts.map((text) => z.object({ name: z.string() }).parse(JSON.parse(text)).name));
  expect(called.size).toBeGreaterThan(10);
  const misfits = texts.map(check).filter((failure) => failure !== undefined);
  // Only what is said to be left to the check fails it.
  expect(misfits.filter(({ keyword }) => !checked.includes(keyword))).toEqual([]);
});
