import { describe, expect, test } from "vitest";
import { withReadableImages } from "../../../../src/engine/core/webp.ts";
import { createNodePlatform } from "../../../../src/engine/host/node-platform.ts";
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

const platform = createNodePlatform("file:///none.wasm", () => {});

/** Converts the image of a request. */
async function convert(data: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const request = chatRequest([{ type: "image", data }]);
  const { input } = await withReadableImages(request, (file) => platform.decodeWebp(file));
  const [part] = input.kind === "chat" ? (input.messages.at(-1)?.content ?? []) : [];
  return part?.type === "image" ? part.data : new Uint8Array();
}

describe("a WebP image of a request", () => {
  test.each(IMAGES)("is converted to a BMP with the same colors, on white: %s", async (_, webp) => {
    const bmp = await convert(webp());
    const view = new DataView(bmp.buffer);
    expect({ width: view.getInt32(18, true), height: -view.getInt32(22, true) }).toEqual(WEBP_SIZE);
    const [blue = 255, , red = 0] = pixelOf(bmp, 2, 2);
    expect(red).toBeGreaterThan(200);
    expect(blue).toBeLessThan(60);
    expect(pixelOf(bmp, 13, 2)[0]).toBeGreaterThan(200);
    expect(pixelOf(bmp, 2, 11)).toEqual([255, 255, 255]);
  });

  test.each(IMAGES.slice(0, 2))("is rejected when it is cut off anywhere: %s", async (_, webp) => {
    const file = webp();
    const cuts = Array.from({ length: file.length - 13 }, (_unused, at) => at + 12);
    for (const length of cuts) {
      await expect(convert(file.slice(0, length)), `${length} bytes`).rejects.toMatchObject(DAMAGED);
    }
  });

  test("is rejected when the first frame of its animation is cut off", async () => {
    await expect(convert(animatedWebp().slice(0, 120))).rejects.toMatchObject(DAMAGED);
  });

  test("is rejected before decoding if it has too many pixels", async () => {
    const large = losslessWebp();
    new DataView(large.buffer).setUint32(21, 0x0fff_ffff, true);
    await expect(convert(large)).rejects.toThrow(/16384 × 16384 pixels/);
  });

  test("is rejected if the decoder cannot read it", async () => {
    await expect(convert(losslessWebp().fill(255, 25))).rejects.toMatchObject(DAMAGED);
  });
});

describe("the other parts of a request", () => {
  const text = { type: "text", text: "what is it" } as const;

  test("are unchanged if llama.cpp supports their format", async () => {
    const request = chatRequest([{ type: "image", data: tinyPng(2, 2) }, text]);
    expect(await withReadableImages(request, (file) => platform.decodeWebp(file))).toBe(request);
  });

  test("keep their positions around a converted image", async () => {
    const request = chatRequest([text, { type: "image", data: losslessWebp() }, text]);
    const { input } = await withReadableImages(request, (file) => platform.decodeWebp(file));
    const content = input.kind === "chat" ? input.messages.at(-1)?.content : [];
    expect(content).toMatchObject([text, { type: "image", data: await convert(losslessWebp()) }, text]);
  });
});
