import { describe, expect, test } from "vitest";
import { countTokens } from "../../../src/inference/collect-answer.ts";
import { promptFromTokens, splitTokenTexts, toTokenIds } from "../../../src/inference/tokens.ts";
import { testApp } from "../../support/test-app.ts";
import { BEGIN_TOKEN, DONE, FakeEngine } from "../../support/fake-engine.ts";

const NEVER = new AbortController().signal;
const HALF_A_CHARACTER = [0xf0, 0x9f];

function bytes(text: string): number[] {
  return [...Buffer.from(text)];
}

describe("token ids as a prompt", () => {
  test.each([
    ["with the token that begins every prompt", [BEGIN_TOKEN, ...bytes("grüße")], "grüße"],
    ["without it, for the model puts it there", bytes("grüße"), "grüße"],
    ["with a blank that belongs to the text", [BEGIN_TOKEN, ...bytes(" a")], " a"],
  ])("become the text that is tokenized to them, %s", async (_, ids, text) => {
    expect(await promptFromTokens(new FakeEngine(), ids, "prompt", NEVER)).toBe(text);
  });

  test("lose the leading space that the tokenizer adds", async () => {
    const engine = new FakeEngine();
    const plain = engine.tokenize.bind(engine);
    engine.tokenize = (text, options) => plain(text === "" ? "" : ` ${text}`, options);
    expect(await promptFromTokens(engine, [BEGIN_TOKEN, ...bytes(" a")], "prompt", NEVER)).toBe("a");
  });

  test.each([
    ["no text gives them", [BEGIN_TOKEN, ...HALF_A_CHARACTER]],
    ["their text gives others", [...bytes("a"), BEGIN_TOKEN]],
    ["they are not ids at all", [2 ** 31]],
  ])("are refused if %s", async (_, ids) => {
    await expect(promptFromTokens(new FakeEngine(), ids, "prompt", NEVER)).rejects.toMatchObject({
      code: "invalid_parameter",
      param: "prompt",
    });
  });

  test("are sent to the engine as that text", async () => {
    const app = testApp();
    await app.post("/v1/completions", { prompt: [bytes("one"), bytes("two")] });
    expect(app.engine.requests.map(({ input }) => input)).toEqual([
      { kind: "prompt", prompt: "one" },
      { kind: "prompt", prompt: "two" },
    ]);
  });
});

test("bytes are split where each token ends", async () => {
  const ids = toTokenIds([7, 8, 9], "tokens");
  const pieces = await splitTokenTexts(ids, { bytes: Uint8Array.of(1, 2, 3), ends: Int32Array.of(2, 2, 3) });
  expect(pieces).toEqual([
    { id: 7, bytes: Uint8Array.of(1, 2) },
    { id: 8, bytes: Uint8Array.of() },
    { id: 9, bytes: Uint8Array.of(3) },
  ]);
});

test("the token routes answer like llama.cpp's server", async () => {
  const app = testApp();
  const answer = async (path: string, body: object): Promise<unknown> => (await app.post(path, body)).json();
  expect(await answer("/tokenize", { content: "ab" })).toEqual({ tokens: [97, 98] });
  expect(await answer("/tokenize", { content: "a", add_special: true })).toEqual({ tokens: [1, 97] });
  expect(await answer("/tokenize", { content: "ü", with_pieces: true })).toEqual({
    tokens: [
      { id: 0xc3, piece: [0xc3] },
      { id: 0xbc, piece: [0xbc] },
    ],
  });
  expect(await answer("/detokenize", { tokens: bytes("ü") })).toEqual({ content: "ü" });
});

test("a prompt is counted at the first progress report, and the request is cancelled", async () => {
  const app = testApp();
  let isLeft = false;
  app.engine.script = async function* () {
    try {
      yield { type: "start" };
      yield { type: "prompt-progress", processed: 64, total: 1234 };
      yield DONE;
    } finally {
      isLeft = true;
    }
  };
  const answer = await app.post("/v1/messages/count_tokens", {
    system: "Be brief.",
    messages: [{ role: "user", content: "hi" }],
  });
  expect(await answer.json()).toEqual({ input_tokens: 1234 });
  expect(app.lastRequest().maxTokens).toBe(1);
  expect(isLeft).toBe(true);
  expect(app.models.leases).toBe(0);
});

async function* onlyTheEnd() {
  yield { ...DONE, totalMs: 1, tokensPerSecond: 1 };
}

test("a prompt is counted at the end of the answer if there is no progress report", async () => {
  const inference = {
    generate: async () => ({ model: "fake", loadMs: 0, sampling: {}, warnings: [], events: onlyTheEnd() }),
  };
  const request = {
    endpoint: "chat",
    input: { kind: "prompt", prompt: "" },
    sampling: {},
    format: { type: "text" },
    defaults: { sampling: {} },
  } as const;
  expect(await countTokens(inference, request, NEVER)).toBe(DONE.usage.promptTokens);
});
