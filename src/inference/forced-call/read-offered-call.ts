import type { GenerationEvent } from "../../engine/protocol/generation.ts";
import type { EventReader } from "../event-reader.ts";
import { randomCallId } from "../random-call-id.ts";
import { readForcedCall } from "./read-forced-call.ts";

/**
 * Reads an answer that is either a call in the format of {@link offeredCallSchema} or an answer in its own format. Its
 * beginning is held back until it is clear which.
 * @param names names of the tools
 */
export function readOfferedCall(names: readonly string[], makeId: () => string = randomCallId): EventReader {
  const heads = names.map((name) => withoutBlanks(`{"name":${JSON.stringify(name)},"arguments":`));
  const held: GenerationEvent[] = [];
  let text = "";
  /** The reader of the answer, once that is clear. */
  let read: EventReader | undefined;
  return function* (event) {
    if (read) {
      yield* read(event);
      return;
    }
    if (event.type !== "text-delta" && held.length === 0) {
      yield event;
      return;
    }
    held.push(event);
    if (event.type === "text-delta") text += event.text;
    const begun = withoutBlanks(text);
    if (heads.some((head) => begun.startsWith(head))) read = readForcedCall(makeId);
    else if (event.type !== "text-delta" || !heads.some((head) => head.startsWith(begun))) {
      read = (other) => [other];
    }
    if (read) for (const each of held) yield* read(each);
  };
}

function withoutBlanks(text: string): string {
  return text.replaceAll(/\s/g, "");
}
