import type { GenerationEvent } from "../engine/protocol/generation.ts";
import type { EventReader } from "./event-reader.ts";

/**
 * Drops what a template puts around the parts of an answer: blanks around reasoning, and the token that ends a turn.
 * @param endOfTurn that token; absent: the engine does not show it
 * @param goesOn the answer goes on with a message, whose reasoning may have begun: its first blanks count
 */
export function tidyAnswer(endOfTurn: string | undefined, goesOn: boolean): EventReader {
  let blanks = "";
  let state: "before" | "reasoning" | "after" | "text" = "before";
  let last: Extract<GenerationEvent, { type: "text-delta" }> | undefined;
  return function* (event) {
    if (last && event.type !== "prompt-progress") {
      const isEnd = event.type === "done" && endOfTurn !== undefined;
      yield isEnd ? { ...last, text: last.text.slice(0, -endOfTurn.length) } : last;
      last = undefined;
    }
    if (event.type === "reasoning-delta") {
      const text = blanks + event.text;
      const isBegun = goesOn || state === "reasoning";
      const shown = isBegun ? text.trimEnd() : text.trim();
      // Until there is more than blanks, those at the beginning are dropped.
      blanks = shown === "" && !isBegun ? "" : text.slice(text.trimEnd().length);
      if (shown === "") return;
      state = "reasoning";
      yield { ...event, text: shown };
    } else if (event.type === "text-delta") {
      if (state === "reasoning") state = "after";
      const text = state === "after" ? event.text.trimStart() : event.text;
      if (text !== "") state = "text";
      blanks = "";
      const shown = { ...event, text };
      if (text === "" && event.text !== "" && !event.logprobs) return;
      if (endOfTurn !== undefined && text.endsWith(endOfTurn)) last = shown;
      else yield shown;
    } else yield event;
  };
}
