import { describe, expect, test } from "vitest";
import { WorkBudget } from "../../../src/grammar/schema-errors.ts";
import { toJsonPattern as convert } from "../../../src/grammar/text/print-pattern.ts";

const toJsonPattern = (pattern: string): string | undefined => convert(pattern, new WorkBudget());

/** Texts to try each pattern with. */
const TEXTS = [
  "",
  "a",
  "b",
  "ab",
  "abc",
  "xabcx",
  "7",
  "42",
  "a1",
  "-",
  ".",
  "/",
  '"',
  '""',
  "\\",
  "\n",
  "\n\n",
  "\t",
  "é",
  "日本",
  "😀",
  " ",
  "a b",
  "A",
  "_",
  "]",
  "a]",
  "\u0001",
  "{2}",
];

const written = (text: string): string => JSON.stringify(text).slice(1, -1);
const isEscaped = (text: string): boolean => written(text) !== text;

describe("a pattern for encoded JSON strings", () => {
  test.each([
    "^\\d{2}$",
    "^\\w+$",
    "^\\s$",
    "^[\\w-]+$",
    "^(a|b)c?$",
    "^(?:ab)+$",
    "abc",
    "^abc",
    "c$",
    "^a|b$",
    "^é$",
    "^[à-ÿ]$",
    "^\\u00e9$",
    "^\\x41$",
    "^\\u{1F600}$",
    "^😀$",
    "^[😀-🙏]$",
    "^\\n{2}$",
    "^[\\n]+$",
    '^"+$',
    '^["\\\\]{1,2}$',
    "^[!-~]$",
    "^[a-z]+?$",
    "^\\/$",
    "^[\\]]$",
    "^[.]$",
    "^\\.$",
    "^$",
    "^(|a)b$",
    "^a{0,1}b*$",
    "^[A-z]$",
    "^\\{2\\}$",
    "a*",
    "^(^a$)$",
  ])("matches the JSON encoding of the same texts: %s", (pattern) => {
    const [asked, made] = [new RegExp(pattern, "u"), new RegExp(toJsonPattern(pattern) ?? "", "u")];
    // Text around a pattern without anchors is not escaped.
    const isAnchored = pattern.startsWith("^") && pattern.endsWith("$") && !pattern.includes("|b$");
    for (const text of TEXTS.filter((one) => isAnchored || !isEscaped(one))) {
      expect([text, made.test(written(text))]).toEqual([text, asked.test(text)]);
    }
  });

  test.each(["^.{2}$", "^[^a]$", "^\\D$", "^[^\\d\\s]+$", "^[\\S]$", "^\\W$"])(
    "%s leaves out what JSON escapes, and nothing else",
    (pattern) => {
      const [asked, made] = [new RegExp(pattern, "u"), new RegExp(toJsonPattern(pattern) ?? "", "u")];
      for (const text of TEXTS) {
        const isPlain = JSON.stringify(text) === `"${text}"`;
        expect([text, made.test(text)]).toEqual([text, isPlain && asked.test(text)]);
      }
    },
  );

  test.each([
    ["^(?:.|\\n)*$", "a\nb"],
    ["^(.|[\\r\\n])+$", "\r\n"],
    ['^(?:"|.)$', '"'],
    ["^(?:[^a]|\\n)$", "\n"],
    ["^(?:\\n|\\S)$", "\n"],
    ["^[\\x20-\\x7e\\u0080-\\uffff]*$", 'a"\\'],
  ])("%s allows what is named beside a complement", (pattern, text) => {
    expect(text).toMatch(new RegExp(pattern, "u"));
    expect(written(text)).toMatch(new RegExp(toJsonPattern(pattern) ?? "", "u"));
  });

  test.each(["^(?=a)a$", "^\\bab$", "^(a)\\1$", "^\\p{L}$", "^a^b$", "^[^\\s\\S]$", "^(a$", "^[a", "^a\\"])(
    "is undefined for %s, which no grammar can express",
    (pattern) => {
      expect(toJsonPattern(pattern)).toBeUndefined();
    },
  );

  test("keeps long patterns, such as those of tools with Lark grammars", () => {
    const pattern = `^${"ab".repeat(5_000)}$`;
    expect(toJsonPattern(pattern)).toBe(pattern);
  });

  test("does not exhaust the stack on thousands of nested groups", () => {
    const pattern = `^${"(".repeat(50_000)}a${")".repeat(50_000)}$`;
    expect(toJsonPattern(pattern)).toBeUndefined();
  });
});
