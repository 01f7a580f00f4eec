import { nextTimeSlice } from "../../async/time-slices.ts";

/** Text written in one turn of the event loop: about a millisecond of numbers. */
const CHARACTERS_IN_A_TURN = 64 * 1024;

const ENCODER = new TextEncoder();

/**
 * An answer in JSON whose lists may be long, as those of vectors are: written element by element, in turns of the event
 * loop, as fast as the client reads it; a short one as a whole, with its length. The same text as JSON.stringify's.
 * @param value - its own fields are written as they are, the elements of its lists one after the other
 */
export async function longJson(value: object): Promise<Response> {
  const headers = { "content-type": "application/json" };
  const texts = pieces(value);
  let next = await texts.next();
  if (next.done) return new Response(next.value, { headers });
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      controller.enqueue(ENCODER.encode(next.value));
      if (next.done) controller.close();
      else next = await texts.next();
    },
    async cancel() {
      await texts.return("");
    },
  });
  return new Response(body, { headers });
}

/** The last piece is what the generator returns. */
async function* pieces(value: object): AsyncGenerator<string, string> {
  let text = "{";
  let comma = "";
  for (const [name, field] of Object.entries(value)) {
    if (field === undefined) continue;
    text += `${comma}${JSON.stringify(name)}:`;
    comma = ",";
    if (!Array.isArray(field)) {
      text += JSON.stringify(field);
      continue;
    }
    text += "[";
    for (const [at, element] of field.entries()) {
      text += `${at > 0 ? "," : ""}${JSON.stringify(element)}`;
      if (text.length < CHARACTERS_IN_A_TURN) continue;
      yield text;
      text = "";
      await nextTimeSlice();
    }
    text += "]";
  }
  return `${text}}`;
}
