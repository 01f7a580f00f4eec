import { readFileSync } from "node:fs";
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { COMPAT_SHA256 } from "../../src/engine/browser/compat-build.ts";
import { compareResults } from "../../src/experiments/experiments.ts";
import { ENGINES_IN_PAGE, imageQuestion } from "../support/engines-in-page.ts";
import { likeness } from "../support/likeness.ts";
import { need } from "../support/need.ts";
import { startDaemon, type TestDaemon } from "../support/start-daemon.ts";
import { tinyPng } from "../support/tiny-png.ts";
import { findWebKit, WebKitPage } from "../support/webkit-page.ts";
import { experimentResultSchema } from "../../src/api/wire/native.ts";

const webkit = findWebKit();
const WEBKIT = need("WebKit", webkit !== undefined);

/**
 * Maximum difference of log-probabilities. llama.cpp's stock kernels quantize activations differently than Daybreak's.
 */
const ROUNDING = 0.1;

const IMAGE = `data:image/png;base64,${Buffer.from(tinyPng(64, 64)).toString("base64")}`;

test("experiments report the hash of the build for older browsers", () => {
  const file = fileURLToPath(import.meta.resolve("@wllama/wllama-compat/wasm/wllama.wasm"));
  expect(createHash("sha256").update(readFileSync(file)).digest("hex")).toBe(COMPAT_SHA256);
});

describe.skipIf(WEBKIT.isMissing)(`the engine in a page of WebKit, as Safari has it${WEBKIT.note}`, () => {
  let page: WebKitPage;
  let daemon: TestDaemon;
  beforeAll(async () => {
    daemon = await startDaemon({ args: ["--auto-load"] });
    page = await WebKitPage.open(webkit!, `${daemon.url}/ui/`);
    await page.evaluate(ENGINES_IN_PAGE);
    await start("daybreak-mini");
  });
  afterAll(async () => {
    await page?.[Symbol.asyncDispose]();
    await daemon?.stop();
  });

  /** Uses one thread: the threads of stock llama.cpp spin while they wait, which would slow down other tests. */
  const start = (name: string) => page.evaluate(`start(${JSON.stringify(name)}, "only", { threads: 1 })`);
  const inPage = async (path: string, body: object): Promise<unknown> =>
    z
      .object({ body: z.unknown() })
      .parse(await page.evaluate(`ask("only", ${JSON.stringify(path)}, ${JSON.stringify(body)})`)).body;
  async function inDaemon(path: string, body: object): Promise<unknown> {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(daemon.url + path, { method: "POST", headers, body: JSON.stringify(body) });
    return await answer.json();
  }

  test("generates the same tokens as the daemon, with nearly the same log-probabilities", async () => {
    const question = { role: "user", content: "What is Daybreak?" };
    const body = { model: "daybreak-mini", messages: [question], temperature: 0, max_tokens: 16 };
    const [here, there] = [
      await inPage("/api/experiment", body),
      await inDaemon("/api/experiment", body),
    ].map((result) => experimentResultSchema.parse(result));
    expect(here!.engine_sha256).toBe(COMPAT_SHA256);
    expect(compareResults(here!, there!)).toMatchObject({ isSame: true });
    for (const [at, { logprob }] of here!.tokens.entries())
      expect(Math.abs(logprob - there!.tokens[at]!.logprob)).toBeLessThan(ROUNDING);
  });

  test("generates JSON that matches a schema", async () => {
    const mood = { type: "string", enum: ["good", "bad"] };
    const format = { type: "object", properties: { mood }, required: ["mood"], additionalProperties: false };
    const body = { messages: [{ role: "user", content: "Who are you?" }], format, temperature: 0 };
    const { message } = z
      .object({ message: z.object({ content: z.string() }) })
      .parse(await inPage("/api/chat", { ...body, stream: false }));
    expect(JSON.parse(message.content)).toEqual({ mood: expect.stringMatching(/^(good|bad)$/) });
  });

  test("rejects tokenization, and storing models if the browser has no file system for them", async () => {
    expect(await inPage("/tokenize", { content: "Hello" })).toMatchObject({
      error: { code: "unsupported_feature", message: expect.stringContaining("memory64 and JSPI") },
    });
    const stored = `(async () => new (await import("/browser/daybreak.js")).ModelStore())().then((store) => store.download("daybreak-mini")).then(({ name }) => name, ({ code, message }) => ({ code, message }))`;
    expect(await page.evaluate(`navigator.storage?.getDirectory ? "daybreak-mini" : ${stored}`)).toEqual({
      code: "unsupported_feature",
      message: expect.stringMatching(/^This browser cannot store models/),
    });
  });

  test("generates the same as the daemon for an image", async () => {
    await page.evaluate("engines.only.close()");
    await start("daybreak-mini-vision");
    const body = imageQuestion(IMAGE);
    expect(textOf(await inPage("/v1/chat/completions", body))).toBe(
      textOf(await inDaemon("/v1/chat/completions", body)),
    );
  });

  test("returns nearly the same embeddings as the daemon", async () => {
    await page.evaluate("engines.only.close()");
    await start("daybreak-mini-embed");
    const body = { model: "daybreak-mini-embed", input: "How is a model loaded?" };
    const here = vectorOf(await inPage("/v1/embeddings", body));
    expect(likeness(here, vectorOf(await inDaemon("/v1/embeddings", body)))).toBeGreaterThan(0.999);
  });
});

const TEXT = z.object({ choices: z.array(z.object({ message: z.object({ content: z.string() }) })) });
function textOf(answer: unknown): string {
  return TEXT.parse(answer).choices[0]!.message.content;
}

const VECTOR = z.object({ data: z.array(z.object({ embedding: z.array(z.number()) })) });
function vectorOf(answer: unknown): number[] {
  return VECTOR.parse(answer).data[0]!.embedding;
}
