import type { GenerationEvent } from "../../engine/protocol/generation.ts";
import { randomCallId } from "../random-call-id.ts";
import { readForcedCall } from "./read-forced-call.ts";

/**
 * Reads an answer that may be a call in the form of {@link offeredCallSchema} or an answer in a form of its own. Its
 * beginning waits until it is clear which of the two it is.
 * @param names of the tools
 */
export async function* readOfferedCall(
  events: AsyncIterable<GenerationEvent>,
  names: readonly string[],
  makeId: () => string = randomCallId,
): AsyncGenerator<GenerationEvent, void, undefined> {
  const iterator = events[Symbol.asyncIterator]();
  const held: GenerationEvent[] = [];
  async function* whole(): AsyncGenerator<GenerationEvent, void, undefined> {
    yield* held;
    for (let next = await iterator.next(); !next.done; next = await iterator.next()) yield next.value;
  }
  const heads = names.map((name) => withoutBlanks(`{"name":${JSON.stringify(name)},"arguments":`));
  let text = "";
  try {
    for (let next = await iterator.next(); !next.done; next = await iterator.next()) {
      const event = next.value;
      if (event.type !== "text-delta" && held.length === 0) {
        yield event;
        continue;
      }
      held.push(event);
      if (event.type === "text-delta") text += event.text;
      const begun = withoutBlanks(text);
      if (heads.some((head) => begun.startsWith(head))) {
        yield* readForcedCall(whole(), makeId);
        return;
      }
      if (event.type !== "text-delta" || !heads.some((head) => head.startsWith(begun))) {
        yield* whole();
        return;
      }
    }
  } finally {
    await iterator.return?.();
  }
}

function withoutBlanks(text: string): string {
  return text.replaceAll(/\s/g, "");
}
