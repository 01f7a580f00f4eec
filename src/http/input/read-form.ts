import { ServiceError } from "../../errors/service-error.ts";
import type { AppContext } from "../app-env.ts";
import { assertNotCompressed, mediaType } from "./content-type.ts";
import { FORM_TYPE, formBoundary, notAForm } from "./form-type.ts";
import { boundedBody } from "./read-json.ts";

/** Forms of the APIs here have a dozen fields; the parser takes five microseconds for each part, however small. */
const MOST_PARTS = 64;

/**
 * Reads the body of a request as a form with files, within the limits of other bodies.
 * @throws ServiceError unsupported_media_type, payload_too_large, overloaded, or invalid_parameter for what is not a form
 */
export async function readForm(context: AppContext): Promise<FormData> {
  const { headers } = context.req.raw;
  assertNotCompressed(headers);
  const type = headers.get("content-type") ?? "";
  const boundary = formBoundary(headers);
  if (mediaType(headers) !== FORM_TYPE || boundary === undefined) {
    throw new ServiceError("unsupported_media_type", `The body must be a form of the type ${FORM_TYPE}.`);
  }
  return await boundedBody(context, async (pieces) => {
    const body = new Blob(await copies(pieces));
    const latin1 = new TextDecoder("latin1").decode(await body.arrayBuffer());
    // Around each part, and at the end.
    if (latin1.split(`--${boundary}`).length > MOST_PARTS + 2)
      throw notAForm(`has more than ${MOST_PARTS} parts`);
    try {
      return await new Response(body, { headers: { "content-type": type } }).formData();
    } catch (cause) {
      throw notAForm("is not a valid form", cause);
    }
  });
}

async function copies(pieces: AsyncIterable<Uint8Array>): Promise<Uint8Array<ArrayBuffer>[]> {
  const all: Uint8Array<ArrayBuffer>[] = [];
  for await (const piece of pieces) all.push(Uint8Array.from(piece));
  return all;
}
