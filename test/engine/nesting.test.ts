import fs from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import type { GenerationRequest, OutputFormat } from "../../src/engine/protocol/generation.ts";
import {
  chatRequest,
  collect,
  engineSpec,
  generateText,
  NEVER,
  promptRequest,
  startEngine,
  temporaryFolder,
  writeModel,
} from "../support/engine-fixture.ts";
import { CHATML_TEMPLATE, CHATML_WORDS, tinyLlama, tokenId } from "../support/tiny-models.ts";
import { generated } from "../support/generated.ts";

const folder = temporaryFolder();
afterAll(() => fs.rmSync(folder, { recursive: true }));

const grammar = (text: string): OutputFormat => ({ type: "grammar", grammar: text });
const nested = (depth: number): OutputFormat =>
  grammar(`root ::= ${"(".repeat(depth)}"a"${")".repeat(depth)}`);
/** Grammar of `times` rules, each of which begins with the next. */
const chain = (rules: number, times = 1): OutputFormat => {
  const lines = Array.from(
    { length: rules },
    (_, at) => `r${at} ::= ${Array.from({ length: times }, () => `r${at + 1}`).join(" | ")}`,
  );
  return grammar(["root ::= r0", ...lines, `r${rules} ::= "a"`].join("\n"));
};

describe("deep nesting", () => {
  let engine: Engine;
  /** The same model with a bias for "[". */
  let brackets: (format: OutputFormat) => GenerationRequest;
  beforeAll(async () => {
    const model = tinyLlama({ chatTemplate: CHATML_TEMPLATE, words: CHATML_WORDS, context: 2048 });
    engine = await startEngine(engineSpec(writeModel(folder, "nesting", model), { contextSize: 2048 }));
    const logitBias = [
      { token: tokenId(model, "["), bias: 100 },
      { token: tokenId(model, "]"), bias: -100 },
    ];
    brackets = (format) =>
      chatRequest("Hello", { format, maxTokens: 1800, sampling: { temperature: 0, logitBias } });
  });
  afterAll(() => engine.close());

  const isWell = async (): Promise<void> => {
    const request = promptRequest("Hello", { maxTokens: 3, format: grammar('root ::= "abc"') });
    expect(await generateText(engine, { ...request, maxTokens: 8 })).toBe("abc");
  };

  test.each([
    ["groups", nested(20_000)],
    ["rules that begin with each other", chain(5_000)],
  ])("in a grammar is refused without ending the engine: %s", async (_, format) => {
    for (const request of [promptRequest("Hello", { format }), chatRequest("Hello", { format })]) {
      await expect(collect(generated(engine, request, NEVER))).rejects.toMatchObject({
        code: "invalid_parameter",
        message: expect.stringMatching(/^The grammar or schema cannot be used: /),
      });
    }
    await isWell();
  });

  test.each([
    ["groups", nested(100)],
    ["rules that begin with each other", chain(1_000)],
    ["rules that name the next twice, of which there are as many ways as stars", chain(80, 2)],
  ])("within the limit is supported: %s", async (_, format) => {
    expect(await generateText(engine, promptRequest("Hello", { format }))).toBe("a");
  });

  test.each([
    [
      "from the first character",
      grammar(`root ::= (${Array.from({ length: 3000 }, () => '"["').join(" | ")})*`),
    ],
    ["more of them with every character", grammar('root ::= "[" root "x" | "[" root [xy] | "a"')],
  ])(
    "and a grammar that can be read in too many ways stops the answer, not the engine: %s",
    async (_, format) => {
      await expect(collect(generated(engine, brackets(format), NEVER))).rejects.toMatchObject({
        code: "inference_failed",
        message: expect.stringContaining("can be read in too many ways"),
      });
      await isWell();
    },
  );

  test("in an answer ends the answer, not the engine", async () => {
    for (const format of [
      { type: "json_schema", schema: { type: "array" } },
      {
        type: "json_schema",
        schema: { $ref: "#/$defs/a", $defs: { a: { type: "array", items: { $ref: "#/$defs/a" } } } },
      },
    ] as const) {
      await expect(collect(generated(engine, brackets(format), NEVER))).rejects.toMatchObject({
        code: "inference_failed",
        message: expect.stringContaining("more than 100 levels deep"),
      });
    }
    await isWell();
  });
});
