import { describe, expect, it } from "vitest";
import { formatFields, formatTable } from "../../../../src/cli/terminal/table.ts";

describe("formatTable", () => {
  it("puts columns under their headers and ends no line in spaces", () => {
    expect(
      formatTable(
        ["NAME", "SIZE"],
        [
          ["tiny", "1 MB"],
          ["a-longer-name", "12 GB"],
        ],
      ),
    ).toEqual(["NAME           SIZE", "tiny           1 MB", "a-longer-name  12 GB"]);
  });

  it("counts attributes as nothing and East Asian characters as two columns", () => {
    const lines = formatTable(
      ["NAME", "N"],
      [
        ["\u001b[1m模型\u001b[22m", "1"],
        ["abcd", "2"],
      ],
    );
    expect(lines).toEqual(["NAME  N", "\u001b[1m模型\u001b[22m  1", "abcd  2"]);
  });
});

describe("formatFields", () => {
  it("puts values under each other", () => {
    expect(
      formatFields([
        ["Name", "tiny"],
        ["Architecture", "llama"],
        ["", ""],
      ]),
    ).toEqual(["Name          tiny", "Architecture  llama", ""]);
  });
});
