import { expect, test } from "vitest";
import { ServiceError } from "../../../src/errors/service-error.ts";
import { embedTruncated } from "../../../src/inference/embed-truncated.ts";
import { FakeEngine } from "../../support/fake-engine.ts";

const NEVER = new AbortController().signal;
/** What a step of the fake engine takes: a token for each byte, and one to begin with. */
const LIMIT = 64;

/** An engine that refuses texts of more tokens than a limit, as the real one does. */
function engineOf(limit = LIMIT) {
  const engine = new FakeEngine();
  const texts: string[] = [];
  const embed = engine.embed.bind(engine);
  engine.embed = async (text, signal) => {
    const tokens = await engine.tokenize(text, { addSpecial: true, parseSpecial: true });
    if (tokens.length > limit) throw new ServiceError("context_length_exceeded", "Too long.");
    texts.push(text);
    return await embed(text, signal);
  };
  return { engine, texts };
}

test("a text that fits is embedded as it is", async () => {
  const { engine, texts } = engineOf();
  await embedTruncated(engine, "short", NEVER);
  expect(texts).toEqual(["short"]);
});

test("of a longer one the first tokens are, as many as fit", async () => {
  const { engine, texts } = engineOf();
  await embedTruncated(engine, "x".repeat(10_000), NEVER);
  expect(texts).toEqual(["x".repeat(LIMIT - 1)]);
});

test("half a character at the cut is left out", async () => {
  const { engine, texts } = engineOf();
  await embedTruncated(engine, "🙂".repeat(1000), NEVER);
  expect(texts).toEqual(["🙂".repeat(Math.floor((LIMIT - 1) / 4))]);
});

test("a little less is taken when the cut text has more tokens than it had in the whole", async () => {
  const { engine, texts } = engineOf(LIMIT - 2);
  await embedTruncated(engine, "x".repeat(1000), NEVER);
  expect(texts).toHaveLength(1);
  expect(texts[0]!.length).toBeGreaterThan(LIMIT - 8);
});

test("without a tokenizer the text is shortened until it fits", async () => {
  const { engine, texts } = engineOf();
  const tokenize = engine.tokenize.bind(engine);
  engine.tokenize = () => Promise.reject(new ServiceError("unsupported_feature", "Stock."));
  engine.embed = async (text) => {
    const { length } = await tokenize(text, { addSpecial: true, parseSpecial: true });
    if (length > LIMIT) throw new ServiceError("context_length_exceeded", "Too long.");
    texts.push(text);
    return { vector: [text.length, 0], tokens: length };
  };
  await embedTruncated(engine, "x".repeat(10_000), NEVER);
  expect(texts).toHaveLength(1);
  expect(texts[0]!.length).toBeGreaterThan(LIMIT / 2);
});

test("any other failure is passed on", async () => {
  const { engine } = engineOf();
  engine.embed = () => Promise.reject(new ServiceError("engine_crashed", "Gone."));
  await expect(embedTruncated(engine, "x", NEVER)).rejects.toMatchObject({ code: "engine_crashed" });
});
