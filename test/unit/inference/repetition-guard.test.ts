import { describe, expect, it } from "vitest";
import { type ConfigInput, configSchema } from "../../../src/config/schema.ts";
import type { GenerationEvent } from "../../../src/engine/protocol/generation.ts";
import { collectAnswer } from "../../../src/inference/collect-answer.ts";
import { createInference } from "../../../src/inference/create-inference.ts";
import type { InferenceRequest } from "../../../src/inference/inference.ts";
import { RepetitionFinder } from "../../../src/inference/repetition-guard.ts";
import { NO_SETTINGS } from "../../../src/models/model.ts";
import { DONE, FakeEngine } from "../../support/fake-engine.ts";
import { FakeMetrics } from "../../support/fake-metrics.ts";
import { fakeModel, FakeModels } from "../../support/fake-models.ts";
import { never, REQUEST } from "./inference-setup.ts";

/** Number of tokens that the engine would generate. */
const TOKENS = 3000;

interface Case {
  readonly request?: Partial<InferenceRequest>;
  readonly ofModel?: boolean;
  readonly config?: ConfigInput["models"];
  readonly event?: (index: number) => GenerationEvent;
}

/** Collects the answer of an engine that repeats itself until it is stopped. */
async function answerOf({ request, ofModel, config, event }: Case) {
  const engine = new FakeEngine();
  let generated = 0;
  engine.script = async function* (_request, signal) {
    yield { type: "start" };
    yield { type: "prompt-progress", processed: 9, total: 9, cached: 4 };
    for (; generated < TOKENS && !signal.aborted; generated++) {
      yield event?.(generated) ?? { type: "text-delta", text: "\n" };
    }
    if (!signal.aborted) yield DONE;
  };
  const settings = { ...NO_SETTINGS, ...(ofModel !== undefined && { repetitionGuard: ofModel }) };
  const models = new FakeModels([fakeModel({ settings })], engine);
  const stopped: string[] = [];
  const inference = createInference({
    models,
    metrics: new FakeMetrics(),
    config: configSchema.parse({ models: config ?? {} }),
    onRepetition: (model) => void stopped.push(model),
  });
  const { events } = await inference.generate({ ...REQUEST, ...request }, never);
  return { answer: await collectAnswer(events), generated, stopped, models, inference };
}

describe("the repetition guard", () => {
  it("ends the answer with the reason length, reports the repetition, and stops the engine at once", async () => {
    const { answer, generated, stopped, models, inference } = await answerOf({
      request: { repetitionGuard: true },
    });
    expect(answer).toMatchObject({
      reason: "length",
      limitedBy: "repetition",
      text: "\n".repeat(256),
      usage: { promptTokens: 9, cachedTokens: 4, completionTokens: 256 },
    });
    expect(generated).toBeLessThan(300);
    expect(stopped).toEqual(["fake"]);
    expect([models.leases, inference.activeRequests]).toEqual([0, 0]);
  });

  it("counts every token of a joined delta", async () => {
    const { answer } = await answerOf({
      request: { repetitionGuard: true },
      event: (index) => {
        const count = 1 + (index % 7);
        return {
          type: "text-delta",
          text: " go".repeat(count),
          ends: Array.from({ length: count }, (_, at) => 3 * (at + 1)),
        };
      },
    });
    expect(answer).toMatchObject({
      limitedBy: "repetition",
      text: " go".repeat(256),
      usage: { completionTokens: 256 },
    });
  });

  it("is off by default", async () => {
    const { answer, generated, stopped } = await answerOf({});
    expect(answer).toMatchObject({ reason: "stop" });
    expect(answer).not.toHaveProperty("limitedBy");
    expect(generated).toBe(TOKENS);
    expect(stopped).toEqual([]);
  });

  it.each<[string, Case, boolean]>([
    ["the configuration", { config: { repetition_guard: true } }, true],
    ["the model", { ofModel: true }, true],
    ["the model, against the configuration", { config: { repetition_guard: true }, ofModel: false }, false],
    ["the request, against the model", { ofModel: true, request: { repetitionGuard: false } }, false],
  ])("is controlled by %s", async (_who, options, isOn) => {
    const { generated } = await answerOf(options);
    expect(generated < TOKENS).toBe(isOn);
  });

  it.each<[string, (index: number) => GenerationEvent]>([
    ["reasoning", () => ({ type: "reasoning-delta", text: " Wait." })],
    [
      "the arguments of a call",
      (index) =>
        index === 0
          ? { type: "tool-call-start", index: 0, id: "1", name: "look" }
          : { type: "tool-call-delta", index: 0, arguments: " " },
    ],
  ])("checks %s as well", async (_what, event) => {
    const { answer, generated } = await answerOf({ request: { repetitionGuard: true }, event });
    expect(answer.limitedBy).toBe("repetition");
    expect(generated).toBeLessThan(300);
  });
});

/** Splits text like a tokenizer: words with a leading space, digits, punctuation, and runs of whitespace. */
function pieces(text: string): string[] {
  return text.match(/ ?\p{L}+|\d|\n| +|[^\p{L}\d\s]/gu) ?? [];
}

/** Returns the number of tokens until a loop is detected; undefined: never. */
function foundAfter(tokens: readonly string[]): number | undefined {
  const finder = new RepetitionFinder();
  const at = tokens.findIndex((token) => finder.add(token));
  return at < 0 ? undefined : at + 1;
}

const times = (count: number, span: readonly string[]): string[] =>
  Array.from({ length: count }, () => span).flat();
const lines = (count: number, line: (index: number) => string): string[] =>
  pieces(Array.from({ length: count }, (_, index) => line(index)).join("\n"));

const STORY = pieces(
  "Once upon a time there was a princess who lived in a tower by the sea, and she was bored. ",
);
const INTRODUCTION = lines(
  12,
  (index) => `Chapter ${index}: what happened on day ${index * 7} of the journey.`,
);

describe("a repetitive text", () => {
  it.each([
    ["a single token", [" the"], 256],
    ["blanks, as in a grammar that allows any number", [" "], 256],
    ["line breaks and blanks", ["\n", "    "], 256],
    ["an exclamation mark", ["!"], 256],
    ["a sentence", STORY, 512],
  ])("is detected after a few hundred tokens: %s", (_what, span, after) => {
    expect(foundAfter(times(2000, span))).toBe(after);
  });

  it("is detected wherever the repetition begins", () => {
    const after = foundAfter([...INTRODUCTION, ...times(2000, STORY)]);
    expect(after).toBeGreaterThan(INTRODUCTION.length + 500);
    expect(after).toBeLessThan(INTRODUCTION.length + 516);
  });

  it("is detected after four repeats of a long span", () => {
    const chapter = lines(
      40,
      (index) => `And then number ${index} said that it had seen ${index * 3} of them.`,
    );
    expect(foundAfter(times(10, chapter))).toBe(4 * chapter.length);
  });

  it("is detected in data only if it is far longer than common arrays", () => {
    expect(foundAfter(times(5000, ["0", ","]))).toBe(4096);
  });

  it("is detected after a change of the span", () => {
    const after = foundAfter([...times(50, [" ha"]), ...times(100, [" so", " what"]), ...times(900, STORY)]);
    expect(after).toBeDefined();
  });
});

describe("a text with long but finite repetition", () => {
  it.each([
    ["a story", lines(200, (index) => `${STORY.join("")} She counted ${index} ships that morning.`)],
    ["a table whose rows differ in a number", lines(300, (index) => `| ${index} | n/a | yes | no | n/a |`)],
    ["a table of equal rows", lines(20, () => "| n/a | n/a | yes | no |")],
    ["code with repeated lines", lines(400, (index) => `    values.push(table[${index % 7}][${index}]);`)],
    ["equal lines of code", lines(30, () => "    await step();")],
    ["an array of a thousand zeros", pieces(`[${times(1000, ["0"]).join(",")}]`)],
    ["a matrix of zeros", lines(28, () => `[${times(28, ["0"]).join(", ")}],`)],
    ["an image in hexadecimal numbers", lines(20, () => times(16, ["0x00, "]).join(""))],
    ["a rule of dashes", times(200, ["-"])],
    [
      "JSON objects that differ in an ID",
      lines(300, (index) => `{"id": ${index}, "name": null, "tags": []},`),
    ],
    ["a laugh", times(60, [" ha"])],
    ["counting", pieces(Array.from({ length: 3000 }, (_, index) => index).join(" "))],
  ])("is not stopped: %s", (_what, tokens) => {
    expect(foundAfter(tokens)).toBeUndefined();
  });

  it("takes constant time per token", () => {
    // With linear time per token, this would take minutes.
    const length = 100_000;
    const tokens = Array.from({ length }, (_, index) =>
      index % 200 === 199 ? String(index) : STORY[index % STORY.length]!,
    );
    expect(foundAfter(tokens)).toBeUndefined();
  });
});
