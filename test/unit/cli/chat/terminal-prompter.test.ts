import { setImmediate as turn } from "node:timers/promises";
import { PassThrough } from "node:stream";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { TerminalPrompter } from "../../../../src/cli/chat/terminal-prompter.ts";
import { fakeIo } from "../run-cli.ts";

const CTRL_C = "\u0003";
const CTRL_D = "\u0004";
const UP = "\u001b[A";
const paste = (text: string) => `\u001b[200~${text}\u001b[201~`;

let keyboard: PassThrough;
let prompter: TerminalPrompter;
let shown: () => string;
beforeEach(() => {
  keyboard = new PassThrough();
  const { io, output } = fakeIo();
  shown = () => output().stdout;
  prompter = new TerminalPrompter({
    ...io,
    stdin: Object.assign(keyboard, { isTTY: true, setRawMode: () => {} }),
  });
});
afterEach(() => prompter[Symbol.dispose]());

/** Presses keys at the prompt and returns the event. */
async function press(keys: string) {
  const event = prompter.next();
  keyboard.write(keys);
  return event;
}

describe("TerminalPrompter", () => {
  it("shows a prompt and echoes the typed text", async () => {
    expect(await press("hello\r")).toEqual({ type: "message", text: "hello" });
    expect(shown()).toContain("> ");
    expect(shown()).toContain("hello");
  });

  it("recalls earlier messages with the arrow keys", async () => {
    await press("first\r");
    await press("second\r");
    expect(await press(`${UP}${UP}\r`)).toEqual({ type: "message", text: "first" });
  });

  it("shows a continuation prompt within a message", async () => {
    expect(await press('"""one\rtwo"""\r')).toEqual({ type: "message", text: "one\ntwo" });
    expect(shown()).toContain("... ");
  });

  it("treats pasted lines as one message, sent by Enter", async () => {
    expect(await press(`${paste("one\rtwo\rthree")}!\r`)).toEqual({
      type: "message",
      text: "one\ntwo\nthree!",
    });
  });

  it("reports Ctrl-C and clears the line", async () => {
    expect(await press(`half a thought${CTRL_C}`)).toEqual({ type: "interrupt" });
    expect(await press("new\r")).toEqual({ type: "message", text: "new" });
  });

  it("discards an unfinished message on Ctrl-C", async () => {
    expect(await press(`"""one\r${CTRL_C}`)).toEqual({ type: "interrupt" });
    expect(await press("two\r")).toEqual({ type: "message", text: "two" });
  });

  it("ends on Ctrl-D", async () => {
    expect(await press(CTRL_D)).toEqual({ type: "end" });
    expect(await prompter.next()).toEqual({ type: "end" });
  });

  it("passes Ctrl-C to the answer in progress and buffers text typed meanwhile without echo", async () => {
    await press("question\r");
    let cancelled = 0;
    {
      using _ = prompter.catchInterrupts(() => cancelled++);
      const before = shown();
      keyboard.write(`${CTRL_C}next one\r`);
      await turn();
      expect(cancelled).toBe(1);
      expect(shown()).toBe(before);
    }
    expect(await prompter.next()).toEqual({ type: "message", text: "next one" });
  });
});
