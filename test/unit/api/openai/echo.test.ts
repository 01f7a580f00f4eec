import { describe, expect, test } from "vitest";
import { BEGIN_TOKEN, DONE } from "../../../support/fake-engine.ts";
import { forcedBytes } from "../../../support/forced-bytes.ts";
import { sseEvents, testApp, type TestApp } from "../../../support/test-app.ts";
import { clientOf } from "./chat-client.ts";

/** App whose model answers "!" and scores prompts: each token's log probability follows from its ID. */
function scoringApp(options: { slots?: number } = {}): TestApp {
  const all = testApp(options);
  all.engine.script = forcedBytes("!");
  return all;
}

function bytes(text: string): number[] {
  return [...Buffer.from(text)];
}

const REQUEST = { model: "fake", max_tokens: 1, logprobs: 1, echo: true, temperature: 0 };

describe("echo with logprobs, which evaluation harnesses use", () => {
  test("scores every prompt token but the first, and the generated token", async () => {
    const answer = await clientOf(scoringApp()).completions.create({ ...REQUEST, prompt: "abc" });
    expect(answer.choices[0]?.text).toBe("abc!");
    expect(answer.choices[0]?.logprobs).toEqual({
      tokens: ["a", "b", "c", "!"],
      token_logprobs: [null, -98, -99, -33],
      top_logprobs: [null, { b: -98 }, { c: -99 }, { "!": -33 }],
      text_offset: [0, 1, 2, 3],
    });
  });

  test("accepts batches of token IDs, and counts them as sent", async () => {
    const prompt = [[BEGIN_TOKEN, ...bytes("ab")], bytes("xyz")];
    const answer = await clientOf(scoringApp({ slots: 1 })).completions.create({ ...REQUEST, prompt });
    expect(answer.choices.map(({ text, logprobs }) => [text, logprobs?.token_logprobs])).toEqual([
      ["ab!", [null, -97, -98, -33]],
      ["xyz!", [null, -121, -122, -33]],
    ]);
  });

  test("returns only the prompt with max_tokens 0, streamed or not", async () => {
    const all = scoringApp();
    const body = { ...REQUEST, prompt: "abc", max_tokens: 0 };
    const answer = await clientOf(all).completions.create(body);
    expect(answer).toMatchObject({
      choices: [{ text: "abc", finish_reason: "length", logprobs: { token_logprobs: [null, -98, -99] } }],
      usage: { prompt_tokens: 4, completion_tokens: 0 },
    });
    const chunks = (await sseEvents(await all.post("/v1/completions", { ...body, stream: true })))
      .slice(0, -1)
      .map(({ data }): unknown => JSON.parse(data));
    expect(chunks).toMatchObject([
      { choices: [{ text: "abc", logprobs: { tokens: ["a", "b", "c"] } }] },
      { choices: [{ text: "", finish_reason: "length" }] },
    ]);
  });

  test("has an entry for an end-of-text token, so that there is one per token", async () => {
    const all = testApp();
    const scored = forcedBytes("");
    all.engine.script = async function* (request) {
      if (request.format.type === "grammar") yield* scored(request);
      else {
        yield { type: "start" };
        yield {
          type: "text-delta",
          text: "",
          logprobs: [{ id: 2, token: "", logprob: -2, bytes: [], top: [] }],
        };
        yield DONE;
      }
    };
    const answer = await clientOf(all).completions.create({ ...REQUEST, prompt: "ab" });
    expect(answer.choices[0]?.logprobs?.token_logprobs).toEqual([null, -98, -2]);
    const plain = await clientOf(all).completions.create({ ...REQUEST, prompt: "ab", echo: false });
    expect(plain.choices[0]?.logprobs).toBeNull();
  });
});

test("best_of returns the completions with the highest log probabilities", async () => {
  const all = testApp();
  const texts = ["c", "a", "d", "b"];
  all.engine.script = async function* () {
    const text = texts[all.engine.requests.length - 1] ?? "";
    const id = text.charCodeAt(0);
    yield { type: "start" };
    yield { type: "text-delta", text, logprobs: [{ id, token: text, logprob: -id, bytes: null, top: [] }] };
    yield DONE;
  };
  const answer = await clientOf(all).completions.create({ model: "fake", prompt: "x", n: 2, best_of: 4 });
  expect(answer.choices.map(({ index, text, logprobs }) => [index, text, logprobs])).toEqual([
    [0, "a", null],
    [1, "b", null],
  ]);
  expect(answer.usage).toMatchObject({ prompt_tokens: 7, completion_tokens: 12 });
});
