import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";

const HAND_OVER = new URL("../../../src/launch/hand-over.mjs", import.meta.url).href;
const isWindows = process.platform === "win32";
const running: ChildProcess[] = [];

afterEach(() => {
  for (const child of running.splice(0)) child.kill("SIGKILL");
});

/** A process that hands over to `node --eval program`, by a child or (execve) by replacing itself. */
function launcher(program: string, { way = "child", binary = process.execPath, options = "{}" } = {}) {
  const script = `
    ${way === "child" ? "process.execve = undefined;" : ""}
    const { handOver } = await import(${JSON.stringify(HAND_OVER)});
    await handOver(${JSON.stringify(binary)}, ["--input-type=module", "--eval", ${JSON.stringify(program)}], ${options});`;
  // A new session has no controlling terminal, as under a service manager.
  const child = spawn(process.execPath, ["--input-type=module", "--eval", script], { detached: true });
  running.push(child);
  return child;
}

function end(child: ChildProcess): Promise<{ code: number | null; signal: string | null }> {
  return new Promise((resolve) => child.once("exit", (code, signal) => resolve({ code, signal })));
}

const WAITS_FOR_SIGNAL = (signal: string) => `
  process.once("${signal}", () => { console.log("got ${signal}"); process.exit(5); });
  process.stdin.resume();
  console.log("pid", process.pid);`;

// Windows cannot replace a process.
describe.each(isWindows ? ["child"] : ["child", "execve"])("handing over by %s", (way) => {
  it("passes the exit code on", async () => {
    expect(await end(launcher("process.exit(7)", { way }))).toEqual({ code: 7, signal: null });
  });

  it("passes standard input and output on", async () => {
    const child = launcher("process.stdin.pipe(process.stdout)", { way });
    child.stdin.end("through and through");
    expect(await text(child.stdout)).toBe("through and through");
  });

  // Windows has no signals.
  it.skipIf(isWindows).each(["SIGTERM", "SIGINT", "SIGHUP"] as const)("passes %s on", async (signal) => {
    const child = launcher(WAITS_FOR_SIGNAL(signal), { way });
    const output = text(child.stdout);
    await once(child.stdout, "data");
    child.kill(signal);
    expect(await end(child)).toEqual({ code: 5, signal: null });
    expect(await output).toContain(`got ${signal}`);
  });

  it.skipIf(isWindows)("ends by the signal that ended the program", async () => {
    expect(await end(launcher("process.kill(process.pid, 'SIGKILL')", { way }))).toEqual({
      code: null,
      signal: "SIGKILL",
    });
  });
});

describe("handing over", () => {
  it.skipIf(isWindows)("replaces the process if Node can do that", async () => {
    const child = launcher("console.log(process.pid)", { way: "execve" });
    expect(Number(await text(child.stdout))).toBe(child.pid);
  });

  it("forwards signals before the program starts", async () => {
    const options = `{ spawn() { console.log(process.listenerCount("SIGTERM")); throw new Error("enough"); } }`;
    expect(await text(launcher("", { options }).stdout)).toBe("1\n");
  });

  it("reports a binary that cannot be started", async () => {
    const child = launcher("", { binary: "/nowhere/node" });
    const errors = text(child.stderr);
    expect((await end(child)).code).toBe(126);
    expect(await errors).toContain("cannot start /nowhere/node");
  });
});

/** A process that runs a program as a child. */
function parentOf(program: string): ChildProcessWithoutNullStreams {
  const script = `
    const { runChild } = await import(${JSON.stringify(HAND_OVER)});
    await runChild(${JSON.stringify(program)}, ["first"]);`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", script]);
  running.push(child);
  return child;
}

/** Message about a program that cannot be started. */
async function complaint(program: string): Promise<string> {
  const child = parentOf(program);
  const errors = text(child.stderr);
  expect(await end(child)).toEqual({ code: 126, signal: null });
  return await errors;
}

// Windows has no interpreters.
describe.skipIf(isWindows)("a program that runs as a child", () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-hand-over-"));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  function programFile(content: string, mode = 0o755): string {
    const file = path.join(mkdtempSync(path.join(folder, "in-")), "agent");
    writeFileSync(file, content, { mode });
    return file;
  }

  it("gets its arguments, and its exit code is passed on", async () => {
    const script = programFile('#!/bin/sh -e\necho "$0 $1"\nexit 9\n');
    const child = parentOf(script);
    const output = text(child.stdout);
    expect(await end(child)).toEqual({ code: 9, signal: null });
    expect(await output).toBe(`${script} first\n`);
  });

  it("has no IPC channel, which programs on Node would use for messages", async () => {
    const script = programFile(`#!/bin/sh\necho "<$NODE_CHANNEL_FD>"\n`);
    expect(await text(parentOf(script).stdout)).toBe("<>\n");
  });

  it("is reported when its interpreter does not exist", async () => {
    const script = programFile("#!/gone/node --flag\n");
    expect(await complaint(script)).toBe(
      `daybreak: cannot start ${script}: its interpreter "/gone/node" does not exist on this system. Install it again.\n`,
    );
  });

  it("is reported with the carriage return when its lines end like those of Windows", async () => {
    expect(await complaint(programFile("#!/bin/sh\r\nexit 3\r\n"))).toContain('"/bin/sh\\r" does not exist');
  });

  it("is reported when it does not exist or may not be executed", async () => {
    expect(await complaint(path.join(folder, "nothing"))).toContain("nothing: it does not exist.");
    expect(await complaint(programFile("#!/bin/sh\n", 0o644))).toContain("this user may not execute it");
  });
});
