import { describe, expect, test } from "vitest";
import { eventsOf } from "../../../support/fake-engine.ts";
import { testApp, type TestApp } from "../../../support/test-app.ts";
import { chunksOf, messages, PATH, TOOL } from "./chat-client.ts";

function speaking(): TestApp {
  const all = testApp();
  all.engine.script = async function* () {
    yield* eventsOf("Hello");
  };
  return all;
}

describe("a chat of which only the cache is wanted, as llama.vim asks for it", () => {
  test("has an answer without text", async () => {
    const all = speaking();
    const body = { messages, n_predict: 0, samplers: [], response_fields: [""], id_slot: 0, tools: [TOOL] };
    const answer = await all.post(PATH, body);
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({
      choices: [{ message: { content: "" }, finish_reason: "length" }],
      usage: { completion_tokens: 0 },
    });
    expect(all.lastRequest().maxTokens).toBe(1);
  });

  test("has none in a stream, either", async () => {
    const answer = await speaking().post(PATH, { messages, n_predict: 0, stream: true });
    const data = (await answer.text())
      .split("\n\n")
      .filter((event) => event.startsWith("data: "))
      .map((event) => ({ data: event.slice("data: ".length) }));
    const choices = chunksOf(data).flatMap((chunk) => chunk.choices);
    expect(choices.filter(({ delta }) => delta.content)).toEqual([]);
    expect(choices.at(-1)?.finish_reason).toBe("length");
  });

  test("is not what OpenAI's own names of the limit ask for", async () => {
    expect((await speaking().post(PATH, { messages, max_completion_tokens: 0 })).status).toBe(400);
  });
});
