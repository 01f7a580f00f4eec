import { ServiceError } from "../../errors/service-error.ts";
import type { AppContext } from "../app-env.ts";
import { assertNotCompressed, mediaType } from "./content-type.ts";
import { FORM_TYPE, formBoundary, notAForm } from "./form-type.ts";
import { FormParts } from "./form-parts.ts";
import { fileBody } from "./read-json.ts";

/** Forms with a file have a few fields. */
const MOST_PARTS = 16;
/** Longest field that is not the file, in bytes. */
const LONGEST_FIELD = 16 * 1024;
/** Around the file: boundaries, headers and the other fields. */
const OVERHEAD = 512 * 1024;

interface UploadOptions<Received> {
  /** Name of the file's field. */
  readonly field: string;
  /** Longest file in bytes. */
  readonly limit: number;
  /** Takes the file piece by piece, whatever fields come after it. */
  readonly receive: (pieces: AsyncIterable<Uint8Array>) => Promise<Received>;
}

interface Upload<Received> {
  readonly name: string;
  readonly file: Received;
  readonly fields: Readonly<Record<string, string>>;
}

/**
 * Reads a form with one file, of which no more than a piece is in memory.
 * @throws ServiceError unsupported_media_type, payload_too_large, invalid_parameter, or what receiving throws
 */
export async function readUpload<Received extends AsyncDisposable>(
  context: AppContext,
  { field, limit, receive }: UploadOptions<Received>,
): Promise<Upload<Received>> {
  const { headers } = context.req.raw;
  assertNotCompressed(headers);
  const boundary = formBoundary(headers);
  if (mediaType(headers) !== FORM_TYPE || boundary === undefined)
    throw new ServiceError("unsupported_media_type", `The body must be a form of the type ${FORM_TYPE}.`);
  let received: { name: string; file: Received } | undefined;
  const fields: Record<string, string> = {};
  try {
    await fileBody(context, limit + OVERHEAD, async (pieces) => {
      const parts = new FormParts(pieces, boundary);
      let count = 0;
      for (let part = await parts.next(); part; part = await parts.next()) {
        count += 1;
        if (count > MOST_PARTS) throw notAForm(`has more than ${MOST_PARTS} parts`);
        if (part.name !== field) fields[part.name] = await textOf(part.name, parts.content());
        else if (received) throw notAForm(`has the field "${field}" more than once`);
        else received = { name: part.fileName ?? "", file: await receive(parts.content()) };
      }
    });
  } catch (error) {
    await received?.file[Symbol.asyncDispose]();
    throw error;
  }
  if (received) return { ...received, fields };
  throw new ServiceError("invalid_parameter", `${field}: must be a file in the form.`, { param: field });
}

async function textOf(name: string, pieces: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let bytes = 0;
  let text = "";
  for await (const piece of pieces) {
    bytes += piece.byteLength;
    if (bytes > LONGEST_FIELD) throw notAForm(`has a field of more than ${LONGEST_FIELD} bytes`);
    text += decoder.decode(piece, { stream: true });
  }
  if (name === "__proto__") throw notAForm("has a field of that name");
  return text + decoder.decode();
}
