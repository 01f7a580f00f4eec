import { ServiceError } from "../../errors/service-error.ts";
import type { AppContext } from "../app-env.ts";
import { assertNotCompressed, boundedBody, fileBody, mediaType } from "./read-json.ts";

/** Forms of the APIs here have a dozen fields; the parser takes five microseconds for each part, however small. */
const MAX_PARTS = 64;

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
    if (latin1.split(`--${boundary}`).length > MAX_PARTS + 2)
      throw notAForm(`has more than ${MAX_PARTS} parts`);
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

/** Forms with a file have a few fields. */
const READ_UPLOAD_MOST_PARTS = 16;
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
        if (count > READ_UPLOAD_MOST_PARTS) throw notAForm(`has more than ${READ_UPLOAD_MOST_PARTS} parts`);
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

/** Longest headers of a part; a file name has at most some hundred bytes. */
const LONGEST_HEADERS = 8 * 1024;
const DASH = 45;
const HEADERS_END = new Uint8Array([13, 10, 13, 10]);
const LINE_END = new Uint8Array([13, 10]);
const ENCODER = new TextEncoder();

interface PartHead {
  readonly name: string;
  readonly fileName: string | undefined;
}

/** Reads the parts of a form one after the other, holding no more than a piece of the body. */
export class FormParts {
  readonly #pieces: AsyncIterator<Uint8Array>;
  readonly #delimiter: Uint8Array;
  /** Read and not used; the first boundary has no line break before it. */
  #held: Uint8Array = LINE_END;
  /** What is before the first boundary counts as a part. */
  #isInPart = true;

  constructor(pieces: AsyncIterable<Uint8Array>, boundary: string) {
    this.#pieces = pieces[Symbol.asyncIterator]();
    this.#delimiter = ENCODER.encode(`\r\n--${boundary}`);
  }

  /** The next part; what has not been read of the one before is skipped. Undefined after the last. */
  async next(): Promise<PartHead | undefined> {
    await this.#skip();
    while (this.#held.byteLength < 2) await this.#more();
    if (this.#held[0] === DASH && this.#held[1] === DASH) return undefined;
    const end = await this.#find(HEADERS_END);
    const head = new TextDecoder().decode(this.#held.subarray(0, end));
    // The empty line is also the end of the boundary's own where a part has no headers.
    this.#held = this.#held.subarray(end + HEADERS_END.byteLength);
    this.#isInPart = true;
    return readHead(head);
  }

  async #skip(): Promise<void> {
    const rest = this.content();
    while (!(await rest.next()).done);
  }

  /** The content of the part, once. */
  async *content(): AsyncGenerator<Uint8Array, void, undefined> {
    const { byteLength } = this.#delimiter;
    while (this.#isInPart) {
      const at = indexOf(this.#held, this.#delimiter);
      if (at >= 0) {
        const last = this.#held.subarray(0, at);
        this.#held = this.#held.subarray(at + byteLength);
        this.#isInPart = false;
        if (last.byteLength > 0) yield last;
        return;
      }
      // The end may be the beginning of a delimiter.
      const certain = this.#held.byteLength - byteLength + 1;
      if (certain > 0) {
        const piece = this.#held.subarray(0, certain);
        this.#held = this.#held.subarray(certain);
        yield piece;
      }
      await this.#more();
    }
  }

  async #find(pattern: Uint8Array): Promise<number> {
    for (;;) {
      const at = indexOf(this.#held, pattern);
      if (at >= 0) return at;
      if (this.#held.byteLength > LONGEST_HEADERS) throw notAForm("has a part with too long headers");
      await this.#more();
    }
  }

  async #more(): Promise<void> {
    const { done, value } = await this.#pieces.next();
    if (done) throw notAForm("ends in the middle of the form");
    const joined = new Uint8Array(this.#held.byteLength + value.byteLength);
    joined.set(this.#held);
    joined.set(value, this.#held.byteLength);
    this.#held = joined;
  }
}

function readHead(head: string): PartHead {
  const disposition = /^content-disposition:(.*)$/im.exec(head)?.[1] ?? "";
  const name = parameter(disposition, "name");
  if (name === undefined) throw notAForm("has a part without a name");
  return { name, fileName: parameter(disposition, "filename") };
}

/** Clients write quotes in names as %22, as browsers do, or with a backslash. */
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

/** What separates the parts of a form; undefined if the headers do not say. */
function formBoundary(headers: Headers): string | undefined {
  const [, quoted, plain] = BOUNDARY.exec(headers.get("content-type") ?? "") ?? [];
  return quoted ?? plain;
}

function notAForm(what: string, cause?: unknown): ServiceError {
  return new ServiceError("invalid_parameter", `The body ${what}.`, { cause });
}
