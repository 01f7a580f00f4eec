import { describe, expect, test } from "vitest";
import { isWebp, readWebp, withReadableImages } from "../../../../src/engine/core/webp.ts";
import { toBmp } from "../../../../src/engine/core/platform.ts";
import { decodeWebp } from "../../../../src/engine/host/node-platform.ts";
import { chatRequest } from "../../../support/engine-fixture.ts";
import { tinyPng } from "../../../support/tiny-png.ts";
import { animatedWebp, losslessWebp, lossyWebp, WEBP_SIZE } from "../../../support/tiny-webp.ts";

const IMAGES: readonly [string, () => Uint8Array<ArrayBuffer>][] = [
  ["a lossless image", losslessWebp],
  ["a lossy image", lossyWebp],
  ["the first frame of an animation", animatedWebp],
];
const DAMAGED = { code: "invalid_parameter", message: expect.stringMatching(/damaged/) };

/** Blue, green and red of a pixel of a BMP with 24 bits per pixel. */
function pixelOf(bmp: Uint8Array, column: number, row: number): number[] {
  const at = 54 + (row * WEBP_SIZE.width + column) * 3;
  return [...bmp.subarray(at, at + 3)];
}

describe("a WebP file", () => {
  test.each(IMAGES)("is converted to a BMP with the same colors, on white: %s", async (_, webp) => {
    expect(isWebp(webp())).toBe(true);
    const still = readWebp(webp());
    expect(still).toMatchObject(WEBP_SIZE);
    const bmp = toBmp(await decodeWebp(still.file));
    const [blue = 255, , red = 0] = pixelOf(bmp, 2, 2);
    expect(red).toBeGreaterThan(200);
    expect(blue).toBeLessThan(60);
    expect(pixelOf(bmp, 13, 2)[0]).toBeGreaterThan(200);
    expect(pixelOf(bmp, 2, 11)).toEqual([255, 255, 255]);
  });

  test.each(IMAGES.slice(0, 2))("is rejected when it is cut off anywhere: %s", (_, webp) => {
    const file = webp();
    const cuts = Array.from({ length: file.length - 13 }, (_unused, at) => at + 12);
    for (const length of cuts) {
      expect(() => readWebp(file.slice(0, length)), `${length} bytes`).toThrow(
        expect.objectContaining(DAMAGED),
      );
    }
  });

  test("is rejected when the first frame of its animation is cut off", () => {
    expect(() => readWebp(animatedWebp().slice(0, 120))).toThrow(expect.objectContaining(DAMAGED));
  });

  test("is rejected before decoding if it has too many pixels", () => {
    const large = losslessWebp();
    new DataView(large.buffer).setUint32(21, 0x0fff_ffff, true);
    expect(() => readWebp(large)).toThrow(/16384 × 16384 pixels/);
  });
});

describe("the images of a request", () => {
  const text = { type: "text", text: "what is it" } as const;

  test("are unchanged if llama.cpp supports their format", async () => {
    const request = chatRequest([{ type: "image", data: tinyPng(2, 2) }, text]);
    expect(await withReadableImages(request, decodeWebp)).toBe(request);
  });

  test("are converted from WebP to BMP", async () => {
    const request = chatRequest([text, { type: "image", data: losslessWebp() }, text]);
    const { input } = await withReadableImages(request, decodeWebp);
    const content = input.kind === "chat" ? input.messages.at(-1)?.content : [];
    expect(content).toMatchObject([
      text,
      { type: "image", data: toBmp(await decodeWebp(losslessWebp())) },
      text,
    ]);
  });

  test("are rejected if the decoder cannot read them", async () => {
    const webp = losslessWebp().fill(255, 25);
    await expect(
      withReadableImages(chatRequest([{ type: "image", data: webp }, text]), decodeWebp),
    ).rejects.toMatchObject(DAMAGED);
  });
});
