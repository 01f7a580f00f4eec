import { decodeBase64 } from "./base64.ts";

const DATA_URL = /^data:([\w.+-]+\/[\w.+-]+)?(?:;[\w.+-]+=[^;,]*)*;base64,/i;
/** Longest beginning of a data: URL that is looked at. */
const URL_HEAD = 200;
/** Characters sampled before decoding, in steps that are not a multiple of common line lengths. */
const SAMPLES = 256;
const GOLDEN_RATIO = (Math.sqrt(5) - 1) / 2;
const SPACE = 0x20;

/** Decodes a file from base64 or a data: URL; undefined if the text is neither. */
export function decodeDataUrl(text: string): Uint8Array<ArrayBuffer> | undefined {
  const encoded = text.slice(DATA_URL.exec(text.slice(0, URL_HEAD))?.[0].length ?? 0);
  return isMostlyBlank(encoded) ? undefined : decodeBase64(encoded);
}

/** Whether most of a text is whitespace: decoding would search all of it for a few digits. */
function isMostlyBlank(encoded: string): boolean {
  let blanks = 0;
  for (let sample = 0; sample < SAMPLES; sample += 1) {
    const place = Math.floor(((sample * GOLDEN_RATIO) % 1) * encoded.length);
    if (encoded.charCodeAt(place) <= SPACE) blanks += 1;
  }
  return blanks > SAMPLES / 2;
}
