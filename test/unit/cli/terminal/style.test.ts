import { Writable } from "node:stream";
import { describe, expect, it } from "vitest";
import { styleFor } from "../../../../src/cli/terminal/style.ts";

const terminal = Object.assign(new Writable(), { isTTY: true });

describe("styleFor", () => {
  it("styles on a terminal", () => {
    expect(styleFor(terminal, {}).red("no")).toBe("\u001b[31mno\u001b[39m");
  });

  it.each([
    ["a pipe", new Writable(), {}],
    ["NO_COLOR", terminal, { NO_COLOR: "1" }],
    ["a dumb terminal", terminal, { TERM: "dumb" }],
  ])("leaves the text alone with %s", (_what, output, env) => {
    const style = styleFor(output, env);
    expect([style.bold("a"), style.dim("b"), style.red("c")]).toEqual(["a", "b", "c"]);
  });

  it("takes an empty NO_COLOR as none", () => {
    expect(styleFor(terminal, { NO_COLOR: "" }).bold("a")).not.toBe("a");
  });
});
