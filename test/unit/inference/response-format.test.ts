import { describe, expect, test } from "vitest";
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
});
