import { describe, expect, test } from "vitest";
import { GrammarWriter } from "../../../src/grammar/gbnf/grammar-writer.ts";
import {
  UnsupportedGrammarError,
  SchemaTooComplexError,
  WorkBudget,
} from "../../../src/grammar/schema-errors.ts";
import { TextSet } from "../../../src/grammar/text/text-set.ts";
import { writeString } from "../../../src/grammar/text/write-text.ts";
import { longestTurn } from "../../support/longest-turn.ts";
import { sampleGrammar } from "../../support/sample-grammar.ts";
import { randomNumbers } from "../../support/random-numbers.ts";

const PATTERNS = [
  "",
  "foo",
  "^foo$",
  "^foo|bar$",
  "^(foo|foobar|fob)+$",
  String.raw`^[\w.+-]+@[\w-]+\.[a-z]{2,3}$`,
  String.raw`^(?=.*[A-Z])(?=.*\d).{3,}$`,
  "^(?!foo)",
  "^(?!.*b).*a",
  "^(?:(?!ab).)*$",
  String.raw`\bfoo\b`,
  String.raw`o\Bo`,
  "(?<=^|,)a",
  "(?<!a)b",
  "(?<=ab?)o",
  "a(?=b)b|c(?!o)",
  "(?:a(?=b)|b){2,4}f",
  "(a*)*b",
  "(a|b?){2,3}$",
  "(?:^a|b)o",
  "a^b|x*^f",
  "a$|b$o",
  String.raw`^[^\d\s"\\]*$`,
  String.raw`^\u0061\x62\n?\t*$`,
  String.raw`^\p{Lu}\P{L}*$`,
  String.raw`^[\s\S]{2}$`,
  "^.$",
  String.raw`^"b\\ \/$`,
  "^[a-f]{0,5}b{2}$",
  "^(?<year>a)(?:b)+?$",
  "^[^]$",
  "[]|a",
  String.raw`^\-a\_$`,
  "^(?!$)a*$",
];

/** Short texts of few characters, which patterns often match. */
function randomText(random: () => number): string {
  const alphabet = Array.from('aabbofx,A1 \n"\\/@.-_é😀');
  const length = Math.floor(random() * 8);
  return Array.from({ length }, () => alphabet[Math.floor(random() * alphabet.length)]).join("");
}

function regExp(source: string): RegExp {
  try {
    return new RegExp(source, "u");
  } catch {
    return new RegExp(source);
  }
}

function grammarOf(set: TextSet, form: "json" | "raw" = "json"): string {
  const writer = new GrammarWriter();
  return writer.toString(writeString(writer, set, { form }));
}

describe("the texts of a pattern", () => {
  test.each(PATTERNS)("are those that JavaScript matches: %s", (source) => {
    const set = TextSet.pattern(source, new WorkBudget());
    const [expression, random] = [regExp(source), randomNumbers(1)];
    const texts = [
      "",
      "foo",
      "foobar",
      "a",
      "ab",
      "b",
      ...Array.from({ length: 300 }, () => randomText(random)),
    ];
    expect(texts.filter((text) => set.has(text) !== expression.test(text))).toEqual([]);
    expect(texts.filter((text) => set.not().has(text) === expression.test(text))).toEqual([]);
  });

  test.each(PATTERNS)("are those that its grammar accepts: %s", (source) => {
    const set = TextSet.pattern(source, new WorkBudget());
    const expression = regExp(source);
    const wrong = sampleGrammar(grammarOf(set), 100).filter((text) => !expression.test(JSON.parse(text)));
    expect(wrong).toEqual([]);
    expect(sampleGrammar(grammarOf(set, "raw"), 30).filter((text) => !expression.test(text))).toEqual([]);
  });

  test("need no automaton for a length limit", () => {
    const budget = new WorkBudget();
    const words = TextSet.pattern("^[a-z]+$", budget).and(TextSet.lengthBetween(3, 5_000, budget));
    expect(grammarOf(words)).toContain("[a-z]");
    const lengths = sampleGrammar(grammarOf(words), 50).map((text) => JSON.parse(text).length);
    expect(Math.min(...lengths)).toBe(3);
    expect(words.isEmpty()).toBe(false);
  });

  test("count a long minimum length in code points", () => {
    const set = TextSet.lengthBetween(4_100, 4_100, new WorkBudget());
    const lengths = sampleGrammar(grammarOf(set), 2).map((text) => Array.from(JSON.parse(text)).length);
    expect(lengths).toEqual([4_100, 4_100]);
  });

  test("cannot have a back-reference, which is not regular", () => {
    expect(() => TextSet.pattern(String.raw`(a)\1`, new WorkBudget())).toThrow(UnsupportedGrammarError);
    expect(() => TextSet.pattern("(", new WorkBudget())).toThrow(/not a valid regular expression/);
  });
});

describe("a set of texts", () => {
  const budget = new WorkBudget();
  const pattern = (source: string): TextSet => TextSet.pattern(source, budget);

  test("is empty if its parts exclude each other", () => {
    expect(pattern("^a").and(pattern("^b")).isEmpty()).toBe(true);
    expect(pattern("^a").and(pattern("b$")).isEmpty()).toBe(false);
    expect(pattern("a").and(pattern("a").not()).isEmpty()).toBe(true);
    expect(
      pattern("^a{3}$")
        .and(TextSet.lengthBetween(4, 5, budget))
        .isEmpty(),
    ).toBe(true);
  });
});

test.each([
  "(a{1000}){1000}$|b",
  "(a|a)*(a|aa)*(?:a|b)*a(?:a|b){14}$",
  "(?:a|b)*a(?:a|b){200}",
  "(?=.*a{50}b{50})".repeat(60),
  `${"(a?".repeat(90)}${"){50}".repeat(90)}`,
  String.raw`[\p{L}\p{N}]{30}.*[\p{L}\p{Lu}]{40}`,
  `^${Array.from({ length: 500 }, (_, at) => String.fromCodePoint(0x4e00 + at * 3)).join("|")}`,
])("a hostile pattern is processed fast: %s", async (source) => {
  const budget = new WorkBudget();
  let outcome: unknown;
  const longest = await longestTurn(async () => {
    try {
      outcome = grammarOf(TextSet.pattern(source, budget).and(TextSet.pattern("^(?!x).*$", budget)));
    } catch (error) {
      outcome = error instanceof SchemaTooComplexError ? error.message : error;
    }
  });
  expect(outcome).toEqual(expect.any(String));
  expect(longest).toBeLessThan(5000);
});
