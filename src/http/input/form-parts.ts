import { notAForm } from "./form-type.ts";

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
