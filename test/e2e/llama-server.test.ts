import fs from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { completionChunkSchema, completionSchema } from "../../src/api/llama-server/completion-answer.ts";
import { temporaryFolder, writeModel } from "../support/engine-fixture.ts";
import { addModel, removeModel, sharedDaemon } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";
import { tinyLlama } from "../support/tiny-models.ts";

const MARKERS = ["<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<reponame>", "<|file_sep|>"];
const model = "editor";
const GREEDY = { model, temperature: 0, n_predict: 4 };
const folder = temporaryFolder();
let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await sharedDaemon();
  // Enough tokens for half a minute: a shorter answer could end before a busy machine reads the slot's state.
  const file = writeModel(folder, "editor", tinyLlama({ words: MARKERS, context: 32_768 }));
  await addModel(daemon, model, `FROM ${file}\nPARAMETER num_ctx 32768\n`);
});

afterAll(async () => {
  await removeModel(daemon, model);
  fs.rmSync(folder, { recursive: true });
});

function request(body: object): RequestInit {
  return {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  };
}

async function post(path: string, body: object): Promise<string> {
  const answer = await fetch(daemon.url + path, request(body));
  expect(answer.status).toBe(200);
  return await answer.text();
}

async function get(path: string): Promise<unknown> {
  return await (await fetch(daemon.url + path)).json();
}

const complete = async (body: object) =>
  completionSchema.parse(JSON.parse(await post("/completion", { ...GREEDY, ...body })));

describe("llama-server's API:", () => {
  test("a completion reports its prompt statistics, and is the same streamed", async () => {
    const asked = { model: "daybreak-mini", prompt: "Once upon a time" };
    const whole = await complete({ ...asked, return_tokens: true });
    expect(whole).toMatchObject({ tokens_predicted: 4, stop_type: "limit", truncated: false });
    expect((await complete({ ...asked, id_slot: 1 })).id_slot).toBe(1);
    expect(whole.prompt).toContain("Once upon a time");
    expect(whole.tokens).toHaveLength(4);
    expect(whole.id_slot).toBeGreaterThanOrEqual(0);
    expect(whole.timings.predicted_n).toBe(4);
    const frames = (await post("/completion", { ...GREEDY, ...asked, stream: true }))
      .split("\n\n")
      .filter((frame) => frame.startsWith("data: "));
    const chunks = frames.map((frame) => completionChunkSchema.parse(JSON.parse(frame.slice(6))));
    expect(chunks.map(({ content }) => content).join("")).toBe(whole.content);
    expect(chunks.at(-1)).toMatchObject({ stop: true, stop_type: "limit" });
    const again = await complete(asked);
    expect(again.timings.cache_n).toBeGreaterThan(0);
  });

  test("a request waits for the slot that it names, while others do not", async () => {
    const leave = new AbortController();
    const long = { ...GREEDY, prompt: "once", n_predict: -1, ignore_eos: true, stream: true };
    const busy = await fetch(`${daemon.url}/completion`, { ...request(long), signal: leave.signal });
    const reader = busy.body!.getReader();
    await reader.read();
    const slots = z
      .array(z.object({ id: z.int(), is_processing: z.boolean() }))
      .parse(await get(`/slots?model=${model}`));
    const slot = slots.find(({ is_processing: isBusy }) => isBusy)!.id;
    const order: string[] = [];
    const named = complete({ prompt: "twice", id_slot: slot }).then((answer) => {
      order.push("named");
      return answer;
    });
    const other = await complete({ prompt: "thrice" });
    order.push("other");
    leave.abort();
    expect((await named).id_slot).toBe(slot);
    expect(other.id_slot).not.toBe(slot);
    expect(order).toEqual(["other", "named"]);
  });

  test("/infill fills in the middle, and its extra context is prefilled", async () => {
    const gap = {
      input_prefix: "once ",
      input_suffix: " time",
      input_extra: [{ filename: "a.txt", text: "upon a" }],
      prompt: "",
      samplers: ["top_k", "top_p", "infill"],
      t_max_prompt_ms: 500,
      t_max_predict_ms: 1000,
    };
    const ahead: unknown = JSON.parse(await post("/infill", { ...GREEDY, ...gap, n_predict: 0 }));
    expect(completionSchema.parse(ahead)).toMatchObject({
      content: "",
      tokens_predicted: 0,
      prompt: expect.stringMatching(
        /<reponame>myproject\n<\|file_sep\|>a\.txt\nupon a<\|file_sep\|>filename\n<fim_prefix>once <fim_suffix> ?time<fim_middle>$/,
      ),
    });
    const fields = ["content", "timings/cache_n"];
    const filled: unknown = JSON.parse(await post("/infill", { ...GREEDY, ...gap, response_fields: fields }));
    expect(filled).toEqual({ content: expect.any(String), "timings/cache_n": expect.any(Number) });
    expect(Object(filled)["timings/cache_n"]).toBeGreaterThan(10);
  });

  test("/apply-template gives the prompt of a chat", async () => {
    const messages = [{ role: "user", content: "Hello" }];
    const asked = { model: "daybreak-mini", temperature: 0 };
    const applied: unknown = JSON.parse(await post("/apply-template", { model: "daybreak-mini", messages }));
    const { prompt } = z.object({ prompt: z.string().includes("Hello") }).parse(applied);
    const completion: unknown = JSON.parse(await post("/completion", { ...asked, prompt, n_predict: 8 }));
    const chat: unknown = JSON.parse(
      await post("/v1/chat/completions", { ...asked, messages, max_tokens: 8 }),
    );
    const { message } = z
      .object({ choices: z.array(z.object({ message: z.object({ content: z.string() }) })) })
      .parse(chat).choices[0]!;
    expect(completionSchema.parse(completion).content.trim()).toBe(message.content.trim());
  });

  test("/props and /slots describe the loaded model", async () => {
    expect(await get(`/props?model=${model}`)).toMatchObject({ model_alias: model, is_sleeping: false });
    const idle = { speculative: false, is_processing: false, n_prompt_tokens: expect.any(Number) };
    expect(await get(`/slots?model=${model}`)).toContainEqual(expect.objectContaining(idle));
    expect(await get(`/lora-adapters?model=${model}`)).toEqual([]);
  });

  test("a slot's prompt is saved, erased and restored", async () => {
    const asked = { prompt: "the sun rose over the hills and the birds began to sing" };
    const { id_slot: slot, timings } = await complete(asked);
    expect(timings.cache_n).toBe(0);
    const act = async (action: string): Promise<unknown> =>
      JSON.parse(await post(`/slots/${slot}?action=${action}`, { model, filename: "dawn.bin" }));
    const saved = z.object({ n_saved: z.int().min(10), n_written: z.int().min(1) }).parse(await act("save"));
    expect(await act("erase")).toMatchObject({ id_slot: slot, n_erased: saved.n_saved });
    for (const action of ["save", "restore", "erase"]) {
      const answer = await fetch(
        `${daemon.url}/slots/64?action=${action}`,
        request({ model, filename: "dawn.bin" }),
      );
      expect(answer.status).toBe(400);
      expect(await answer.text()).toContain("The model has no slot of this number");
    }
    expect(await act("restore")).toMatchObject({ n_restored: saved.n_saved, n_read: saved.n_written });
    expect((await complete(asked)).timings.cache_n).toBeGreaterThan(5);
  });
});
