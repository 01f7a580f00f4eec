import { createHash } from "node:crypto";
import { Ollama } from "ollama";
import { beforeAll, describe, expect, test } from "vitest";
import { activeRequests } from "../support/active-requests.ts";
import { AMPLE_TOKENS, ENDLESS_LIST, GREEDY, QUESTION_TO_THINK_ABOUT } from "../support/certain-requests.ts";
import { likeness } from "../support/likeness.ts";
import { sharedDaemon, sharedHub, shippedModel } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";

const model = "daybreak-mini";
const messages = [{ role: "user", content: "Hello" }];
const TOOL = {
  type: "function",
  function: {
    name: "get_weather",
    description: "Tells the weather.",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
};

const WITH_MISSING_FILE = { model: "x", files: { "x.gguf": `sha256:${"0".repeat(64)}` } };

let daemon: TestDaemon;
let client: Ollama;

beforeAll(async () => {
  const hub = await sharedHub();
  hub.setRepo("owner/repo", { files: { "repo-Q8_0.gguf": shippedModel() } });
  daemon = await sharedDaemon();
  client = new Ollama({ host: `${daemon.url}/ollama` });
});

async function namesOnDisk(): Promise<string[]> {
  return (await client.list()).models.map(({ name }) => name);
}

async function runningNames(): Promise<string[]> {
  return (await client.ps()).models.map(({ name }) => name);
}

async function running(named: string) {
  return (await client.ps()).models.find(({ name }) => name === `${named}:latest`);
}

describe("the models, with the official client", () => {
  test("are listed, on disk and in memory", async () => {
    const { models } = await client.list();
    expect(models).toContainEqual(
      expect.objectContaining({
        name: `${model}:latest`,
        details: expect.objectContaining({ format: "gguf" }),
      }),
    );
    const loaded = await running(model);
    expect(loaded).toMatchObject({ size_vram: 0 });
    expect(new Date(loaded!.expires_at).getTime()).toBeGreaterThan(Date.now());
  });

  test("are shown in detail", async () => {
    const shown = await client.show({ model: `${model}:latest` });
    expect(shown).toMatchObject({
      modelfile: expect.stringMatching(/^FROM /),
      details: { quantization_level: expect.any(String) },
      capabilities: expect.arrayContaining(["completion", "tools"]),
    });
    expect(shown.model_info).toHaveProperty(["general.architecture"]);
  });

  test("tell the version", async () => {
    expect((await client.version()).version).toMatch(/^\d+\.\d+\.\d+$/);
  });
});

describe("chat with the official client", () => {
  test("gives the same answer streamed", async () => {
    const body = { model, messages, options: { num_predict: 12, ...GREEDY } };
    const whole = await client.chat(body);
    expect(whole).toMatchObject({ model, done: true, message: { role: "assistant" } });
    expect(whole.message.content).toMatch(/./s);
    expect(whole.eval_count).toBeLessThanOrEqual(12);
    expect(whole.prompt_eval_count).toBeGreaterThan(0);
    expect(whole.total_duration).toBeGreaterThan(whole.eval_duration);
    let streamed = "";
    let last;
    for await (const part of await client.chat({ ...body, stream: true })) {
      streamed += part.message.content;
      last = part;
    }
    expect(streamed).toBe(whole.message.content);
    expect(last).toMatchObject({ done: true, done_reason: whole.done_reason, eval_count: whole.eval_count });
  });

  test("follows a schema, and returns an object with json", async () => {
    const format = {
      type: "object",
      properties: { colour: { enum: ["red", "blue"] } },
      required: ["colour"],
      additionalProperties: false,
    };
    const options = { num_predict: AMPLE_TOKENS, ...GREEDY };
    const { message } = await client.chat({ model, messages, format, options });
    expect(["red", "blue"]).toContain(Object(JSON.parse(message.content))["colour"]);
    const any = await client.chat({ model, messages, format: "json", options });
    expect(any.message.content).toMatch(/^\s*\{/);
  });

  test("continues after tool calls and their results", async () => {
    const answer = await client.chat({
      model,
      messages: [
        ...messages,
        {
          role: "assistant",
          content: "",
          tool_calls: [{ function: { name: "get_weather", arguments: { city: "Rome" } } }],
        },
        { role: "tool", tool_name: "get_weather", content: "Sunny." },
      ],
      tools: [TOOL],
      options: { num_predict: 4 },
    });
    expect(answer.done).toBe(true);
    for (const { function: called } of answer.message.tool_calls ?? []) {
      expect(called.arguments).toBeTypeOf("object");
    }
  });

  test("returns reasoning separately when requested", async () => {
    const question = [{ role: "user", content: QUESTION_TO_THINK_ABOUT }];
    const options = { num_predict: 6, ...GREEDY };
    const { message } = await client.chat({ model, messages: question, think: true, options });
    expect(message.thinking).toMatch(/./s);
  });

  test("reports log-probabilities", async () => {
    const { logprobs = [] } = await client.chat({
      model,
      messages,
      logprobs: true,
      top_logprobs: 2,
      options: { num_predict: 4, ...GREEDY },
    });
    expect(logprobs.length).toBeGreaterThan(0);
    expect(logprobs.every(({ logprob, top_logprobs: top }) => logprob <= 0 && top?.length === 2)).toBe(true);
  });

  test("ends with its client", async () => {
    const stream = await client.chat({ model, messages, format: ENDLESS_LIST, stream: true });
    const seen = (async () => {
      for await (const part of stream) {
        expect(part.done).toBe(false);
        stream.abort();
      }
    })();
    await expect(seen).rejects.toThrow(/abort/i);
    await expect.poll(() => activeRequests(daemon)).toBe(0);
  });
});

describe("generate with the official client", () => {
  test("gives the same answer streamed, also for a raw prompt", async () => {
    for (const raw of [false, true]) {
      // Request with a long answer.
      const format = { type: "string", minLength: 500 };
      const body = { model, prompt: "Once upon", raw, format, options: { num_predict: 64, seed: 5 } };
      const whole = await client.generate(body);
      let streamed = "";
      for await (const part of await client.generate({ ...body, stream: true }))
        streamed += part.response ?? "";
      expect(whole.response).toMatch(/./s);
      expect(streamed).toBe(whole.response);
    }
  });

  test("unloads a model by keep_alive and loads it on demand", async () => {
    const guest = "guest";
    await client.create({ model: guest, from: model });
    const small = { num_ctx: 512, num_predict: 2 };
    await client.generate({ model: guest, prompt: "hi", options: small, keep_alive: "10m" });
    const first = await running(guest);
    expect(first).toMatchObject({ context_length: 512 });
    const minutes = (new Date(first!.expires_at).getTime() - Date.now()) / 60_000;
    expect(minutes).toBeGreaterThan(9);
    expect(minutes).toBeLessThanOrEqual(10);

    const unloaded = await client.generate({ model: guest, prompt: "", keep_alive: 0 });
    expect(unloaded).toMatchObject({ done: true, done_reason: "unload" });
    expect(await running(guest)).toBeUndefined();

    const loaded = await client.chat({ model: guest, messages: [], options: { num_ctx: 1024 } });
    expect(loaded).toMatchObject({ done: true, done_reason: "load" });
    expect(await running(guest)).toMatchObject({ context_length: 1024 });

    await client.generate({ model: guest, prompt: "hi", options: small, keep_alive: 0 });
    await expect.poll(() => running(guest)).toBeUndefined();
    await client.delete({ model: guest });
  });
});

describe("embeddings with the official client", () => {
  test("come for one text and for several", async () => {
    const { embeddings, prompt_eval_count: tokens } = await client.embed({
      model,
      input: ["The sun.", "The moon."],
    });
    expect(embeddings).toHaveLength(2);
    expect(tokens).toBeGreaterThan(2);
    for (const vector of embeddings) expect(Math.hypot(...vector)).toBeCloseTo(1, 3);
    const { embedding } = await client.embeddings({ model, prompt: "The sun." });
    expect(likeness(embedding, embeddings[0]!)).toBeCloseTo(1, 3);
    const short = await client.embed({ model, input: "The sun.", dimensions: 8 });
    expect(short.embeddings[0]).toHaveLength(8);
  });

  test("truncate a too long text, unless truncate is false", async () => {
    const beginning = "The sun rises over the hills. ";
    const input = [beginning.repeat(1000), `${beginning.repeat(1000)} And then?`];
    const { embeddings, prompt_eval_count: tokens } = await client.embed({ model, input });
    expect(likeness(embeddings[0]!, embeddings[1]!)).toBeCloseTo(1, 3);
    expect(tokens).toBeGreaterThan(100);
    const uncut = client.embed({ model, input, truncate: false });
    await expect(uncut).rejects.toMatchObject({ status_code: 400, error: expect.stringMatching(/tokens/) });
  });
});

describe("creating, copying, pulling and deleting with the official client", () => {
  test("a model is created from fields, used, copied and deleted", async () => {
    const before = await namesOnDisk();
    const made = await client.create({
      model: "mario",
      from: model,
      system: "You are Mario.",
      parameters: { temperature: 0.1, num_predict: 3, stop: ["END"] },
      messages: [
        { role: "user", content: "It is I. ".repeat(40) },
        { role: "assistant", content: "Mario." },
      ],
    });
    expect(made.status).toBe("success");
    const shown = await client.show({ model: "mario" });
    expect(shown).toMatchObject({ system: "You are Mario.", details: { parent_model: model } });
    expect(shown.parameters).toMatch(/^stop +"END"$/m);
    const answer = await client.chat({ model: "mario", messages });
    expect(answer.eval_count).toBeLessThanOrEqual(3);
    // The prompt includes the model's messages.
    expect(answer.prompt_eval_count).toBeGreaterThan(120);
    const statuses: string[] = [];
    for await (const { status } of await client.create({ model: "luigi", from: "mario", stream: true })) {
      statuses.push(status);
    }
    expect(statuses.at(-1)).toBe("success");
    await client.copy({ source: "luigi", destination: "luigi-2" });
    for (const name of ["luigi-2", "luigi:latest", "mario"]) {
      expect(await client.delete({ model: name })).toEqual({ status: "success" });
    }
    expect(await namesOnDisk()).toEqual(before);
  });

  test("a model is created from an uploaded file, answers, and is deleted", async () => {
    const before = await namesOnDisk();
    const bytes = Uint8Array.from(shippedModel());
    const digest = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
    const blob = `${daemon.url}/ollama/api/blobs/${digest}`;
    expect((await fetch(blob, { method: "HEAD" })).status).toBe(404);
    const junk = await fetch(blob, { method: "POST", body: Buffer.alloc(8 * 1024 * 1024) });
    expect([junk.status, await junk.text()]).toEqual([400, expect.stringMatching(/Only GGUF/)]);
    expect((await fetch(blob, { method: "POST", body: bytes })).status).toBe(201);
    expect((await fetch(blob, { method: "HEAD" })).status).toBe(200);
    // A field that the client's types lack.
    const request = { model: "uploaded", files: { "model.gguf": digest }, system: "Be brief." };
    expect((await client.create(request)).status).toBe("success");
    const answer = await client.chat({ model: "uploaded", messages, options: { num_predict: 2 } });
    expect(answer).toMatchObject({ model: "uploaded", done: true });
    await client.delete({ model: "uploaded" });
    expect(await namesOnDisk()).toEqual(before);
  });

  test("a model is pulled with its progress, answers without being loaded first, and is deleted", async () => {
    const name = "hf.co/owner/repo:Q8_0";
    const before = await namesOnDisk();
    const lines = [];
    for await (const line of await client.pull({ model: name, stream: true })) lines.push(line);
    expect(lines[0]).toEqual({ status: "pulling manifest" });
    expect(lines.at(-1)).toEqual({ status: "success" });
    const { models } = await client.list();
    const { name: listed, size } = models.find((entry) => !before.includes(entry.name))!;
    expect(lines).toContainEqual(expect.objectContaining({ total: size, completed: size }));
    const answer = await client.chat({ model: name, messages, options: { num_predict: 2 } });
    expect(answer).toMatchObject({ model: name, done: true });
    expect(answer.load_duration).toBeGreaterThan(1e6);
    expect((await client.show({ model: listed })).details.format).toBe("gguf");
    expect((await client.pull({ model: name })).status).toBe("success");
    await client.delete({ model: listed });
    expect(await namesOnDisk()).toEqual(before);
    expect(await runningNames()).not.toContain(listed);
  });
});

describe("errors", () => {
  test.for<[string, () => Promise<unknown>, number, RegExp]>([
    [
      "an unknown model",
      () => client.chat({ model: "no-such-model", messages }),
      404,
      /^model 'no-such-model' not found/,
    ],
    ["an unknown model of an owner", () => client.show({ model: "some/one" }), 404, /not found/],
    ["an unknown repository", () => client.pull({ model: "hf.co/owner/none" }), 404, /./],
    ["publishing a model", () => client.push({ model }), 400, /does not publish/],
    ["a file that was not uploaded", () => client.create(WITH_MISSING_FILE), 400, /upload it first/],
    ["a base that is not there", () => client.create({ model: "x", from: "none" }), 404, /none/],
    [
      "a prompt that does not fit",
      () => client.generate({ model, prompt: "word ".repeat(4000) }),
      400,
      /context/,
    ],
    [
      "an image for a model without vision",
      () => client.generate({ model, prompt: "?", images: ["iVBORw0KGgo="] }),
      400,
      /vision/,
    ],
    ["a suffix", () => client.generate({ model, prompt: "a", suffix: "b" }), 400, /suffix/],
  ])("%s raises the client's ResponseError", async ([, call, status, message]) => {
    await expect(call()).rejects.toMatchObject({
      name: "ResponseError",
      status_code: status,
      error: expect.stringMatching(message),
    });
  });
});
