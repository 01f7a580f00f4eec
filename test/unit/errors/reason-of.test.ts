import { describe, expect, test } from "vitest";
import { codeOrReason, reasonOf } from "../../../src/errors/reason-of.ts";

const refused = Object.assign(new Error("connect ECONNREFUSED ::1:4222"), { code: "ECONNREFUSED" });

describe("the reason of a failure", () => {
  test.each([
    ["its message", new Error("the disk is full"), "the disk is full"],
    [
      "the message of the first of several failures",
      new AggregateError([refused, new Error("other")]),
      refused.message,
    ],
    ["its own message before those of several failures", new AggregateError([refused], "all"), "all"],
    ["the message of its cause, where it has none", new Error("", { cause: refused }), refused.message],
    ["its code, where it has nothing else", Object.assign(new Error(), { code: "ENOTREAL" }), "ENOTREAL"],
    ["the code of several failures without any", Object.assign(new AggregateError([]), { code: "E1" }), "E1"],
    ["its name at least", new RangeError(""), "RangeError"],
    ["what was thrown, if it is no error", "a text", "a text"],
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

describe("the system's word for a failure", () => {
  test("is its code", () => expect(codeOrReason(refused)).toBe("ECONNREFUSED"));

  test("is its message where the system has no code", () => {
    expect(codeOrReason(Object.assign(new Error("rm: Structure needs cleaning"), { code: "" }))).toBe(
      "rm: Structure needs cleaning",
    );
  });
});
