import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { CHILD_OUTPUT_FD } from "../../../../src/engine/channel/parent-channel.ts";

const CHANNEL = new URL("../../../../src/engine/channel/parent-channel.ts", import.meta.url).href;

/** Far more than a pipe holds. */
const BYTES = 8 * 1024 * 1024;

/** A process that runs a script with imports of the channel. `pipe` receives its messages. */
function childOf(script: string): { child: ChildProcess; pipe: Readable } {
  const source = `import { onParentGone, writeToParent } from ${JSON.stringify(CHANNEL)};\n${script}`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", source], {
    stdio: ["pipe", "pipe", "inherit", "pipe"],
  });
  const pipe: unknown = child.stdio[CHILD_OUTPUT_FD];
  if (!(pipe instanceof Readable)) throw new Error("it has no such pipe");
  return { child, pipe };
}

describe("a child that writes to its parent", () => {
  it.each([
    ["blocks", ""],
    // A socket makes the descriptor non-blocking, except on Windows.
    ...(process.platform === "win32"
      ? []
      : [["does not block", `new (await import("node:net")).Socket({ fd: ${CHILD_OUTPUT_FD} });`]]),
  ])("waits while the pipe is full, if the descriptor %s", async (_how, before) => {
    const { child, pipe } = childOf(`${before}
      const bytes = Buffer.alloc(${BYTES}, "Daybreak");
      process.stdout.write("begins");
      process.exit(writeToParent(bytes) ? 7 : 1);`);
    const exit = once(child, "exit");
    // Nothing is read until it has begun, so it has to wait.
    await Promise.race([once(child.stdout!, "data"), exit]);
    const received = await buffer(pipe);
    expect(received.equals(Buffer.alloc(BYTES, "Daybreak"))).toBe(true);
    expect(await exit).toEqual([7, null]);
  });

  it("stops writing when the parent has closed the pipe", async () => {
    const { child, pipe } = childOf(`
      const bytes = Buffer.alloc(1024);
      while (writeToParent(bytes));
      process.exit(7);`);
    pipe.destroy();
    expect(await once(child, "exit")).toEqual([7, null]);
  });

  it("is notified of the parent's exit while it writes nothing", async () => {
    const { child } = childOf("onParentGone(() => process.exit(7));");
    child.stdin!.destroy();
    expect(await once(child, "exit")).toEqual([7, null]);
  });
});
