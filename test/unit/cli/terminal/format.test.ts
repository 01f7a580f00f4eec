import { Writable } from "node:stream";
import { describe, expect, it } from "vitest";
import { formatFields, formatTable, printable, styleFor } from "../../../../src/cli/terminal/format.ts";

describe("formatTable", () => {
  it("aligns columns without trailing spaces", () => {
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

  it("counts no columns for attributes and two for East Asian characters", () => {
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
  it("aligns values", () => {
    expect(
      formatFields([
        ["Name", "tiny"],
        ["Architecture", "llama"],
        ["", ""],
      ]),
    ).toEqual(["Name          tiny", "Architecture  llama", ""]);
  });
});

const terminal = Object.assign(new Writable(), { isTTY: true });

describe("styleFor", () => {
  it("returns attributes for a terminal", () => {
    expect(styleFor(terminal, {}).red("no")).toBe("\u001b[31mno\u001b[39m");
  });

  it.each([
    ["a pipe", new Writable(), {}],
    ["NO_COLOR", terminal, { NO_COLOR: "1" }],
    ["a dumb terminal", terminal, { TERM: "dumb" }],
  ])("returns plain text for %s", (_what, output, env) => {
    const style = styleFor(output, env);
    expect([style.bold("a"), style.dim("b"), style.red("c")]).toEqual(["a", "b", "c"]);
  });

  it("ignores an empty NO_COLOR", () => {
    expect(styleFor(terminal, { NO_COLOR: "" }).bold("a")).not.toBe("a");
  });
});

it("printable removes control characters and keeps text, tabs, newlines and emoji", () => {
  expect(printable("a\tb\nc\u001b]0;title\u0007\u009b2Jd\re 👍")).toBe("a\tb\nc]0;title2Jde 👍");
});
