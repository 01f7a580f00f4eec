import { describe, expect, test } from "vitest";
import { compileGrammar } from "../../../src/grammar/grammar-work.ts";
import { testApp } from "../../support/test-app.ts";

/** Maximum length of a grammar. */
const MOST = 256 * 1024;

/** Grammar of maximum length, made of parts between a beginning and an end. */
function longest(begin: string, part: string, end = ""): string {
  return begin + part.repeat(Math.floor((MOST - begin.length - end.length) / part.length)) + end;
}

describe("a grammar of 256 KiB", () => {
  test.each([
    ["of one literal", longest('root ::= "', "a", '"')],
    ["of classes", longest("root ::= ", "[a]")],
    ["of one class", longest("root ::= [", "ab", "]")],
    ["of groups", longest("root ::= ", "([a])")],
    ["of rules", longest("root ::= [a]", "\nr ::= [a]")],
  ])("%s is accepted", async (_what, grammar) => {
    const all = testApp();
    const answer = await all.post("/v1/completions", { prompt: "hi", grammar });
    expect(answer.status).toBe(200);
    expect(all.lastRequest().format).toEqual({ type: "grammar", grammar });
  });

  test.each([
    ["that cannot be read", longest("root ::= ", "[a]\n "), /it needs a rule's name in line 2/],
    ["without an end", longest('root ::= "', "a"), /it needs a character/],
    ["of classes without ends", longest("root ::= ", "["), /it needs a character/],
    ["with a repetition of blanks", longest('root ::= "a"{0,', "\t", "x"), /it needs a part of the rule/],
    ["of literals without ends", longest("root ::= ", '"\\'), /it needs an escape/],
    ["that begins with itself", longest("root ::= root ", "[a]"), /its rule "root" begins with itself/],
  ])("%s is refused before the model is loaded", async (_what, grammar, message) => {
    const all = testApp();
    const answer = await all.post("/v1/completions", { prompt: "hi", grammar, model: "none" });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({
      error: { param: "grammar", message: expect.stringMatching(message) },
    });
  });

  test.each([
    ["that cannot be read", longest("root ::= root ", "[a]")],
    ["of classes without ends", longest("root ::= ", "[")],
  ])("%s is reported with the name of its field", async (_what, guided_grammar) => {
    const answer = await testApp().post("/v1/completions", { prompt: "hi", guided_grammar });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({
      error: { param: "guided_grammar", message: expect.stringMatching(/^guided_grammar: cannot/) },
    });
  });

  test("is compiled once for all choices of a request, as are grammars of tools", async () => {
    const compiled: string[] = [];
    const all = testApp({
      compileOffThread: async (work) => {
        compiled.push(work.kind);
        return compileGrammar(work);
      },
    });
    const grammar = longest("root ::= ", "[a]");
    expect((await all.post("/v1/completions", { prompt: "hi", grammar, n: 4 })).status).toBe(200);
    expect(compiled).toEqual(["texts"]);
    const definition = Array.from({ length: 2000 }, (_, index) => `w${index}`).join("|");
    const format = { type: "grammar", grammar: { syntax: "regex", definition } };
    const tools = [{ type: "custom", custom: { name: "a", format } }];
    const messages = [{ role: "user", content: "hi" }];
    expect((await all.post("/v1/chat/completions", { messages, tools, n: 4 })).status).toBe(200);
    expect(compiled.filter((kind) => kind === "pattern")).toEqual(["pattern"]);
  });
});
