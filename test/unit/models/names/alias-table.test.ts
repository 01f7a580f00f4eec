import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ConfigError } from "../../../../src/config/read-config-file.ts";
import { readAliases } from "../../../../src/models/names/alias-table.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), "aliases-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

function write(name: string, text: string): string {
  const file = path.join(folder, name);
  writeFileSync(file, text);
  return file;
}

const shippedText = `
[models."big:7b"]
repo = "owner/big-GGUF"
file = "big-Q4_K_M.gguf"
[models.small]
repo = "owner/small-GGUF"
file = "small-Q8_0.gguf"
`;

describe("a user's alias file", () => {
  it("precedes the shipped aliases and comes first", () => {
    const shipped = write("shipped.toml", shippedText);
    const userFile = write(
      "own.toml",
      `[models."Small:latest"]\nrepo = "me/mine"\nfile = "mine.gguf"\n[models.new]\nrepo = "me/new"\nfile = "n.gguf"`,
    );
    const table = readAliases(userFile, shipped);
    expect([...table.keys()]).toEqual(["Small:latest", "new", "big:7b"]);
    expect(table.get("Small:latest")?.repo).toBe("me/mine");
  });

  it("needs only a repository and a file", () => {
    const userFile = write("own.toml", `[models.new]\nrepo = "me/new"\nfile = "n.gguf"`);
    expect(readAliases(userFile).get("new")).toEqual({ repo: "me/new", file: "n.gguf", tags: [] });
  });

  const entry = `repo = "o/r"\nfile = "f.gguf"`;
  it.each([
    ["a missing file", `[models.x]\nrepo = "o/r"`, /models\.x\.file/],
    [
      "a repository without owner",
      `[models.x]\nrepo = "r"\nfile = "f.gguf"`,
      /models\.x\.repo: must be owner\/repo/,
    ],
    [
      "a file outside of the repository",
      `[models.x]\nrepo = "o/r"\nfile = "../f.gguf"`,
      /models\.x\.file: must be/,
    ],
    ["a file of another kind", `[models.x]\nrepo = "o/r"\nfile = "f.bin"`, /models\.x\.file: must be/],
    ["an unknown key", `[models.x]\n${entry}\nsize = 3`, /unknown key models\.x\.size/],
    ["a name with a slash", `[models."a/b"]\n${entry}`, /models\.a\/b: must be name or name:tag/],
    ["a name that is a path", `[models."../b"]\n${entry}`, /must be name or name:tag/],
    [
      "the same name twice in other letters",
      `[models.x]\n${entry}\n[models."X:latest"]\n${entry}`,
      /the same alias/,
    ],
    ["text that is not TOML", `[models.x\n`, /line 1/],
  ])("with %s is rejected, and the error names file and key", (_, text, message) => {
    const userFile = write("own.toml", text);
    expect(() => readAliases(userFile)).toThrow(ConfigError);
    expect(() => readAliases(userFile)).toThrow(message);
    expect(() => readAliases(userFile)).toThrow(userFile);
  });

  it("that does not exist is an error", () => {
    expect(() => readAliases(path.join(folder, "none.toml"))).toThrow(/none\.toml cannot be read/);
  });
});
