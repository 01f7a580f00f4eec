import { afterAll, describe, expect, test } from "vitest";
import { GrammarThread } from "../../../src/daemon/grammars/grammar-thread.ts";
import { type GrammarWork, makeGrammar } from "../../../src/schema/grammar-work.ts";
import { longestTurn } from "../../support/longest-turn.ts";

const NEVER = new AbortController().signal;
const thread = new GrammarThread();
afterAll(async () => await thread.close());

/** Takes a tenth of a second of a processor, or more. */
const LARGE: GrammarWork = {
  kind: "schema",
  schema: {
    type: "object",
    properties: Object.fromEntries(
      Array.from({ length: 80 }, (_, at) => [
        `p${at}`,
        { type: "string", pattern: `^(a|b${at})*[a-z]{${at % 20},40}$` },
      ]),
    ),
  },
};

describe("the thread that makes grammars", () => {
  test.each<[string, GrammarWork]>([
    ["a schema", { kind: "schema", schema: { type: "object", properties: { a: { pattern: "^x+$" } } } }],
    [
      "a schema that nothing fits",
      { kind: "schema", schema: { allOf: [{ type: "null" }, { type: "string" }] } },
    ],
    ["the calls of tools", { kind: "calls", tools: [{ name: "add" }], answer: { type: "object" } }],
    ["the rest of an answer", { kind: "rest", grammar: 'root ::= "yes" | "no"', beginning: "y" }],
    ["an answer that has begun otherwise", { kind: "rest", grammar: 'root ::= "yes"', beginning: "n" }],
  ])("makes what would be made here: %s", async (_what, work) => {
    expect(await thread.make(work, NEVER)).toEqual(makeGrammar(work));
  });

  test("does not keep the event loop from other requests while it makes a large one", async () => {
    const here = await longestTurn(async () => void makeGrammar(LARGE));
    const there = await longestTurn(async () => await thread.make(LARGE, NEVER));
    expect(there).toBeLessThan(here / 3);
  });

  test("answers those who wait no longer with their reason, and the next ones", async () => {
    const leave = new AbortController();
    const left = [thread.make(LARGE, leave.signal), thread.make(LARGE, leave.signal)];
    const next = thread.make({ kind: "schema", schema: { type: "null" } }, NEVER);
    leave.abort(new Error("gone"));
    for (const each of left) await expect(each).rejects.toThrow("gone");
    expect(await next).toMatchObject({ kind: "made" });
  });

  test("refuses what it has not made when it ends, and begins anew", async () => {
    const late = thread.make(LARGE, NEVER);
    await new Promise((resolve) => setImmediate(resolve));
    await thread.close();
    expect(await late).toMatchObject({ kind: "refused", reason: expect.stringContaining("too large") });
    expect(await thread.make({ kind: "schema", schema: true }, NEVER)).toMatchObject({ kind: "made" });
  });
});
