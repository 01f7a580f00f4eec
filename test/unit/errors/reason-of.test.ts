import { describe, expect, test } from "vitest";
import { codeOrReason, reasonOf } from "../../../src/errors/service-error.ts";

const refused = Object.assign(new Error("connect ECONNREFUSED ::1:4222"), { code: "ECONNREFUSED" });

describe("the reason of a failure", () => {
  test.each([
    ["its message", new Error("the disk is full"), "the disk is full"],
    [
      "the message of the first of several failures",
      new AggregateError([refused, new Error("other")]),
      refused.message,
    ],
    ["its own message rather than those of inner errors", new AggregateError([refused], "all"), "all"],
    ["the message of its cause, if it has none", new Error("", { cause: refused }), refused.message],
    ["its code, if it has no message", Object.assign(new Error(), { code: "ENOTREAL" }), "ENOTREAL"],
    [
      "the code of an aggregate without inner errors",
      Object.assign(new AggregateError([]), { code: "E1" }),
      "E1",
    ],
    ["its name, if it has nothing else", new RangeError(""), "RangeError"],
    ["the thrown value, if it is not an error", "a text", "a text"],
  ])("is %s", (_, thrown, reason) => expect(reasonOf(thrown)).toBe(reason));

  test.each([
    undefined,
    null,
    "",
    {},
    [],
    Object.assign(new Error(""), { code: "" }),
    new Error("", { cause: "" }),
  ])("is never empty (%o)", (thrown) => expect(reasonOf(thrown)).not.toBe(""));
});

describe("the code or reason of a failure", () => {
  test("is its code", () => expect(codeOrReason(refused)).toBe("ECONNREFUSED"));

  test("is its message if the system has no code", () => {
    expect(codeOrReason(Object.assign(new Error("rm: Structure needs cleaning"), { code: "" }))).toBe(
      "rm: Structure needs cleaning",
    );
  });
});
