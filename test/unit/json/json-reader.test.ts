import { describe, expect, test } from "vitest";
import {
  JsonReader,
  MAX_JSON_DEPTH,
  MAX_JSON_ITEMS,
  MAX_JSON_NUMBERS,
} from "../../../src/json/json-reader.ts";
import { randoms } from "../../support/randoms.ts";

function read(text: string, step = text.length): unknown {
  const reader = new JsonReader("The text");
  for (let at = 0; at < text.length; at += step) reader.write(text.slice(at, at + step));
  return reader.end();
}

/** Result of JSON.parse for a text, or its failure. */
function parsed(parse: () => unknown): unknown {
  try {
    return { value: parse() };
  } catch (error) {
    return error instanceof SyntaxError ? "refused" : error;
  }
}

const TEXTS = [
  '{"a":[1,2,{"b":null,"c":true,"d":false}],"e":"x\\u00e9\\n\\"\\\\","a":2}',
  '{"__proto__":{"x":1},"":{"":""},"constructor":1,"1":2}',
  " [ 1.5e-7 , -0 , 0.0, 1E+400 , 12345678901234567890 ] \r\n\t",
  '"\\ud83d\\ude00 \\ud83d é 中 😀 \\\\u0041 \\\\\\\\"',
  "[]",
  "{}",
  "-0",
  "true",
] as const;

const NO_JSON = [
  "",
  " ",
  "[",
  "{",
  "[1,]",
  '{"a":1,}',
  '{"a"}',
  "[1 2]",
  "01",
  "1.",
  ".5",
  "+1",
  "1e",
  "-",
  "--1",
  "1e+",
  "tru",
  "truex",
  "nul",
  "NaN",
  "'a'",
  '"',
  '"\\x"',
  '"\\u12"',
  '"a\nb"',
  '"\\',
  '{"a":1}}',
  "[]]",
  "1 2",
  "{1:2}",
  "[,1]",
  "{,}",
  '{"a":}',
  '{"a":1 "b":2}',
  "\u00a01",
  "[1}",
  '{"a":1]',
  "[:]",
  '{"a"::1}',
  "]",
];

describe("the incremental reader has the result of JSON.parse", () => {
  test.each(TEXTS)("for %s, split at any position", (text) => {
    for (const step of [1, 2, 3, 5, 7, text.length]) expect(read(text, step)).toStrictEqual(JSON.parse(text));
  });

  test("with __proto__ as a normal field", () => {
    const value = read('{"__proto__":{"polluted":1}}');
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(Object.keys(Object(value))).toEqual(["__proto__"]);
  });

  test.each(NO_JSON)("as a syntax error for %j, split at any position", (text) => {
    expect(() => JSON.parse(text)).toThrow(SyntaxError);
    for (const step of [1, 2, Math.max(1, text.length)]) expect(() => read(text, step)).toThrow(SyntaxError);
  });

  test("for texts with random damage, split at random positions", () => {
    const random = randoms(7);
    const pick = (count: number): number => Math.floor(random() * count);
    const alphabet = '{}[],:"\\ux019.eE+-tfn \n中\ud83d';
    for (let round = 0; round < 3000; round += 1) {
      const source = TEXTS[pick(TEXTS.length)]!;
      const at = pick(source.length);
      const damage = random() < 0.5 ? alphabet[pick(alphabet.length)]! : "";
      const text = source.slice(0, at) + damage + source.slice(at + pick(3));
      const step = 1 + pick(text.length + 1);
      expect({ text, step, got: parsed(() => read(text, step)) }).toStrictEqual({
        text,
        step,
        got: parsed(() => JSON.parse(text)),
      });
    }
  });
});

describe("the incremental reader at the character beyond a limit", () => {
  test.each([
    ["nested too deep", "[".repeat(MAX_JSON_DEPTH), "[", /100 levels/],
    ["fields nested too deep", '{"a":'.repeat(MAX_JSON_DEPTH), "{", /100 levels/],
    ["too many values", `[${"{},".repeat(MAX_JSON_ITEMS - 1)}`, "{", /131072 values other than numbers/],
    ["too many names", `{${'"a":1,'.repeat(MAX_JSON_ITEMS - 1)}`, '"', /131072 values/],
    ["too many numbers", `[${"1,".repeat(MAX_JSON_NUMBERS)}`, "1,", /1049600 numbers/],
  ])("rejects %s", (_, fitting, more, message) => {
    const reader = new JsonReader("The text");
    reader.write(fitting);
    expect(() => reader.write(more)).toThrow(
      expect.objectContaining({ code: "invalid_json", message: expect.stringMatching(message) }),
    );
  });

  test("a number of a million digits is rejected", () => {
    expect(() => read("1".repeat(1_000_000), 1000)).toThrow(SyntaxError);
  });
});
