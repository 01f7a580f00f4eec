import { describe, expect, test } from "vitest";
import { continueGrammar } from "../../../src/grammar/gbnf/continue-grammar.ts";
import { GrammarSyntaxError, SchemaTooComplexError } from "../../../src/grammar/schema-errors.ts";
import { grammarAccepts } from "../../support/grammar-accepts.ts";
import { sampleGrammar } from "../../support/sample-grammar.ts";

const GRAMMARS = [
  'root ::= "abc" [0-9]{2,4} ("x" | "yz")*',
  'root ::= "(" root ")" | "" # nested',
  'root ::= item ("," item)*\nitem ::= [^,\\x00-\\x1F]+ |\n  "\\"" . "\\""',
  'root ::= (\n  "a"? # first\n  b{3}\n)+\nb ::= "b" | "é" | [\\u4e00-\\u4e03\\]-]',
  'root ::= s0\ns0 ::= "a" s1 | "b"\ns1 ::= "a" s0 | ""',
];

describe("the continuation of a grammar", () => {
  test.each(GRAMMARS)("accepts the rest of each text, and no other: %s", (grammar) => {
    for (const text of sampleGrammar(grammar, 20)) {
      expect(grammarAccepts(grammar, text)).toBe(true);
      const characters = Array.from(text);
      for (const at of new Set([0, 1, characters.length >> 1, characters.length])) {
        const beginning = characters.slice(0, at).join("");
        const rest = continueGrammar(grammar, beginning) ?? "";
        expect(grammarAccepts(rest, characters.slice(at).join(""))).toBe(true);
        for (const other of sampleGrammar(rest, 5, at))
          expect(grammarAccepts(grammar, beginning + other)).toBe(true);
      }
    }
  });

  test("is undefined after a beginning that does not match", () => {
    expect(continueGrammar('root ::= "abc"', "abd")).toBeUndefined();
    expect(continueGrammar('root ::= "abc"', "abcd")).toBeUndefined();
  });

  test("keeps a repetition short", () => {
    expect(continueGrammar("root ::= [a-z]{2,2000} end\nend ::= [.]", "abc")).toBe(
      'root ::= [a-z]{0,1997} end\nend ::= "."\n',
    );
  });
});

test.each(['root ::= "', "root = a", "a ::= b", 'root ::= ("a"', 'root ::= "\\q"', 'root ::= "a" )'])(
  "what is not a grammar is refused: %s",
  (grammar) => {
    expect(() => continueGrammar(grammar, "a")).toThrow(GrammarSyntaxError);
  },
);

test("a grammar with exponential ambiguity is processed fast", () => {
  expect(() => continueGrammar('root ::= root "a" | "a"', "aaaa")).toThrow(SchemaTooComplexError);
});
