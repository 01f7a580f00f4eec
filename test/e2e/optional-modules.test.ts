import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { postJson } from "../support/post-json.ts";
import { PROGRAM } from "../support/program.ts";
import { startDaemon } from "../support/start-daemon.ts";

/** Starts the daemon without the command line module. */
const WITHOUT_CLI = `
import { loadConfig } from "./src/config/load-config.js";
import { runDaemon } from "./src/daemon/run-daemon.js";
const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());
const { stdout, stderr, env } = process;
const loaded = loadConfig({ env, flags: { http: { addr: "127.0.0.1", port: 0 } } });
await runDaemon(loaded, { stdout, stderr, signal: stop.signal });
`;

let folder: string;

beforeAll(() => {
  // Next to the built program, so that packages are found.
  folder = mkdtempSync(`${PROGRAM}-without-`);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Copies the program without the folder of a module. */
function programWithout(module: string): string {
  const program = path.join(folder, module);
  const left = path.join(PROGRAM, "src", module);
  cpSync(PROGRAM, program, {
    recursive: true,
    filter: (file) => file !== left && !/daybreak-test-(?:cache|code)$/.test(file),
  });
  writeFileSync(path.join(program, "start-daemon.js"), WITHOUT_CLI);
  return program;
}

describe("the daemon serves completions without the optional module", () => {
  test.each(["batches", "fleet", "ui", "experiments", "tab"])("%s", async (module) => {
    const launcher = path.join(programWithout(module), "src/launch/daybreak.mjs");
    expect(await tokensServedBy({ launcher })).toBe(4);
  });

  test("grammar, and refuses formats and tools", async () => {
    const launcher = path.join(programWithout("grammar"), "src/launch/daybreak.mjs");
    const daemon = await startDaemon({ launcher, args: [] });
    try {
      expect(await countTokens(daemon.url)).toBe(4);
      const answer = await postJson(`${daemon.url}/v1/chat/completions`, {
        messages: [{ role: "user", content: "Hello" }],
        response_format: { type: "json_object" },
      });
      expect(answer.status).toBe(400);
      expect(await answer.json()).toMatchObject({ error: { code: "unsupported_feature" } });
    } finally {
      await daemon.stop();
    }
  });

  test("cli", async () => {
    const launcher = path.join(programWithout("cli"), "start-daemon.js");
    expect(await tokensServedBy({ launcher, command: [] })).toBe(4);
  });
});

/** Starts a daemon, and counts the tokens of its answer to a request for four. */
async function tokensServedBy(program: { launcher: string; command?: readonly string[] }): Promise<number> {
  const daemon = await startDaemon({ ...program, args: [] });
  try {
    return await countTokens(daemon.url);
  } finally {
    await daemon.stop();
  }
}

async function countTokens(url: string): Promise<number> {
  const body = { prompt: "Hello", max_tokens: 4, temperature: 0 };
  const answer = await postJson(`${url}/v1/completions`, body);
  return z.object({ usage: z.object({ completion_tokens: z.int() }) }).parse(await answer.json()).usage
    .completion_tokens;
}
