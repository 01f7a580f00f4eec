import { rolldown } from "rolldown";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { compareResults } from "../../src/experiments/experiments.ts";
import { BrowserPage } from "../support/browser-page.ts";
import { findChromium } from "../support/launch-chromium.ts";
import { ENGINES_IN_PAGE, imageQuestion } from "../support/engines-in-page.ts";
import { need } from "../support/need.ts";
import { startDaemon, type TestDaemon } from "../support/start-daemon.ts";
import { tinyPng } from "../support/tiny-png.ts";
import { losslessWebp } from "../support/tiny-webp.ts";
import { experimentResultSchema } from "../../src/api/wire/native.ts";

const chromium = findChromium();
const CHROMIUM = need("Chromium", chromium !== undefined);

const WEBP = `data:image/webp;base64,${Buffer.from(losslessWebp()).toString("base64")}`;
const IMAGE = `data:image/png;base64,${Buffer.from(tinyPng(64, 64)).toString("base64")}`;

const answerSchema = z.object({ status: z.number(), body: z.unknown() });
type Answer = z.output<typeof answerSchema>;

/** Returns a request with log-probabilities, which show small differences between engines. */
const question = (text: string): object => ({
  messages: [{ role: "user", content: text }],
  logprobs: true,
  top_logprobs: 5,
  max_tokens: 48,
});

/** Returns the choices of an answer. Other fields differ between requests. */
function choicesOf({ status, body }: Answer): unknown {
  expect(status).toBe(200);
  return z.object({ choices: z.array(z.unknown()).min(1) }).parse(body).choices;
}

/** Bundles a package as a script that defines a global variable. */
async function bundled(name: string, variable: string): Promise<string> {
  const bundle = await rolldown({ input: name, platform: "browser" });
  const { output } = await bundle.generate({ format: "iife", name: variable, exports: "named" });
  return `${output[0].code}\nglobalThis.${variable} = ${variable};`;
}

describe.skipIf(CHROMIUM.isMissing)(`the engine in a page of Chromium${CHROMIUM.note}`, () => {
  let page: BrowserPage;
  let daemon: TestDaemon;
  beforeAll(async () => {
    daemon = await startDaemon();
    page = await BrowserPage.open(chromium!, `${daemon.url}/ui/`);
    await page.until("document.readyState === 'complete'");
    await page.evaluate(ENGINES_IN_PAGE);
  });
  afterAll(async () => {
    await page?.[Symbol.asyncDispose]();
    await daemon?.stop();
  });

  async function inPage(key: string, path: string, body: object): Promise<Answer> {
    const answer = await page.evaluate(
      `ask(${JSON.stringify(key)}, ${JSON.stringify(path)}, ${JSON.stringify(body)})`,
    );
    return answerSchema.parse(answer);
  }

  async function inDaemon(path: string, body: object): Promise<Answer> {
    const answer = await fetch(daemon.url + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return { status: answer.status, body: await answer.json() };
  }

  describe.each([1, 2])("with the chat model on %i threads", (threads) => {
    const key = `chat-${threads}`;
    beforeAll(async () => {
      await page.evaluate(`start("daybreak-mini", "${key}", { threads: ${threads} })`);
    });
    afterAll(async () => void (await page.evaluate(`engines["${key}"].close()`)));

    test("reports that number of threads", async () => {
      expect(await page.evaluate(`engines["${key}"].info.threads`)).toBe(threads);
    });

    test.each([
      ["greedily", { temperature: 0 }],
      ["with a seed", { temperature: 1, top_p: 1, seed: 11 }],
    ])("generates %s exactly the tokens and log-probabilities of the daemon", async (_how, sampling) => {
      for (const text of ["What is Daybreak?", "Spell the word mountain.", "What is 17 + 26?"]) {
        const body = { model: "daybreak-mini", ...question(text), ...sampling };
        const [here, there] = [
          await inPage(key, "/v1/chat/completions", body),
          await inDaemon("/v1/chat/completions", body),
        ];
        expect(choicesOf(here)).toEqual(choicesOf(there));
      }
    });
  });

  test("uses the settings of its Modelfile, and an experiment has the same result as in the daemon", async () => {
    const modelfile = [
      "FROM daybreak-mini",
      "SYSTEM You are a helpful assistant.",
      "PARAMETER temperature 1.1",
      "PARAMETER num_predict 24",
    ].join("\n");
    const created = await fetch(`${daemon.url}/api/models/create`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ alias: "set", modelfile }),
    });
    expect(created.status).toBeLessThan(300);
    await page.evaluate(`start("set", "set")`);
    const body = { model: "set", messages: [{ role: "user", content: "What is Daybreak?" }], seed: 3 };
    const [here, there] = [
      await inPage("set", "/api/experiment", body),
      await inDaemon("/api/experiment", body),
    ].map(({ body: result }) => experimentResultSchema.parse(result));
    expect(here).toMatchObject({ where: "browser", sampling: { temperature: 1.1, seed: 3 } });
    expect(there).toMatchObject({ where: "daemon", sampling: here!.sampling });
    expect(here!.tokens).toHaveLength(24);
    expect(compareResults(here!, there!)).toMatchObject({ isSame: true, logprobDifference: 0 });
    expect(here!.template_sha256).toBe(there!.template_sha256);
    expect(here!.engine_sha256).toBe(there!.engine_sha256);
    await page.evaluate("engines.set.close()");
  });

  test("generates the same as the daemon with a LoRA adapter", async () => {
    await page.evaluate(`start("daybreak-mini-pirate", "pirate")`);
    const body = { model: "daybreak-mini-pirate", ...question("What is Daybreak?"), temperature: 0 };
    const here = await inPage("pirate", "/v1/chat/completions", body);
    expect(choicesOf(here)).toEqual(choicesOf(await inDaemon("/v1/chat/completions", body)));
    await page.evaluate("engines.pirate.close()");
  });

  test("generates the same as the daemon for an image, also for WebP, which the browser decodes", async () => {
    await page.evaluate(`start("daybreak-mini-vision", "vision")`);
    for (const image of [IMAGE, WEBP]) {
      const body = { ...imageQuestion(image), logprobs: true };
      const here = await inPage("vision", "/v1/chat/completions", body);
      expect(choicesOf(here)).toEqual(choicesOf(await inDaemon("/v1/chat/completions", body)));
    }
    await page.evaluate("engines.vision.close()");
  });

  describe("with the official OpenAI client", () => {
    beforeAll(async () => {
      await page.evaluate(await bundled("openai", "OpenAIClient"));
      await page.evaluate(`(async () => {
        await start("daybreak-mini", "sdk");
        globalThis.openai = new OpenAIClient.OpenAI({
          baseURL: "http://engine/v1", apiKey: "any", dangerouslyAllowBrowser: true, fetch: engines.sdk.fetch, maxRetries: 0,
        });
      })()`);
    });
    afterAll(async () => void (await page.evaluate("engines.sdk.close()")));

    test("answers with the same text in streaming and non-streaming mode", async () => {
      const texts = await page.evaluate(`(async () => {
        const body = { model: "daybreak-mini", messages: [{ role: "user", content: "Who are you?" }], temperature: 0 };
        const whole = await openai.chat.completions.create(body);
        let streamed = "";
        for await (const chunk of await openai.chat.completions.create({ ...body, stream: true }))
          streamed += chunk.choices[0]?.delta.content ?? "";
        return [whole.choices[0].message.content, streamed];
      })()`);
      const [whole, streamed] = z.tuple([z.string(), z.string()]).parse(texts);
      expect(whole).toMatch(/daybreak/i);
      expect(streamed).toBe(whole);
    });

    test("makes the client throw its NotFoundError for an unknown model", async () => {
      const error = await page.evaluate(`openai.chat.completions
        .create({ model: "other", messages: [{ role: "user", content: "Hi" }] })
        .then(() => "answered", (error) => [error.constructor.name, error.code, error.status])`);
      expect(error).toEqual(["NotFoundError", "model_not_found", 404]);
    });

    test("ends a generation whose stream is canceled, so that the next one starts immediately", async () => {
      const text = await page.evaluate(`(async () => {
        const body = { model: "daybreak-mini", messages: [{ role: "user", content: "Count to 500." }], temperature: 0 };
        const stream = await openai.chat.completions.create({ ...body, stream: true, logit_bias: {}, max_tokens: 1500 });
        for await (const chunk of stream) break;
        const next = await openai.chat.completions.create({ ...body, max_tokens: 4 });
        return next.choices[0].finish_reason;
      })()`);
      expect(text).toBe("length");
    });
  });

  test.each([
    [
      "is not a model",
      "new Blob(['this is text, not a model'])",
      "invalid_model_file",
      /does not begin with GGUF/,
    ],
    [
      "is cut off",
      "(await (await fetch('/api/models/daybreak-mini/files/0')).blob()).slice(0, 2000000)",
      "invalid_model_file",
      /truncated/,
    ],
  ])("rejects a model file that %s, and the page stays usable", async (_what, file, code, message) => {
    const error = await page.evaluate(`(async () => {
      const { createEngine } = await import("/browser/daybreak.js");
      return await createEngine({ model: ${file} }).then(() => "started", (error) => ({ code: error.code, message: error.message }));
    })()`);
    expect(error).toEqual({ code, message: expect.stringMatching(message) });
  });

  test("fails the requests of an engine that crashes, and restarts it for the next request", async () => {
    await page.evaluate(`start("daybreak-mini", "crash")`);
    await page.evaluate(`(async () => {
      const body = { messages: [{ role: "user", content: "Repeat: " + "one two three ".repeat(40) }], max_tokens: 1500, stream: true };
      const headers = { "content-type": "application/json" };
      const ask = () => engines.crash.fetch("/v1/chat/completions", { method: "POST", headers, body: JSON.stringify(body) });
      const answer = await ask();
      // Requests are repeated until the test has crashed the engine.
      globalThis.crashed = (async () => {
        let text = await answer.text();
        while (text.endsWith("[DONE]\\n\\n")) text = await (await ask()).text();
        return text;
      })();
    })()`);
    await page.evaluateInWorker("blob:", "setTimeout(() => { throw new Error('crashed by a test') })");
    const text = await page.evaluate("crashed");
    expect(String(text).slice(-300)).toMatch(/"code":"engine_crashed"/);
    const body = { messages: [{ role: "user", content: "Who are you?" }], temperature: 0 };
    expect(await inPage("crash", "/v1/chat/completions", body)).toMatchObject({ status: 200 });
    await page.evaluate("engines.crash.close()");
    expect(
      page.problems.splice(0).filter((problem) => !/crashed by a test|engine ended/.test(problem)),
    ).toEqual([]);
  });

  test("stops loading if the signal aborts", async () => {
    const reason = await page.evaluate(`(async () => {
      const { createEngine } = await import("/browser/daybreak.js");
      const controller = new AbortController();
      const model = await (await fetch("/api/models/daybreak-mini/files/0")).blob();
      const starting = createEngine({ model, signal: controller.signal });
      controller.abort(new Error("changed my mind"));
      return await starting.then(() => "started", (error) => error.message);
    })()`);
    expect(reason).toBe("changed my mind");
  });

  test("violates no rule of the page's Content-Security-Policy, and sends no requests to other hosts", () => {
    const external = page.requests.filter((url) => !/^(?:blob:)?http:\/\/127\.0\.0\.1:/.test(url));
    expect(external.filter((url) => !url.startsWith("data:"))).toEqual([]);
    expect(page.problems).toEqual([]);
  });

  test("returns the same embeddings as the daemon", async () => {
    await page.evaluate(`start("daybreak-mini-embed", "embed")`);
    const body = { model: "daybreak-mini-embed", input: ["How is a model loaded?", "A GPU"] };
    const here = await inPage("embed", "/v1/embeddings", body);
    expect(here.status).toBe(200);
    expect(here).toEqual(await inDaemon("/v1/embeddings", body));
    await page.evaluate("engines.embed.close()");
  });
});
