import { describe, expect, it } from "vitest";
import { MessageLines } from "../../../../src/cli/chat/prompter.ts";

/** The messages that these lines make, and whether one is unfinished at the end. */
function read(...lines: string[]) {
  const message = new MessageLines();
  const messages = lines.map((line) => message.push(line)).filter((text) => text !== undefined);
  return { messages, unfinished: message.unfinished };
}

describe("MessageLines", () => {
  it.each([
    ["a line is a message", ["hello"], ["hello"]],
    ["an empty line too", [""], [""]],
    ["a backslash continues", ["one\\", "two\\", "three"], ["one\ntwo\nthree"]],
    ["quotes hold several lines", ['"""', "one", "", "two", '"""'], ["one\n\ntwo\n"]],
    ["quotes may stand beside text", ['"""one', 'two"""'], ["one\ntwo"]],
    ["quotes may end on the same line", ['"""one"""', "two"], ["one", "two"]],
    ["a backslash within quotes is itself", ['"""one\\', '"""'], ["one\\\n"]],
    ["quotes within a message are text", ['say """', "x"], ['say """', "x"]],
  ])("reads lines: %s", (_what, lines, messages) =>
    expect(read(...lines)).toEqual({ messages, unfinished: false }),
  );

  it("knows that a message is unfinished", () => {
    expect(read('"""one')).toEqual({ messages: [], unfinished: true });
    expect(read("one\\")).toEqual({ messages: [], unfinished: true });
  });

  it("forgets an unfinished message when reset", () => {
    const message = new MessageLines();
    message.push('"""one');
    message.reset();
    expect(message.push("two")).toBe("two");
  });
});
