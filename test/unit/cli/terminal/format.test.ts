import { Writable } from "node:stream";
import { describe, expect, it } from "vitest";
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatFields,
  formatTable,
  printable,
  styleFor,
} from "../../../../src/cli/terminal/format.ts";

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

describe("formatBytes", () => {
  it.each([
    [0, "0 B"],
    [999, "999 B"],
    [1000, "1.0 kB"],
    [1_250_000, "1.3 MB"],
    [99_949_999, "99.9 MB"],
    [99_950_000, "100 MB"],
    [999_600_000, "1.0 GB"],
    [4_683_073_184, "4.7 GB"],
    [2_000_000_000_000_000, "2000 TB"],
  ])("writes %d as %s", (bytes, text) => expect(formatBytes(bytes)).toBe(text));
});

describe("formatCount", () => {
  it.each([
    [0, "0"],
    [999, "999"],
    [260_000, "260K"],
    [494_032_768, "494M"],
    [999_600_000, "1.0B"],
    [1_543_714_304, "1.5B"],
    [70_553_706_496, "71B"],
  ])("writes %d as %s", (count, text) => expect(formatCount(count)).toBe(text));
});

describe("formatDuration", () => {
  it.each([
    [0, "0 ms"],
    [850.4, "850 ms"],
    [12_340, "12.3 s"],
    [59_960, "1m 00s"],
    [245_000, "4m 05s"],
    [7_800_000, "2h 10m"],
    [273_600_000, "3d 4h"],
  ])("writes %d ms as %s", (millis, text) => expect(formatDuration(millis)).toBe(text));
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
