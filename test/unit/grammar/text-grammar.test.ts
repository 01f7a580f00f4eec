import { describe, expect, test } from "vitest";
import { grammarAccepts } from "../../support/grammar-accepts.ts";
import { textGrammar } from "../../../src/grammar/text-grammar.ts";

/** Filters the texts that a grammar accepts. */
function accepted(grammar: string, texts: readonly string[]): string[] {
  return texts.filter((text) => grammarAccepts(grammar, text));
}

describe("a regular expression becomes a grammar of the texts that it matches completely", () => {
  test.for<[string, readonly string[], readonly string[]]>([
    [String.raw`\w+@\w+\.com\n`, ["a_1@b.com\n"], ["a@b.com", "@b.com\n"]],
    ["^(?P<verb>get|put) [^ ]+$", ["get x"], ["get ", "del x"]],
    ["(?i)yes|no", ["YES", "No"], ["yesno", ""]],
    ["a{00002}{x}{,}{1", ["aa{x}{1", "aa{x}}}{1"], ["a{00002}{x}{1", "a{x}{1"]],
    ["a{,}b", ["b", "aaab"], ["a{,}b"]],
    [String.raw`a\uD83D\uDE00`, ["a😀"], ["a"]],
    [String.raw`(?=.*\d)[a-z\d]{3}`, ["ab1", "1ab"], ["abc", "1abc"]],
  ])("%s", ([expression, good, bad]) => {
    expect(accepted(textGrammar("regex", expression), [...good, ...bad])).toEqual(good);
  });

  test.for<[string, string]>([
    [String.raw`(a)\1`, "it has a back-reference"],
    [String.raw`(a\Z)`, "it has an anchor in a group, at character 3"],
    ["(?i)x(a|b", "it has a group that is not closed, at character 6"],
    ["[a", "it ends too early"],
    ["a{10000}", "it repeats something more than 9999 times"],
    ["a{,99999}", "it repeats something more than 9999 times"],
    ["a{2,99999}", "it repeats something more than 9999 times"],
    [`a{${"9".repeat(200)}}`, "it repeats something more than 9999 times"],
    ["a{5,3}", "it has a repetition that ends before it begins"],
    ["a{2}{3}", "it has { where it means nothing or an anchor"],
    ["(?!a)(?=a)b", "it matches no text"],
    ["(?=.*a.{20})(?=.*b.{20}).*", "a text has too many possible courses"],
  ])("%s is refused: %s", ([expression, why]) => {
    expect(() => textGrammar("regex", expression)).toThrow(why);
  });
});

test("a list of texts becomes a grammar of exactly these, even with common prefixes", () => {
  expect(
    accepted(textGrammar("choice", ["yes", "no", 'a "b"\n']), ["yes", "no", 'a "b"\n', "", "y", "yesno"]),
  ).toEqual(["yes", "no", 'a "b"\n']);
  const many = Array.from({ length: 1000 }, (_, at) => `choice ${at}`);
  expect(accepted(textGrammar("choice", many), ["choice 0", "choice 999", "choice ", "choice 1000"])).toEqual(
    ["choice 0", "choice 999"],
  );
});

describe("a Lark grammar", () => {
  test("may be recursive, left-recursive and ignore whitespace", () => {
    const grammar = textGrammar(
      "lark",
      'start: sum\nsum: sum "+" term | term\nterm: INT | "(" sum ")"\n%import common.INT\n%ignore " "',
    );
    expect(accepted(grammar, ["1", " 1 + (2+ 3)+4", "((7))", "", "1 2", "(1", "+1"])).toEqual([
      "1",
      " 1 + (2+ 3)+4",
      "((7))",
    ]);
  });

  test("has repetitions, options, ranges and terminals", () => {
    const grammar = textGrammar(
      "lark",
      'start: item~2 ["!"]\nitem: LETTER+ ("0".."9")?\nLETTER: /[a-c]/i | "é"',
    );
    expect(accepted(grammar, ["ab", "aB1c!", "é0é9", "a", "a!!", "d0a"])).toEqual(["ab", "aB1c!", "é0é9"]);
  });

  test.for<[string, string]>([
    ['start: start "x"', "it is endless: start always contains itself"],
    ['begin: "x"', "it does not define start"],
    ['start: "a" ~ 1..3000', "it has more than 2000 repetitions"],
    ['start: "a" ~ 99999', "it has more than 2000 repetitions"],
    ["start: /a{99999}/", "it repeats something more than 9999 times"],
    ['start: A\nA: "a" ~ 99999', "it repeats something more than 9999 times"],
    [
      Array.from({ length: 300 }, (_, at) => `${at === 0 ? "start" : `r${at}`}: r${at + 1}`).join("\n"),
      "nested",
    ],
  ])("%j is refused: %s", ([definition, why]) => {
    expect(() => textGrammar("lark", definition)).toThrow(why);
  });
});

test("GBNF with too many alternatives is refused, but operators within literals do not count", () => {
  const lines = `root ::= ${'"a|b" | '.repeat(4000)}[|*]`;
  expect(textGrammar("gbnf", lines)).toBe(lines);
  expect(() => textGrammar("gbnf", `root ::= ${'"a" | '.repeat(9000)}"b"`)).toThrow(
    "more than 8192 alternatives",
  );
  expect(() => textGrammar("gbnf", `root ::= ${'("a"?){0,2000} '.repeat(9)}`)).toThrow(
    "more than 8192 alternatives",
  );
});

describe("GBNF that llama.cpp cannot parse is refused with the position", () => {
  test.for<[string, string]>([
    ['root ::= "red" |||| (', 'it needs ")" in line 1, column 22'],
    ['answer ::= "a"', 'it has no rule named "root"'],
    ['root ::= "a" | b', 'it has no rule named "b"'],
    [
      'root ::= a\na ::= "x" & "y"',
      "it needs a part of the rule or the end of its line in line 2, column 11",
    ],
    ['root ::= ("x" | a)\na ::= b "x"\nb ::= a*', 'its rule "a" begins with itself'],
    [`root ::= ${"(".repeat(500)}`, "nested too deeply"],
    [`root ::= "${"a".repeat(300_000)}"`, "it has more than 262144 characters"],
  ])("%s", ([definition, why]) => {
    expect(() => textGrammar("gbnf", definition)).toThrow(why);
  });

  test.each([
    "root ::= <think> [^<]* !<[12]> (",
    String.raw`root ::= [a\-z]+? # comment`,
    'root ::= ("a"\n | "b" {2, 3})*\n\n# end',
    "root ::= |",
    'root ::= a{0} "[" root "]" | "x" a? a?\na ::= "y" root | root{0,0}',
    `${Array.from({ length: 9000 }, (_, at) => `${at === 0 ? "root" : `r${at}`} ::= r${at + 1}`).join("\n")}\nr9000 ::= "a"`,
    `root ::= ${" ".repeat(200_000)}"a"`,
  ])("is not refused if llama.cpp may accept it: %#", (definition) => {
    expect(textGrammar("gbnf", definition)).toBe(definition);
  });
});

test("GBNF may have names with underscores, which llama.cpp does not support", () => {
  const grammar = textGrammar(
    "guided",
    'root ::= my_rule "a_b" [a_b] # my_rule\nmy_rule ::= "x" | my-rule\nmy-rule ::= "y"',
  );
  expect(accepted(grammar, ["xa_b_", "ya_ba", "xa-b_"])).toEqual(["xa_b_", "ya_ba"]);
});
