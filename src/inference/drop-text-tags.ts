import type { GenerationEvent } from "../engine/protocol/generation.ts";
import type { EventReader } from "./event-reader.ts";
import { heldTagLength } from "./held-tag.ts";

/** The tags between which a model writes the text of an answer. */
export interface TextTags {
  readonly start: string;
  readonly end: string;
}

/** Drops the tags around the whole text of an answer, however they are split. Tags elsewhere are text. */
export function dropTextTags({ start, end }: TextTags): EventReader {
  let state: "before" | "inside" | "text" = "before";
  let held = "";
  const release = function* (ready: number): Generator<GenerationEvent> {
    if (ready > 0) yield { type: "text-delta", text: held.slice(0, ready) };
    held = held.slice(ready);
  };
  return function* (event) {
    if (event.type !== "text-delta") {
      const isOver = event.type === "done" || event.type === "tool-call-start";
      if (isOver && state === "inside" && held.trimEnd() === end) held = "";
      if (isOver) yield* release(held.length);
      yield event;
      return;
    }
    if (event.logprobs) yield { ...event, text: "" };
    held += event.text;
    if (state === "before") {
      const begun = held.trimStart();
      if (begun.startsWith(start)) {
        held = begun.slice(start.length);
        state = "inside";
      } else if (!start.startsWith(begun)) state = "text";
    }
    if (state === "text") yield* release(held.length);
    // The end tag is only one if nothing but blanks follows it.
    if (state === "inside") {
      const at = held.lastIndexOf(end);
      const isEnd = at >= 0 && held.slice(at + end.length).trim() === "";
      yield* release(isEnd ? at : held.length - heldTagLength(held, end));
    }
  };
}
