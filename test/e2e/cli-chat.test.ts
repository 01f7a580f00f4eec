import { spawn, spawnSync } from "node:child_process";
import { beforeAll, describe, expect, it } from "vitest";
import { need, unless } from "../support/need.ts";
import { sharedDaemon } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";
import { cleanEnv, LAUNCHER } from "./cli-process.ts";

const CTRL_C = "\u0003";
const PROMPT = /> $/;
/** Request with a long answer. */
const LONG_FORMAT = {
  type: "array",
  items: { type: "string", enum: ["again"] },
  minItems: 400,
  maxItems: 400,
};

/** script(1) of util-linux creates a pseudo-terminal if the system has devpts. */
const TERMINAL =
  process.platform === "linux"
    ? need(
        "pseudo-terminals (/dev/pts)",
        spawnSync("script", ["-q", "-e", "-c", "true", "/dev/null"]).status === 0,
      )
    : unless(false, "its terminal is made as on Linux");

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await sharedDaemon();
});

/** `daybreak chat` in a pseudo-terminal, which script(1) of util-linux makes. */
function openChat(...options: string[]) {
  const words = [process.execPath, LAUNCHER, "chat", "--socket", daemon.socket, ...options];
  const command = words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
  const child = spawn("script", ["-q", "-e", "-c", command, "/dev/null"], {
    env: { ...cleanEnv(), TERM: "xterm", SHELL: "/bin/sh" },
  });
  let shown = "";
  let hasEnded = false;
  const waiting = new Set<() => void>();
  const lookAgain = (): void => {
    for (const look of waiting) look();
  };
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve)).finally(() => {
    hasEnded = true;
    lookAgain();
  });
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    shown += chunk;
    lookAgain();
  });
  return {
    ended,
    /** Types, then waits until the new output matches; rejects if the process exits first. */
    async type(keys: string, expected: RegExp): Promise<string> {
      const from = shown.length;
      child.stdin.write(keys);
      await new Promise<void>((resolve, reject) => {
        const look = (): void => {
          // oxlint-disable-next-line no-control-regex -- a terminal's own commands are not what is shown
          const isShown = expected.test(shown.slice(from).replace(/\u001b\[[0-9;?]*[A-Za-z]/g, ""));
          if (!isShown && !hasEnded) return;
          waiting.delete(look);
          if (isShown) resolve();
          else reject(new Error(`the chat ended without ${expected}:\n${shown}`));
        };
        waiting.add(look);
        look();
      });
      return shown.slice(from);
    },
  };
}

describe.skipIf(TERMINAL.isMissing)(`chat in a terminal${TERMINAL.note}`, () => {
  it("answers, runs slash commands, and exits by /bye", async () => {
    const chat = openChat("--max-tokens", "8", "--no-think");
    await chat.type("", PROMPT);
    await chat.type("Hello\r", /\n> $/);
    expect(await chat.type("/help\r", PROMPT)).toContain("forget the conversation");
    expect(await chat.type("/clear\r", PROMPT)).toContain("Started a new conversation");
    expect(await chat.type("/nothing\r", PROMPT)).toContain("Unknown command /nothing");
    await chat.type("/bye\r", /bye/);
    expect(await chat.ended).toBe(0);
  });

  it("cancels the answer on Ctrl-C, and exits on two at the prompt", async () => {
    const chat = openChat("--max-tokens", "1500", "--no-think", "--format", JSON.stringify(LONG_FORMAT));
    await chat.type("", PROMPT);
    await chat.type("Go on\r", /Go on\r*\n.*\S{3}/s);
    await chat.type(CTRL_C, /\(cancelled\)\s+> $/);
    await chat.type(CTRL_C, /Press Ctrl-C again.*\s+> $/);
    await chat.type(CTRL_C, /$/);
    expect(await chat.ended).toBe(130);
  });
});
