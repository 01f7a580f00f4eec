import { expect, it } from "vitest";
import { printable } from "../../../../src/cli/terminal/printable.ts";

it("takes out what a terminal would obey and leaves text, tabs, newlines and emoji", () => {
  expect(printable("a\tb\nc\u001b]0;title\u0007\u009b2Jd\re 👍")).toBe("a\tb\nc]0;title2Jde 👍");
});
