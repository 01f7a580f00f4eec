import { describe, expect, it } from "vitest";
import { MessageAssembler } from "../../../../src/cli/chat/prompter.ts";

/** Messages of these lines, and whether the last one is unfinished. */
function read(...lines: string[]) {
  const message = new MessageAssembler();
  const messages = lines.map((line) => message.push(line)).filter((text) => text !== undefined);
  return { messages, unfinished: message.unfinished };
}

describe("MessageAssembler", () => {
  it.each([
    ["a line is a message", ["hello"], ["hello"]],
    ["an empty line is a message", [""], [""]],
    ["a backslash continues", ["one\\", "two\\", "three"], ["one\ntwo\nthree"]],
    ["quotes hold several lines", ['"""', "one", "", "two", '"""'], ["one\n\ntwo\n"]],
    ["quotes may stand beside text", ['"""one', 'two"""'], ["one\ntwo"]],
    ["quotes may end on the same line", ['"""one"""', "two"], ["one", "two"]],
    ["a backslash within quotes is itself", ['"""one\\', '"""'], ["one\\\n"]],
    ["quotes within a message are text", ['say """', "x"], ['say """', "x"]],
  ])("reads lines: %s", (_what, lines, messages) =>
    expect(read(...lines)).toEqual({ messages, unfinished: false }),
  );

  it("reports an unfinished message", () => {
    expect(read('"""one')).toEqual({ messages: [], unfinished: true });
    expect(read("one\\")).toEqual({ messages: [], unfinished: true });
  });

  it("discards an unfinished message on reset", () => {
    const message = new MessageAssembler();
    message.push('"""one');
    message.reset();
    expect(message.push("two")).toBe("two");
  });
});
