import { rmSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { temporaryFolder, writeModel } from "../support/engine-fixture.ts";
import { postJson } from "../support/post-json.ts";
import { addModel, removeModel, sharedDaemon } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";
import { tinyLlama, tinyLora } from "../support/tiny-models.ts";

const MODEL = "tiny-adapted";
const PROMPT = "once upon a time there was a";

/** The choices of a request, each of which makes the model say something else. */
const CHOICES: readonly (readonly object[])[] = [
  [],
  [{ name: "one" }],
  [{ id: 1, scale: 1 }],
  [
    { id: 0, scale: -1 },
    { name: "two", scale: 0.75 },
  ],
];

describe("a model with two adapters", () => {
  let daemon: TestDaemon;
  const folder = temporaryFolder();
  const file = writeModel(folder, "tiny", tinyLlama());
  const one = writeModel(folder, "one", tinyLora({ deviation: 2 }));
  const two = writeModel(folder, "other", tinyLora({ deviation: 4 }));
  /** Answers with each of the choices, requested one after the other. */
  const said: string[] = [];
  beforeAll(async () => {
    daemon = await sharedDaemon();
    await addModel(daemon, MODEL, `FROM ${file}\nADAPTER ${one}\nADAPTER ${two} 0 AS two`);
    for (const lora of CHOICES) said.push(await complete({ lora }));
  });
  afterAll(async () => {
    await removeModel(daemon, MODEL);
    rmSync(folder, { recursive: true });
  });

  async function post(path: string, body: object): Promise<unknown> {
    const answer = await postJson(
      daemon.url + path,
      Array.isArray(body) ? body : { model: MODEL, temperature: 0, ...body },
    );
    return JSON.parse(await answer.text());
  }

  async function complete(fields: object): Promise<string> {
    const answer = await post("/v1/completions", { prompt: PROMPT, max_tokens: 24, ...fields });
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what is missing fails the test
    const { choices } = answer as { choices?: { text: string }[] };
    return choices?.[0]?.text ?? JSON.stringify(answer);
  }

  test("lists them by file name or Modelfile name", async () => {
    const answer = await fetch(`${daemon.url}/api/models/${MODEL}`);
    expect(JSON.parse(await answer.text())).toMatchObject({
      adapters: [
        { id: 0, name: "one", scale: 1 },
        { id: 1, name: "two", scale: 0 },
      ],
    });
  });

  test("answers differently with each choice, and by default with that of its Modelfile", async () => {
    expect(new Set(said).size).toBe(CHOICES.length);
    expect(await complete({})).toBe(said[1]);
    expect(await complete({ lora: [] })).toBe(said[0]);
  });

  test("gives the same answers for concurrent requests and with cached prompts", async () => {
    const asked = Array.from({ length: 16 }, (_, at) => (at * 7) % CHOICES.length);
    const answers = await Promise.all(asked.map((at) => complete({ lora: CHOICES[at] })));
    expect(answers).toEqual(asked.map((at) => said[at]));
  });

  test("has a model name for each of them", async () => {
    expect(await complete({ model: `${MODEL}:one` })).toBe(said[1]);
    // Its own scale is 0.
    expect(await complete({ model: `${MODEL}:two` })).toBe(said[2]);
    expect(await complete({ model: `${MODEL}:two`, lora: [] })).toBe(said[0]);
    expect(await post("/v1/completions", { model: `${MODEL}:three`, prompt: PROMPT })).toMatchObject({
      error: { code: "model_not_found" },
    });
  });

  test("accepts scales by llama-server's route until they are changed again", async () => {
    const path = `/lora-adapters?model=${MODEL}`;
    expect(await post(path, [{ id: 1, scale: 1 }])).toEqual({ success: true });
    expect(await complete({})).toBe(said[2]);
    expect(await complete({ lora: [{ name: "one" }] })).toBe(said[1]);
    expect(await post(path, [{ id: 0, scale: 1 }])).toEqual({ success: true });
    expect(await complete({})).toBe(said[1]);
  });

  test("restores a saved prompt only for the scales it was saved with", async () => {
    const slots = `/api/models/${MODEL}/slots`;
    const scales = [{ id: 0, scale: -0.5 }];
    const cachedOf = async (lora: readonly object[]): Promise<unknown> =>
      await post("/v1/completions", { prompt: PROMPT, max_tokens: 4, lora, id_slot: 1 });
    await cachedOf(scales);
    expect(await post(slots, { action: "save", name: "adapted", slot: 1 })).toMatchObject({
      name: "adapted",
    });
    await cachedOf([]);
    expect(await post(slots, { action: "restore", name: "adapted", slot: 1 })).toMatchObject({ slot: 1 });
    expect(await cachedOf(scales)).toMatchObject({
      usage: { prompt_tokens_details: { cached_tokens: expect.toSatisfy((count: number) => count > 4) } },
    });
  });

  test("accepts the choice in the native API", async () => {
    const fields = { prompt: PROMPT, max_tokens: 24, lora: [{ name: "two" }] };
    expect(await post("/api/generate", fields)).toMatchObject({ response: said[2] });
  });

  test.for([
    [{ id: 2, scale: 1 }, /lora: .* has no adapter 2; it has 0 \(one\), 1 \(two\)/],
    [{ id: 0, name: "one", scale: 1 }, /lora.*either id or name/],
    [{ scale: 1 }, /lora.*either id or name/],
    [{ id: 0, scale: 11 }, /lora.*must be at most 10/],
  ] as const)("refuses %j", async ([choice, message]) => {
    const answer = await post("/v1/completions", { prompt: PROMPT, lora: [choice] });
    expect(answer).toMatchObject({ error: { type: "invalid_request" } });
    expect(JSON.stringify(answer)).toMatch(message);
  });
});
