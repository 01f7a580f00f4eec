import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { wordingProblems } from "../../support/wording.ts";

const ROOT = path.join(import.meta.dirname, "../../..");
/** Has the words themselves. */
const DICTIONARY = "test/support/wording.ts";

function filesOf(folder: string): string[] {
  return globSync(`${folder}/**/*.{ts,tsx,mjs}`, { cwd: ROOT, exclude: ["**/node_modules/**"] })
    .map((file) => file.replaceAll("\\", "/"))
    .filter((file) => file !== DICTIONARY);
}

test.each(["src", "wasm", "scripts", "test"])(
  "comments, names and titles of tests in %s have no word that only insiders understand",
  (folder) => {
    const files = filesOf(folder);
    expect(files.length).toBeGreaterThan(5);
    const problems = files.flatMap((file) =>
      wordingProblems(file, readFileSync(path.join(ROOT, file), "utf8")),
    );
    expect(problems).toEqual([]);
  },
);

describe("wordingProblems", () => {
  test.each([
    ["/** Whether it runs. */\nexport const runs = true;", "begins"],
    ["/** Runs in a room. */\nexport const runs = true;", '"room"'],
    ["export const toldRoutes = 1;", '"told"'],
    ["class A { #wish = 1; }", '"wish"'],
    ['test.each([1])("is told", () => {});', "a title"],
  ])("reports %j", (source, expected) => {
    expect(wordingProblems("a.ts", source).join("\n")).toContain(expected);
  });

  test.each([
    "/** Sends a heartbeat of `beat`. */\nexport const heartbeat = 1;",
    "// The time of the wall clock.\nexport const now = 1;",
    'export const text = "the room";',
  ])("accepts %j", (source) => {
    expect(wordingProblems("a.ts", source)).toEqual([]);
  });
});
