import { nextTimeSlice } from "../../async/time-slices.ts";

/** Characters written per turn of the event loop: about a millisecond of numbers. */
const CHARACTERS_IN_A_TURN = 64 * 1024;

const ENCODER = new TextEncoder();

/**
 * A JSON response with potentially long arrays, such as vectors: written element by element over several turns of the event
 * loop, as fast as the client reads; a short one at once, with its length. The text is that of JSON.stringify.
 * @param value - an array, or an object: its fields are written whole, the elements of its arrays one after the other
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
  if (Array.isArray(value)) return yield* arrayPieces("", value);
  let text = "{";
  let comma = "";
  for (const [name, field] of Object.entries(value)) {
    if (field === undefined) continue;
    text += `${comma}${JSON.stringify(name)}:`;
    comma = ",";
    if (Array.isArray(field)) text = yield* arrayPieces(text, field);
    else text += JSON.stringify(field);
  }
  return `${text}}`;
}

async function* arrayPieces(before: string, elements: readonly unknown[]): AsyncGenerator<string, string> {
  let text = `${before}[`;
  for (const [at, element] of elements.entries()) {
    text += `${at > 0 ? "," : ""}${JSON.stringify(element)}`;
    if (text.length < CHARACTERS_IN_A_TURN) continue;
    yield text;
    text = "";
    await nextTimeSlice();
  }
  return `${text}]`;
}
