import { describe, expect, test } from "vitest";
import { answerCheck, grammarCompiler } from "../../../src/inference/schema-compiler.ts";
import type { GrammarWork } from "../../../src/grammar/grammar-work.ts";
import { longestTurn } from "../../support/longest-turn.ts";

const NEVER = new AbortController().signal;
const here = grammarCompiler(undefined, NEVER);

describe("the check of a complete answer", () => {
  test("describes the problem", async () => {
    const check = answerCheck({ type: "json_schema", schema: { uniqueItems: true } }, here);
    expect(await check("[1,2]")).toBeUndefined();
    expect(await check("[1,1]")).toMatch(/uniqueItems/);
    expect(await check("[1,")).toMatch(/not complete JSON/);
  });

  test("runs off-thread for a large answer, whatever the schema", async () => {
    const sent: GrammarWork[] = [];
    const compile = grammarCompiler((work) => {
      sent.push(work);
      return Promise.resolve({ kind: "checked", failure: undefined });
    }, NEVER);
    const anyOf = Array.from({ length: 4000 }, (_, at) => ({ const: at }));
    const check = answerCheck(
      { type: "json_schema", schema: { items: { anyOf }, uniqueItems: true } },
      compile,
    );
    const text = JSON.stringify(Array.from({ length: 3000 }, (_, at) => at));
    // Here it would take most of a second.
    expect(await longestTurn(async () => await check(text))).toBeLessThan(300);
    expect(sent).toMatchObject([{ kind: "check", text }]);
  });

  test("fails with advice if it would take too long", async () => {
    const given = grammarCompiler(
      () => Promise.resolve({ kind: "unsayable", message: "it is too large" }),
      NEVER,
    );
    const check = answerCheck({ type: "json_schema", schema: { uniqueItems: true } }, given);
    const text = JSON.stringify(Array.from({ length: 4000 }, (_, at) => at));
    await expect(check(text)).rejects.toMatchObject({
      code: "inference_failed",
      message: expect.stringContaining("simplify the schema"),
    });
  });
});
