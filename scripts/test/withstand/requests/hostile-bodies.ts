/** A body that is generated in pieces, so that it is never in memory as a whole. */
export interface HostileBody {
  readonly name: string;
  /** @param head the beginning of a body: `{"model":"x","prompt":`; @param bytes how long it is about */
  pieces(head: string, bytes: number): Generator<Buffer, void, undefined>;
}

/** Sockets take pieces of this size well. */
const PIECE = 64 * 1024;

/** Bodies of one shape throughout: each is the worst case of something that reads it. */
export const HOSTILE_BODIES: readonly HostileBody[] = [
  repeated("empty objects", "[", () => "{},", "{}]}"),
  repeated("objects with a field", "[", (at) => `{"a":${at}},`, "{}]}"),
  repeated("messages", "[", () => '{"role":"user","content":"a"},', '{"role":"user","content":"a"}]}'),
  repeated("numbers", "[", () => "7,", "7]}"),
  repeated("fractions", "[", () => "1.5e-7,", "7]}"),
  repeated("huge numbers", "[", () => "1e308,", "1e400]}"),
  repeated("short texts", "[", () => '"a",', '"a"]}'),
  repeated("empty texts", "[", () => '"",', '""]}'),
  repeated("lists", "[", () => "[],", "[]]}"),
  repeated("lists of numbers", "[", () => "[7],", "[7]]}"),
  repeated("nested lists", "", () => "[", ""),
  repeated("nested objects", "", () => '{"a":', ""),
  repeated("nested and closed lists", "[", () => "[[[[[[[[]]]]]]]],", "0]}"),
  repeated("many fields", "{", (at) => `"k${at}":1,`, '"z":1}}'),
  repeated("the same field", "{", () => '"a":1,', '"z":1}}'),
  repeated("__proto__", "{", () => '"__proto__":{},', '"z":1}}'),
  repeated("unknown fields", "0,", (at) => `"k${at}":1,`, '"z":1}'),
  repeated("one text", '"', () => "aaaaaaaaaaaaaaaa", '"}'),
  repeated("one text of escapes", '"', () => "\\u4e2d", '"}'),
  repeated("one text of line ends", '"', () => "\\n", '"}'),
  repeated("one text of quotes", '"', () => '\\"', '"}'),
  repeated("one text of backslashes", '"', () => "\\\\", '"}'),
  repeated("one text of half pairs", '"', () => "\\ud83d", '"}'),
  repeated("one text of Chinese", '"', () => "中", '"}'),
  repeated("one text of base64", '"data:image/png;base64,iVBORw0KGgoA', () => "AAAA", '"}'),
  repeated("one text of base64 in lines", '"iVBORw0KGgoA', () => `${"A".repeat(76)}\\n`, '"}'),
  repeated("texts of base64", '["iVBORw0KGgoA', () => '","iVBORw0KGgoAAAAAAAAA', '"]}'),
  repeated("blanks", "", () => "        ", "0}"),
  repeated("digits", "", () => "7777777777777777", "}"),
  repeated("a long field", '0,"', () => "aaaaaaaa", '":1}'),
  repeated("bytes that are not UTF-8", '"', () => "a", '"}', Buffer.from([0xff])),
];

function repeated(
  name: string,
  begin: string,
  unit: (at: number) => string,
  end: string,
  tail: Buffer = Buffer.alloc(0),
): HostileBody {
  return {
    name,
    *pieces(head, bytes) {
      let text = head + begin;
      let size = 0;
      for (let at = 0; size < bytes; at += 1) {
        const part = unit(at);
        text += part;
        size += Buffer.byteLength(part);
        if (text.length < PIECE) continue;
        yield Buffer.from(text);
        text = "";
      }
      yield Buffer.concat([Buffer.from(text), tail, Buffer.from(end)]);
    },
  };
}

/** `{"model":"x",…,"field":` of a valid body, to be gone on with a hostile value. */
export function headOf(valid: Readonly<Record<string, unknown>>, field: string): string {
  const others = Object.fromEntries(Object.entries(valid).filter(([name]) => name !== field));
  const text = JSON.stringify(others).slice(0, -1);
  return `${text}${text === "{" ? "" : ","}${JSON.stringify(field)}:`;
}
