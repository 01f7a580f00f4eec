import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { postJson } from "../support/post-json.ts";
import { sharedDaemon } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";
import { runCli } from "./cli-process.ts";
import { experimentResultSchema } from "../../src/api/wire/native.ts";

const EXAMPLE = fileURLToPath(new URL("../../configs/experiments/hello.json", import.meta.url));

let daemon: TestDaemon;
let folder: string;
beforeAll(async () => {
  daemon = await sharedDaemon();
  folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-experiments-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const experiment = (...args: string[]) =>
  runCli(["experiment", ...args], { env: { SERVICE_SOCKET: daemon.socket } });

async function post(body: object) {
  const answer = await postJson(`${daemon.url}/api/experiment`, { model: "daybreak-mini", ...body });
  expect(answer.status).toBe(200);
  return experimentResultSchema.parse(await answer.json());
}

describe("an experiment", () => {
  test("that ships reproduces its recorded tokens and log-probabilities", async () => {
    const { code, stdout, stderr } = await experiment("run", EXAMPLE, "--tolerance", "0");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain("Same: 24 tokens, log-probabilities equal to the last bit.");
  });

  test("with a seed is reproducible, and differs with another model", async () => {
    const file = path.join(folder, "seed.json");
    const sampling = ["-t", "1.2", "--seed", "5", "-n", "32"];
    const recorded = await experiment("record", "Tell me about models.", ...sampling, "-o", file);
    expect(recorded).toMatchObject({ code: 0 });
    expect(await experiment("run", file, "--tolerance", "0")).toMatchObject({ code: 0, stderr: "" });

    const refused = await experiment("run", file, "-m", "daybreak-mini-pirate");
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.stderr).toContain("--any-model");
    const other = await experiment("run", file, "-m", "daybreak-mini-pirate", "--any-model");
    expect(other.code).toBe(1);
    expect(other.stdout).toMatch(/^Differs at token \d+ /m);
  });
});

describe("POST /api/experiment", () => {
  const messages = [{ role: "user", content: "What is Daybreak?" }];

  test("lists all tokens with the tokenizer's ids", async () => {
    const { tokens, text } = await post({ messages, temperature: 0, max_tokens: 20 });
    expect(tokens).toHaveLength(20);
    const answer = await postJson(`${daemon.url}/detokenize`, {
      model: "daybreak-mini",
      tokens: tokens.map(({ id }) => id),
    });
    expect(await answer.json()).toEqual({ content: text });
  });

  test("lists the most likely alternative first and chooses it at temperature 0", async () => {
    const { tokens } = await post({ messages, temperature: 0, max_tokens: 20, alternatives: 3 });
    for (const { id, logprob, top } of tokens) {
      expect(top.map((each) => each.logprob)).toEqual(
        top.map((each) => each.logprob).toSorted((a, b) => b - a),
      );
      expect(top).toHaveLength(3);
      expect(top[0]).toMatchObject({ id, logprob });
    }
  });

  test("reports log-probabilities of tool calls", async () => {
    const weather = {
      name: "get_weather",
      description: "Get the weather of a city",
      parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    };
    const result = await post({
      messages: [{ role: "user", content: "What is the weather in Paris?" }],
      tools: [{ type: "function", function: weather }],
      temperature: 0,
    });
    expect(result.tool_calls).toMatchObject([{ function: { name: "get_weather" } }]);
    expect(result.tokens.map(({ token }) => token).join("")).toContain("Par");
  });
});
