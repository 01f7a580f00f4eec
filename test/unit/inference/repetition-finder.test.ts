import { describe, expect, it } from "vitest";
import { RepetitionFinder } from "../../../src/inference/repetition-finder.ts";

/** As a tokenizer might: words with the blank before them, digits, marks, and runs of blanks. */
function pieces(text: string): string[] {
  return text.match(/ ?\p{L}+|\d|\n| +|[^\p{L}\d\s]/gu) ?? [];
}

/** How many pieces a text has until it is taken for a loop; undefined: it never is. */
function foundAfter(tokens: readonly string[]): number | undefined {
  const finder = new RepetitionFinder();
  const at = tokens.findIndex((token) => finder.add(token));
  return at < 0 ? undefined : at + 1;
}

const times = (count: number, span: readonly string[]): string[] =>
  Array.from({ length: count }, () => span).flat();
const lines = (count: number, line: (index: number) => string): string[] =>
  pieces(Array.from({ length: count }, (_, index) => line(index)).join("\n"));

const STORY = pieces(
  "Once upon a time there was a princess who lived in a tower by the sea, and she was bored. ",
);
const INTRODUCTION = lines(
  12,
  (index) => `Chapter ${index}: what happened on day ${index * 7} of the journey.`,
);

describe("a text that runs in circles", () => {
  it.each([
    ["a single token", [" the"], 256],
    ["blanks, as in a grammar that allows any number", [" "], 256],
    ["line breaks and blanks", ["\n", "    "], 256],
    ["an exclamation mark", ["!"], 256],
    ["a sentence", STORY, 512],
  ])("is found after a few hundred tokens of it: %s", (_what, span, after) => {
    expect(foundAfter(times(2000, span))).toBe(after);
  });

  it("is found wherever it begins", () => {
    const after = foundAfter([...INTRODUCTION, ...times(2000, STORY)]);
    expect(after).toBeGreaterThan(INTRODUCTION.length + 500);
    expect(after).toBeLessThan(INTRODUCTION.length + 516);
  });

  it("is found after four times of a long span", () => {
    const chapter = lines(
      40,
      (index) => `And then number ${index} said that it had seen ${index * 3} of them.`,
    );
    expect(foundAfter(times(10, chapter))).toBe(4 * chapter.length);
  });

  it("is found in data, too, but only when there is far more of it than arrays have", () => {
    expect(foundAfter(times(5000, ["0", ","]))).toBe(4096);
  });

  it("is found after a change of the span", () => {
    const after = foundAfter([...times(50, [" ha"]), ...times(100, [" so", " what"]), ...times(900, STORY)]);
    expect(after).toBeDefined();
  });
});

describe("a text that repeats much and still goes on", () => {
  it.each([
    ["a story", lines(200, (index) => `${STORY.join("")} She counted ${index} ships that morning.`)],
    ["a table whose rows differ in a number", lines(300, (index) => `| ${index} | n/a | yes | no | n/a |`)],
    ["a table of equal rows", lines(20, () => "| n/a | n/a | yes | no |")],
    ["code with repeated lines", lines(400, (index) => `    values.push(table[${index % 7}][${index}]);`)],
    ["equal lines of code", lines(30, () => "    await step();")],
    ["an array of a thousand zeros", pieces(`[${times(1000, ["0"]).join(",")}]`)],
    ["a matrix of zeros", lines(28, () => `[${times(28, ["0"]).join(", ")}],`)],
    ["an image in hexadecimal numbers", lines(20, () => times(16, ["0x00, "]).join(""))],
    ["a rule of dashes", times(200, ["-"])],
    [
      "JSON objects that differ in an ID",
      lines(300, (index) => `{"id": ${index}, "name": null, "tags": []},`),
    ],
    ["a laugh", times(60, [" ha"])],
    ["counting", pieces(Array.from({ length: 3000 }, (_, index) => index).join(" "))],
  ])("is not stopped: %s", (_what, tokens) => {
    expect(foundAfter(tokens)).toBeUndefined();
  });

  it("takes as long for each token of a long text as for each of a short one", () => {
    // Where every token cost as much as there are tokens before it, this would take minutes.
    const length = 100_000;
    const tokens = Array.from({ length }, (_, index) =>
      index % 200 === 199 ? String(index) : STORY[index % STORY.length]!,
    );
    expect(foundAfter(tokens)).toBeUndefined();
  });
});
