import { ServiceError } from "../../errors/service-error.ts";
import type { AppContext } from "../app-env.ts";
import { invalidField } from "./common-fields.ts";
import { assertNotCompressed, boundedBody, fileBody, mediaType } from "./read-json.ts";

/** Maximum parts of a form in memory; forms of the supported APIs have a dozen fields. */
const MAX_FORM_PARTS = 64;

/**
 * Reads a request body as a form with files, within the limits of other bodies.
 * @throws ServiceError unsupported_media_type, payload_too_large, overloaded, or invalid_parameter for an invalid form
 */
export async function readForm(context: AppContext): Promise<FormData> {
  const { headers } = context.req.raw;
  const type = headers.get("content-type") ?? "";
  const boundary = formBoundary(headers);
  return await boundedBody(context, async (chunks) => {
    const body = new Blob(await copyChunks(chunks));
    const latin1 = new TextDecoder("latin1").decode(await body.arrayBuffer());
    // The boundary also stands at the end.
    if (latin1.split(`--${boundary}`).length > MAX_FORM_PARTS + 2)
      throw invalidForm(`has more than ${MAX_FORM_PARTS} parts`);
    try {
      return await new Response(body, { headers: { "content-type": type } }).formData();
    } catch (cause) {
      throw invalidForm("is not a valid form", cause);
    }
  });
}

async function copyChunks(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array<ArrayBuffer>[]> {
  const all: Uint8Array<ArrayBuffer>[] = [];
  for await (const chunk of chunks) all.push(Uint8Array.from(chunk));
  return all;
}

/** Maximum parts of an upload. */
const MAX_UPLOAD_PARTS = 16;
/** Maximum bytes of a field other than the file. */
const MAX_FIELD_BYTES = 16 * 1024;
/** Maximum bytes of boundaries, headers and other fields. */
const FORM_OVERHEAD_BYTES = 512 * 1024;

interface UploadOptions<Received> {
  /** Name of the file's field. */
  readonly field: string;
  /** Maximum bytes of the file. */
  readonly limit: number;
  /** Consumes the file's stream; other fields may follow. */
  readonly receive: (chunks: AsyncIterable<Uint8Array>) => Promise<Received>;
}

interface Upload<Received> {
  readonly name: string;
  readonly file: Received;
  readonly fields: Readonly<Record<string, string>>;
}

/**
 * Reads a form with one file, which is streamed to `receive`.
 * @throws ServiceError unsupported_media_type, payload_too_large, invalid_parameter, or an error of `receive`
 */
export async function readUpload<Received extends AsyncDisposable>(
  context: AppContext,
  { field, limit, receive }: UploadOptions<Received>,
): Promise<Upload<Received>> {
  const boundary = formBoundary(context.req.raw.headers);
  let received: { name: string; file: Received } | undefined;
  const fields: Record<string, string> = {};
  try {
    await fileBody(context, limit + FORM_OVERHEAD_BYTES, async (chunks) => {
      const parts = new FormParts(chunks, boundary);
      let count = 0;
      for (let part = await parts.next(); part; part = await parts.next()) {
        count += 1;
        if (count > MAX_UPLOAD_PARTS) throw invalidForm(`has more than ${MAX_UPLOAD_PARTS} parts`);
        if (part.name !== field) fields[part.name] = await textOf(part.name, parts.content());
        else if (received) throw invalidForm(`has the field "${field}" more than once`);
        else received = { name: part.fileName ?? "", file: await receive(parts.content()) };
      }
    });
  } catch (error) {
    await received?.file[Symbol.asyncDispose]();
    throw error;
  }
  if (received) return { ...received, fields };
  throw invalidField(field, "must be a file in the form.");
}

async function textOf(name: string, chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let bytes = 0;
  let text = "";
  for await (const chunk of chunks) {
    bytes += chunk.byteLength;
    if (bytes > MAX_FIELD_BYTES) throw invalidForm(`has a field of more than ${MAX_FIELD_BYTES} bytes`);
    text += decoder.decode(chunk, { stream: true });
  }
  if (name === "__proto__") throw invalidForm("has a field of that name");
  return text + decoder.decode();
}

/** Maximum bytes of a part's headers. */
const MAX_PART_HEADER_BYTES = 8 * 1024;
const DASH = 45;
const HEADERS_END = new Uint8Array([13, 10, 13, 10]);
const LINE_END = new Uint8Array([13, 10]);
const ENCODER = new TextEncoder();

interface PartHead {
  readonly name: string;
  readonly fileName: string | undefined;
}

/** Streaming parser of a form's parts, with at most a chunk of the body in memory. */
export class FormParts {
  readonly #chunks: AsyncIterator<Uint8Array>;
  readonly #delimiter: Uint8Array;
  /** Received but unparsed bytes. Begins with a line break, which the first boundary lacks. */
  #buffer: Uint8Array = LINE_END;
  /** True within a part; the text before the first boundary counts as one. */
  #isInPart = true;

  constructor(chunks: AsyncIterable<Uint8Array>, boundary: string) {
    this.#chunks = chunks[Symbol.asyncIterator]();
    this.#delimiter = ENCODER.encode(`\r\n--${boundary}`);
  }

  /** Returns the head of the next part and skips the rest of the current one; undefined after the last. */
  async next(): Promise<PartHead | undefined> {
    await this.#skip();
    while (this.#buffer.byteLength < 2) await this.#readMore();
    if (this.#buffer[0] === DASH && this.#buffer[1] === DASH) return undefined;
    const end = await this.#find(HEADERS_END);
    const head = new TextDecoder().decode(this.#buffer.subarray(0, end));
    // Without headers, the empty line begins with the line break of the boundary.
    this.#buffer = this.#buffer.subarray(end + HEADERS_END.byteLength);
    this.#isInPart = true;
    return readHead(head);
  }

  async #skip(): Promise<void> {
    const rest = this.content();
    while (!(await rest.next()).done);
  }

  /** Streams the content of the current part. */
  async *content(): AsyncGenerator<Uint8Array, void, undefined> {
    const { byteLength } = this.#delimiter;
    while (this.#isInPart) {
      const at = indexOf(this.#buffer, this.#delimiter);
      if (at >= 0) {
        const last = this.#buffer.subarray(0, at);
        this.#buffer = this.#buffer.subarray(at + byteLength);
        this.#isInPart = false;
        if (last.byteLength > 0) yield last;
        return;
      }
      // The last bytes may be the beginning of a delimiter.
      const certain = this.#buffer.byteLength - byteLength + 1;
      if (certain > 0) {
        const chunk = this.#buffer.subarray(0, certain);
        this.#buffer = this.#buffer.subarray(certain);
        yield chunk;
      }
      await this.#readMore();
    }
  }

  async #find(pattern: Uint8Array): Promise<number> {
    for (;;) {
      const at = indexOf(this.#buffer, pattern);
      if (at >= 0) return at;
      if (this.#buffer.byteLength > MAX_PART_HEADER_BYTES)
        throw invalidForm("has a part with too long headers");
      await this.#readMore();
    }
  }

  async #readMore(): Promise<void> {
    const { done, value } = await this.#chunks.next();
    if (done) throw invalidForm("ends in the middle of the form");
    const joined = new Uint8Array(this.#buffer.byteLength + value.byteLength);
    joined.set(this.#buffer);
    joined.set(value, this.#buffer.byteLength);
    this.#buffer = joined;
  }
}

function readHead(head: string): PartHead {
  const disposition = /^content-disposition:(.*)$/im.exec(head)?.[1] ?? "";
  const name = parameter(disposition, "name");
  if (name === undefined) throw invalidForm("has a part without a name");
  return { name, fileName: parameter(disposition, "filename") };
}

/** Parameter of a header. Browsers write quotes as %22, other clients with a backslash. */
function parameter(disposition: string, name: string): string | undefined {
  const [, quoted, plain] =
    new RegExp(`;\\s*${name}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s;]+))`, "i").exec(disposition) ?? [];
  return quoted?.replaceAll(/\\(.)/g, "$1").replaceAll("%22", '"') ?? plain;
}

function indexOf(bytes: Uint8Array, pattern: Uint8Array): number {
  const [first = 0] = pattern;
  for (let at = bytes.indexOf(first); at >= 0; at = bytes.indexOf(first, at + 1)) {
    if (at + pattern.byteLength > bytes.byteLength) return -1;
    if (pattern.every((byte, offset) => bytes[at + offset] === byte)) return at;
  }
  return -1;
}

const FORM_TYPE = "multipart/form-data";
const BOUNDARY = /;\s*boundary=(?:"([^"]+)"|([^\s;]+))/i;

/** Returns the boundary of a form's parts. @throws ServiceError unsupported_media_type for another type of body */
function formBoundary(headers: Headers): string {
  assertNotCompressed(headers);
  const [, quoted, plain] = BOUNDARY.exec(headers.get("content-type") ?? "") ?? [];
  const boundary = quoted ?? plain;
  if (mediaType(headers) === FORM_TYPE && boundary !== undefined) return boundary;
  throw new ServiceError("unsupported_media_type", `The body must be a form of the type ${FORM_TYPE}.`);
}

function invalidForm(what: string, cause?: unknown): ServiceError {
  return new ServiceError("invalid_parameter", `The body ${what}.`, { cause });
}
