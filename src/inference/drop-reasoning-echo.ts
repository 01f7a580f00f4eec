import type { GenerationEvent } from "../engine/protocol/generation.ts";
import type { EventReader } from "./event-reader.ts";

type TextDelta = Extract<GenerationEvent, { type: "text-delta" }>;

/**
 * Drops text that llama.cpp repeats as reasoning: within reasoning, it shows the beginning of a tag that may end it as text
 * at first. Text behind reasoning is held back as long as it may be one; if the reasoning goes on, it was.
 * @param tags that may end the reasoning
 */
export function dropReasoningEcho(tags: readonly string[]): EventReader {
  let isBehindReasoning = false;
  let held: TextDelta[] = [];
  return function* (event) {
    if (event.type === "prompt-progress") yield event;
    else if (event.type === "reasoning-delta") {
      isBehindReasoning = true;
      held = [];
      yield event;
    } else if (event.type === "text-delta" && isBehindReasoning) {
      held.push(event);
      const text = held.map((each) => each.text).join("");
      if (tags.some((tag) => tag.startsWith(text))) return;
      isBehindReasoning = false;
      yield* held;
      held = [];
    } else {
      yield* held;
      held = [];
      yield event;
    }
  };
}
