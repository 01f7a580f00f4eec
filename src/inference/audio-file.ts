/** Recording that an engine can decode, and an upper bound of its length. */
interface AudioFile {
  readonly data: Uint8Array<ArrayBuffer>;
  readonly seconds: number;
}

/** Error for a file that cannot be decoded or whose length is unknown; the message continues a sentence about it. */
export class InvalidAudio extends Error {
  override readonly name = "InvalidAudio";
}

/** Accepted sample rates in Hz; with any other, the length in seconds would not bound the work. */
const MIN_RATE = 4000;
const MAX_RATE = 384_000;
/** Limit on channels, which llama.cpp mixes into one. */
const MAX_CHANNELS = 32;

/**
 * Checks a WAV, MP3 or FLAC file before an engine decodes it. llama.cpp allocates memory for the length that a file
 * declares, and a small FLAC file may declare days. The length is therefore read here from the same fields, and data
 * that they do not cover is cut off.
 * @param maxSeconds limit above which the exact length does not matter
 * @throws InvalidAudio
 */
export function readAudio(file: Uint8Array<ArrayBuffer>, maxSeconds: number): AudioFile {
  if (startsWith(file, "RIFF", 0) && startsWith(file, "WAVE", 8)) return readWav(file);
  if (startsWith(file, "fLaC", 0)) return readFlac(file);
  return readMp3(file, maxSeconds);
}

/** True if a file begins like a WAV, FLAC or MP3 file. */
export function isAudio(file: Uint8Array): boolean {
  const isWav = startsWith(file, "RIFF", 0) && startsWith(file, "WAVE", 8);
  return (
    isWav || startsWith(file, "fLaC", 0) || startsWith(file, "ID3", 0) || frameRate(file, 0) !== undefined
  );
}

/** Allowed bits per sample by format tag of WAVEFORMATEX: PCM, floating point, A-law and µ-law. */
const WAV_FORMATS: ReadonlyMap<number, readonly number[]> = new Map([
  [1, [8, 16, 24, 32]],
  [3, [32, 64]],
  [6, [8]],
  [7, [8]],
]);
/** Format tag of WAVE_FORMAT_EXTENSIBLE, where the first number of the subformat is the format. */
const EXTENSIBLE = 0xfffe;
const SUBFORMAT_AT = 24;
const FORMAT_BYTES = 16;

/** Rewrites a WAV file with only its format and samples, because decoders differ on chunks with wrong sizes. */
function readWav(file: Uint8Array<ArrayBuffer>): AudioFile {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  let format: { tag: number; channels: number; rate: number; bits: number } | undefined;
  for (let at = 12; at + 8 <= file.length;) {
    const size = view.getUint32(at + 4, true);
    const begin = at + 8;
    if (startsWith(file, "fmt ", at) && size >= FORMAT_BYTES && begin + size <= file.length) {
      const tag = view.getUint16(begin, true);
      const isExtensible = tag === EXTENSIBLE && size >= SUBFORMAT_AT + 2;
      format = {
        tag: isExtensible ? view.getUint16(begin + SUBFORMAT_AT, true) : tag,
        channels: view.getUint16(begin + 2, true),
        rate: view.getUint32(begin + 4, true),
        bits: view.getUint16(begin + 14, true),
      };
    }
    if (startsWith(file, "data", at)) {
      if (!format) throw new InvalidAudio("its samples come before their format");
      // Programs that stream a recording declare a larger size than they end up with.
      return plainWav(format, file.subarray(begin, Math.min(file.length, begin + size)));
    }
    at = begin + size + (size % 2);
  }
  throw new InvalidAudio("it has no samples");
}

function plainWav(
  { tag, channels, rate, bits }: { tag: number; channels: number; rate: number; bits: number },
  samples: Uint8Array<ArrayBuffer>,
): AudioFile {
  if (WAV_FORMATS.get(tag)?.includes(bits) !== true)
    throw new InvalidAudio("its samples are compressed or of an unknown format; convert it to 16-bit PCM");
  checkFormat(channels, rate);
  const frameBytes = (channels * bits) / 8;
  const frames = Math.floor(samples.length / frameBytes);
  if (frames === 0) throw new InvalidAudio("it has no samples");
  const data = new Uint8Array(44 + frames * frameBytes);
  const view = new DataView(data.buffer);
  writeAscii(data, "RIFF", 0);
  view.setUint32(4, data.length - 8, true);
  writeAscii(data, "WAVEfmt ", 8);
  view.setUint32(16, FORMAT_BYTES, true);
  view.setUint16(20, tag, true);
  view.setUint16(22, channels, true);
  view.setUint32(24, rate, true);
  view.setUint32(28, rate * frameBytes, true);
  view.setUint16(32, frameBytes, true);
  view.setUint16(34, bits, true);
  writeAscii(data, "data", 36);
  view.setUint32(40, frames * frameBytes, true);
  data.set(samples.subarray(0, frames * frameBytes), 44);
  return { data, seconds: frames / rate };
}

/**
 * STREAMINFO, always the first block (RFC 9639, section 8.2): rate (20 bits), channels (3), sample size (5), length
 * (36).
 */
const STREAMINFO_AT = 8;
const STREAMINFO_BYTES = 34;

function readFlac(file: Uint8Array<ArrayBuffer>): AudioFile {
  const isStreaminfo = (file[4] ?? 1) % 128 === 0;
  if (!isStreaminfo || file.length < STREAMINFO_AT + STREAMINFO_BYTES)
    throw new InvalidAudio("it does not begin as a FLAC file does");
  const view = new DataView(file.buffer, file.byteOffset + STREAMINFO_AT, STREAMINFO_BYTES);
  const rate = view.getUint32(10) >>> 12;
  const channels = ((view.getUint8(12) >>> 1) & 7) + 1;
  const samples = (view.getUint8(13) & 15) * 2 ** 32 + view.getUint32(14);
  checkFormat(channels, rate);
  if (samples === 0)
    throw new InvalidAudio("it does not say how long it is; convert it with a seekable output");
  return { data: file, seconds: samples / rate };
}

/** Sample rates of MPEG 1, and their divisors by the two bits of the version (MPEG 2.5, reserved, 2, 1). */
const MP3_RATES = [44_100, 48_000, 32_000];
const MP3_DIVISORS: readonly (number | undefined)[] = [4, undefined, 2, 1];
/** Most samples per frame: layer I has 384, layers II and III have 1152, or 576 for MPEG 2 and 2.5. */
const MAX_FRAME_SAMPLES = 1152;
/** Bytes of an ID3 header, whose last four have seven bits each of the size. */
const ID3_BYTES = 10;

/**
 * Counts every position where a frame could begin, so that no decoder finds a longer recording than this. Leading tags
 * are cut off, because a decoder may find a file of another format behind one.
 */
function readMp3(file: Uint8Array<ArrayBuffer>, maxSeconds: number): AudioFile {
  let begin: number | undefined;
  let seconds = 0;
  // A function call for every byte would take most of a second.
  for (let at = id3Length(file); at < file.length && seconds <= maxSeconds; at += 1) {
    if (file[at] !== 0xff) continue;
    const rate = frameRate(file, at);
    if (rate === undefined) continue;
    begin ??= at;
    seconds += MAX_FRAME_SAMPLES / rate;
  }
  if (begin === undefined) throw new InvalidAudio("it is not a WAV, MP3 or FLAC file");
  return { data: file.slice(begin), seconds };
}

function id3Length(file: Uint8Array): number {
  if (!startsWith(file, "ID3", 0) || file.length < ID3_BYTES) return 0;
  const size = file.subarray(6, ID3_BYTES).reduce((sum, byte) => sum * 128 + (byte & 127), 0);
  return ID3_BYTES + size;
}

/**
 * Sample rate of the frame at this position; undefined if no frame can begin here. Called for each byte of some files.
 */
function frameRate(file: Uint8Array, at: number): number | undefined {
  const second = file[at + 1] ?? 0;
  const third = file[at + 2] ?? 0xff;
  const layer = (second >>> 1) & 3;
  const bitrate = third >>> 4;
  if (file[at] !== 0xff || second < 0xe0 || layer === 0 || bitrate === 15) return undefined;
  const rate = MP3_RATES[(third >>> 2) & 3];
  const divisor = MP3_DIVISORS[(second >>> 3) & 3];
  return rate === undefined || divisor === undefined ? undefined : rate / divisor;
}

function checkFormat(channels: number, rate: number): void {
  if (channels < 1 || channels > MAX_CHANNELS) throw new InvalidAudio(`it has ${channels} channels`);
  if (rate < MIN_RATE || rate > MAX_RATE)
    throw new InvalidAudio(`its rate is ${rate} Hz; convert it to 16,000 Hz`);
}

function startsWith(file: Uint8Array, text: string, at: number): boolean {
  for (let index = 0; index < text.length; index += 1)
    if (file[at + index] !== text.charCodeAt(index)) return false;
  return true;
}

function writeAscii(file: Uint8Array, text: string, at: number): void {
  for (let index = 0; index < text.length; index += 1) file[at + index] = text.charCodeAt(index);
}
