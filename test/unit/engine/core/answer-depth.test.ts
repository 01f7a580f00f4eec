import { describe, expect, test } from "vitest";
import { AnswerDepth, MAX_ANSWER_DEPTH } from "../../../../src/engine/core/answer-depth.ts";
import type { GenerationEvent, OutputFormat } from "../../../../src/engine/protocol/generation.ts";

const text = (piece: string): GenerationEvent => ({ type: "text-delta", text: piece });
const call = (index: number, piece: string): GenerationEvent => ({
  type: "tool-call-delta",
  index,
  arguments: piece,
});
const deepest = "[{".repeat(MAX_ANSWER_DEPTH / 2);

function watch(format: OutputFormat, events: readonly GenerationEvent[]): () => void {
  const depth = new AnswerDepth(format);
  return () => events.forEach((event) => depth.check(event));
}

describe("the nesting of an answer", () => {
  test.each([
    ["JSON", { type: "json" }, [text(deepest), text("[")]],
    ["a schema's", { type: "json_schema", schema: {} }, [text(`{"a": ${deepest}`)]],
    ["a tool call's, whatever the format", { type: "text" }, [call(0, deepest), call(0, "["), call(0, "[")]],
    ["that begins again behind a closed one", { type: "json" }, [text(`[[]${deepest}`)]],
    ["behind a text with a quote in it", { type: "json" }, [text('["\\'), text('"",'), text(deepest)]],
  ] as const)("stops one that is too deep: %s", (_, format, events) => {
    expect(watch(format, events)).toThrow(`more than ${MAX_ANSWER_DEPTH} levels deep`);
  });

  test.each([
    ["as deep as it may be", { type: "json" }, [text(deepest)]],
    [
      "with brackets in texts",
      { type: "json" },
      [text(`["${deepest}[[`), text(`${deepest}\\"`), text(deepest)],
    ],
    ["wide", { type: "json" }, [text(`[${"[],".repeat(500)}`)]],
    ["of several tool calls", { type: "text" }, [call(0, deepest), call(1, deepest)]],
    ["that is not JSON", { type: "text" }, [text(deepest), text(deepest)]],
  ] as const)("accepts an answer that is not too deep: %s", (_, format, events) => {
    expect(watch(format, events)).not.toThrow();
  });
});
