import { describe, expect, test } from "vitest";
import { checkAudio, decodeAudio, decodeMedia } from "../../../src/inference/media-data.ts";
import { isAudio, readAudio } from "../../../src/inference/audio-file.ts";
import { MP3_FRAME_SECONDS, tinyFlac, tinyMp3, tinyWav } from "../../support/tiny-audio.ts";
import { tinyPng } from "../../support/tiny-png.ts";

const HOUR = 3600;
const FORMAT_AT = 20;
const BITS_AT = 34;
const DATA_SIZE_AT = 40;

function changed(file: Uint8Array<ArrayBuffer>, change: (view: DataView) => void): Uint8Array<ArrayBuffer> {
  const copy = file.slice();
  change(new DataView(copy.buffer));
  return copy;
}

function joined(...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.concat(parts));
}

function base64(file: Uint8Array): string {
  return Buffer.from(file).toString("base64");
}

function chunk(name: string, bytes: number): Uint8Array {
  const head = new Uint8Array(8 + bytes + (bytes % 2));
  head.set(Buffer.from(name));
  new DataView(head.buffer).setUint32(4, bytes, true);
  return head;
}

describe("a WAV file", () => {
  test.each([
    ["of one channel", tinyWav(0.1), 0.1],
    ["of two channels and another rate", tinyWav(0.02, 44_100, 2), 0.02],
  ])("has the length of its samples: %s", (_, file, seconds) => {
    expect(readAudio(file, HOUR)).toEqual({ data: file, seconds });
  });

  test("has the samples that are present if its declared size is larger", () => {
    const file = tinyWav(0.1);
    const endless = changed(file, (view) => view.setUint32(DATA_SIZE_AT, 0xffff_ffff, true));
    expect(readAudio(endless, HOUR)).toEqual({ data: file, seconds: 0.1 });
  });

  test("is reduced to its format and samples", () => {
    const file = tinyWav(0.02);
    const wordy = joined(file.subarray(0, 12), chunk("LIST", 7), file.subarray(12), chunk("id3 ", 9));
    expect(readAudio(wordy, HOUR).data).toEqual(file);
  });

  test("has its format in the subformat if it is extensible", () => {
    const file = tinyWav(0.02);
    const format = new Uint8Array(8 + 40);
    format.set(file.subarray(12, 36));
    new DataView(format.buffer).setUint32(4, 40, true);
    new DataView(format.buffer).setUint16(8, 0xfffe, true);
    new DataView(format.buffer).setUint16(32, 1, true);
    expect(readAudio(joined(file.subarray(0, 12), format, file.subarray(36)), HOUR).data).toEqual(file);
  });

  test.each([
    ["compressed samples", changed(tinyWav(0.1), (view) => view.setUint16(FORMAT_AT, 2, true)), "16-bit PCM"],
    ["samples of 12 bits", changed(tinyWav(0.1), (view) => view.setUint16(BITS_AT, 12, true)), "16-bit PCM"],
    ["no samples", tinyWav(0), "no samples"],
    ["one sample", tinyWav(1 / 16_000), "10 milliseconds"],
    ["no chunks", tinyWav(1).slice(0, 12), "no samples"],
    ["no channels", changed(tinyWav(0.1), (view) => view.setUint16(22, 0, true)), "0 channels"],
    ["a rate of 1 Hz", changed(tinyWav(0.1), (view) => view.setUint32(24, 1, true)), "1 Hz"],
  ])("with %s is refused with an explanation", (_, file, words) => {
    expect(() => checkAudio(file, "file")).toThrow(words);
  });
});

describe("a FLAC file", () => {
  test("has the length that it declares", () => {
    expect(readAudio(tinyFlac(3), HOUR).seconds).toBe((3 * 4096) / 16_000);
  });

  test("is refused before decoding if a few bytes declare days", () => {
    expect(() => checkAudio(tinyFlac(1, 2 ** 35), "file")).toThrow("60 minutes");
  });

  test.each([
    ["that does not say its length", tinyFlac(1, 0), "how long"],
    ["that ends in its header", tinyFlac(1).slice(0, 30), "begin as a FLAC"],
  ])("%s is refused with an explanation", (_, file, words) => {
    expect(() => checkAudio(file, "file")).toThrow(words);
  });
});

describe("an MP3 file", () => {
  test("has the length of its frames, and begins with the first one", () => {
    const file = tinyMp3(10);
    const tag = Uint8Array.of(0x49, 0x44, 0x33, 4, 0, 0, 0, 0, 0, 20, ...new Uint8Array(20).fill(0xff));
    const { data, seconds } = readAudio(joined(tag, file), HOUR);
    expect(data).toEqual(file);
    expect(seconds).toBeCloseTo(10 * MP3_FRAME_SECONDS);
  });

  test("cannot hide a file of another format after its tag", () => {
    const tag = Uint8Array.of(0x49, 0x44, 0x33, 4, 0, 0, 0, 0, 0, 0);
    expect(() => checkAudio(joined(tag, tinyFlac(1, 2 ** 35)), "file")).toThrow(/not a WAV|minutes/);
  });

  test.each([
    [
      "full of beginnings of frames",
      Uint8Array.from({ length: 4_000_000 }, (_, at) => [0xff, 0xfb, 0x10][at % 3]!),
    ],
    ["full of marks of frames", new Uint8Array(4_000_000).fill(0xff)],
  ])("%s is refused", (_, file) => {
    expect(() => checkAudio(file, "file")).toThrow(/minutes|not a WAV/);
  });
});

test("a file of another format is refused", () => {
  expect(isAudio(tinyPng(8, 8))).toBe(false);
  expect(() => decodeAudio(Buffer.from("some text").toString("base64"), "audio.0")).toThrow(
    "audio.0: the recording cannot be used: it is not a WAV, MP3 or FLAC file.",
  );
  expect(() => decodeAudio("https://example.com/a.wav", "audio.0")).toThrow("does not fetch");
  expect(() => decodeAudio("%%%", "audio.0")).toThrow("base64");
});

test("base64 of unknown kind is decoded as an image or a recording by its content", () => {
  expect(decodeMedia(base64(tinyWav(0.1)), "images.0").type).toBe("audio");
  expect(decodeMedia(`data:audio/flac;base64,${base64(tinyFlac(1))}`, "images.0").type).toBe("audio");
  expect(decodeMedia(base64(tinyPng(8, 8)), "images.0").type).toBe("image");
  expect(() => decodeMedia("", "images.0")).toThrow("images.0");
});
