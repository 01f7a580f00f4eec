import { expect, test } from "vitest";
import { decodeImage } from "../../../src/inference/media-data.ts";
import { longestTurn } from "../../support/longest-turn.ts";

const image = Buffer.concat([Buffer.of(0x89, 0x50, 0x4e, 0x47), Buffer.alloc(3000, 7)]);
const encoded = image.toString("base64");

test.each([
  ["alone", encoded],
  ["as an address of data", `data:image/png;base64,${encoded}`],
  ["in lines of 64", encoded.replaceAll(/.{64}/g, "$&\n")],
  ["in lines that are indented", encoded.replaceAll(/.{64}/g, "\n        $&")],
  ["in lines of 76 that end as in mail", encoded.replaceAll(/.{76}/g, "$&\r\n")],
])("an image is decoded from base64 %s", (_, text) => {
  expect(Buffer.from(decodeImage(text, "image"))).toEqual(image);
});

test("thirty megabytes of whitespace around an image are refused without scanning them", async () => {
  const text = `${" ".repeat(30_000_000)}${encoded}`;
  const longest = await longestTurn(() =>
    Promise.resolve().then(() => expect(() => decodeImage(text, "image")).toThrow("must be an image")),
  );
  // A quadratic scan would take minutes.
  expect(longest).toBeLessThan(1000);
});
