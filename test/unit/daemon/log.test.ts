import { Writable } from "node:stream";
import { describe, expect, test } from "vitest";
import { createAnnouncer, createLogger, textLine } from "../../../src/daemon/create-logger.ts";

function capture(isTTY: boolean) {
  let text = "";
  const output = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString();
      done();
    },
  });
  return { output: Object.assign(output, { isTTY }), text: () => text };
}

describe("the log", () => {
  test("is text on a terminal and JSON otherwise", () => {
    const terminal = capture(true);
    createLogger({ level: "info", format: "auto" }, terminal.output).info({ model: "mini" }, "loaded");
    expect(terminal.text()).toMatch(/^\d\d:\d\d:\d\d\.\d{3} INFO {2}loaded model=mini\n$/);
    const file = capture(false);
    createLogger({ level: "info", format: "auto" }, file.output).info({ model: "mini" }, "loaded");
    expect(JSON.parse(file.text())).toMatchObject({ level: 30, model: "mini", msg: "loaded" });
  });

  test("announcements have the format of the log at any level", () => {
    const terminal = capture(true);
    createAnnouncer({ level: "error", format: "auto" }, terminal.output)("Ready");
    expect(terminal.text()).toBe("Ready\n");
    const file = capture(false);
    createAnnouncer({ level: "error", format: "auto" }, file.output)("Ready");
    expect(JSON.parse(file.text())).toMatchObject({ level: 30, msg: "Ready" });
    const chosen = capture(false);
    createAnnouncer({ level: "error", format: "text" }, chosen.output)("Ready");
    expect(chosen.text()).toBe("Ready\n");
  });

  test("redacts secrets in logged objects", () => {
    const file = capture(false);
    const logger = createLogger({ level: "info", format: "json" }, file.output);
    logger.info(
      { hub_token: "hush", headers: { authorization: "hush" }, config: { api_keys: ["hush"] } },
      "x",
    );
    expect(file.text()).not.toContain("hush");
  });

  test("names cannot forge lines or control the terminal", () => {
    const line = textLine(
      JSON.stringify({ level: 30, time: 0, msg: "a\nb\u001b[2J", model: "x\n00:00:00 INFO fake\u001b[31m" }),
    );
    expect(line.split("\n")).toHaveLength(2);
    expect(line).not.toContain("\u001b");
    expect(line).toBe('00:00:00.000 INFO  a\\nb\uFFFD[2J model="x\\n00:00:00 INFO fake\\u001b[31m"\n');
  });
});
