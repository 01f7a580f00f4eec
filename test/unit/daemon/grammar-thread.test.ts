import { afterAll, describe, expect, test } from "vitest";
import { GrammarThread } from "../../../src/daemon/grammars/grammar-thread.ts";
import { type GrammarWork, compileGrammar } from "../../../src/grammar/grammar-work.ts";
import { longestTurn } from "../../support/longest-turn.ts";

const NEVER = new AbortController().signal;
const thread = new GrammarThread();
afterAll(async () => await thread.close());

/** Schema whose compilation takes at least a tenth of a second. */
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

describe("GrammarThread", () => {
  test.each<[string, GrammarWork]>([
    ["a schema", { kind: "schema", schema: { type: "object", properties: { a: { pattern: "^x+$" } } } }],
    [
      "a schema that nothing fits",
      { kind: "schema", schema: { allOf: [{ type: "null" }, { type: "string" }] } },
    ],
    ["the calls of tools", { kind: "calls", tools: [{ name: "add" }], answer: { type: "object" } }],
    ["the continuation of an answer", { kind: "rest", grammar: 'root ::= "yes" | "no"', beginning: "y" }],
    [
      "what llama.cpp leaves out of schemas",
      { kind: "llama", schemas: [{ type: "object" }, { properties: { a: { not: {}, minimum: "x" } } }] },
    ],
    [
      "the check of an answer",
      { kind: "check", against: { kind: "schema", schema: { uniqueItems: true } }, text: "[1,1]" },
    ],
    [
      "the check of a call that fits",
      {
        kind: "check",
        against: { kind: "calls", tools: [{ name: "add" }] },
        text: '{"name":"add","arguments":{}}',
      },
    ],
    ["an answer that has begun otherwise", { kind: "rest", grammar: 'root ::= "yes"', beginning: "n" }],
  ])("returns the result of compileGrammar: %s", async (_what, work) => {
    expect(await thread.make(work, NEVER)).toEqual(compileGrammar(work));
  });

  test("does not block the event loop while it compiles a large grammar", async () => {
    const here = await longestTurn(async () => void compileGrammar(LARGE));
    const there = await longestTurn(async () => await thread.make(LARGE, NEVER));
    expect(there).toBeLessThan(here / 3);
  });

  test("rejects aborted jobs and continues with the next one", async () => {
    const leave = new AbortController();
    const left = [thread.make(LARGE, leave.signal), thread.make(LARGE, leave.signal)];
    const next = thread.make({ kind: "schema", schema: { type: "null" } }, NEVER);
    leave.abort(new Error("gone"));
    for (const each of left) await expect(each).rejects.toThrow("gone");
    expect(await next).toMatchObject({ kind: "made" });
  });

  test("stops work for which no request waits anymore", async () => {
    // Takes longer than this test may.
    const endless: GrammarWork = {
      kind: "check",
      against: {
        kind: "schema",
        schema: {
          allOf: Array.from({ length: 60_000 }, (_, at) => ({ pattern: `(a|b)*a(a|b){14}c{${at}}` })),
        },
      },
      text: JSON.stringify("ab".repeat(500)),
    };
    const patient = new GrammarThread(120_000);
    const leave = new AbortController();
    const left = patient.make(endless, leave.signal);
    const next = patient.make({ kind: "schema", schema: { type: "null" } }, NEVER);
    await new Promise((resolve) => setTimeout(resolve, 20));
    leave.abort(new Error("gone"));
    await expect(left).rejects.toThrow("gone");
    expect(await next).toMatchObject({ kind: "made" });
    await patient.close();
  }, 100_000);

  test("compiles a grammar once for several requests", async () => {
    const leave = new AbortController();
    const left = thread.make(LARGE, leave.signal);
    const stay = [thread.make(LARGE, NEVER), thread.make(LARGE, NEVER)];
    leave.abort(new Error("gone"));
    await expect(left).rejects.toThrow("gone");
    const [first, second] = await Promise.all(stay);
    expect(first).toMatchObject({ kind: "made" });
    expect(second).toBe(first);
  });

  test.each<[string, GrammarWork, object]>([
    ["a schema", LARGE, { kind: "refused", reason: expect.stringContaining("too large") }],
    [
      "a list of texts",
      { kind: "texts", language: "choice", source: Array.from({ length: 20_000 }, (_, at) => `${at * at}`) },
      { kind: "unsayable", message: expect.stringContaining("too long") },
    ],
    [
      "the rest of an answer",
      { kind: "rest", grammar: 'root ::= ("a" | "a" root)*', beginning: "a".repeat(50_000) },
      { kind: "made", grammar: undefined },
    ],
    [
      "the check of an answer",
      {
        kind: "check",
        against: { kind: "schema", schema: { items: { oneOf: Array.from({ length: 999 }, () => ({})) } } },
        text: JSON.stringify(Array.from({ length: 999 }, (_, at) => at)),
      },
      { kind: "unsayable" },
    ],
    [
      "what llama.cpp leaves out of schemas",
      { kind: "llama", schemas: [{ pattern: "(a|b)?".repeat(40_000) }] },
      { kind: "llama", schemas: [{ dropped: [{ path: "", keyword: "parameters" }], ignored: [] }] },
    ],
  ])("refuses work that takes too long: %s", async (_what, work, result) => {
    const impatient = new GrammarThread(1);
    expect(await impatient.make(work, NEVER)).toMatchObject(result);
    await impatient.close();
  });

  test("rejects with an internal error and restarts the thread", async () => {
    const broken: GrammarWork = JSON.parse('{ "kind": "calls", "tools": null }');
    await expect(thread.make(broken, NEVER)).rejects.toThrow("null");
    expect(await thread.make({ kind: "schema", schema: true }, NEVER)).toMatchObject({ kind: "made" });
  });

  test("rejects running work when it is closed", async () => {
    const late = thread.make(LARGE, NEVER);
    await new Promise((resolve) => setImmediate(resolve));
    await Promise.all([expect(late).rejects.toMatchObject({ code: "shutting_down" }), thread.close()]);
  });
});
