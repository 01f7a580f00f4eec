import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { binaryPlatforms } from "../../../scripts/release/binary-platforms.ts";

/** First bytes of a file, from 32-bit words in file order. */
function words(...values: number[]): Uint8Array {
  const view = new DataView(new ArrayBuffer(values.length * 4));
  for (const [index, value] of values.entries()) view.setUint32(index * 4, value);
  return new Uint8Array(view.buffer);
}

/** A program for Windows whose header begins at byte 64. */
function windowsProgram(machine: number): Uint8Array {
  const bytes = new Uint8Array(128);
  bytes.set([0x4d, 0x5a]);
  bytes[0x3c] = 64;
  bytes.set([0x50, 0x45, 0, 0, machine & 255, machine >> 8], 64);
  return bytes;
}

it("detects the platform of the running Node", () => {
  expect(binaryPlatforms(readFileSync(process.execPath))).toContain(`${process.platform}-${process.arch}`);
});

it.each([
  ["Linux on ARM", words(0x7f454c46, 0x02010100, 0, 0, 0x0200b700), ["linux-arm64"]],
  ["macOS on Intel", words(0xcffaedfe, 0x07000001), ["darwin-x64"]],
  ["macOS on Apple's chips", words(0xcffaedfe, 0x0c000001), ["darwin-arm64"]],
  [
    "macOS on both",
    words(0xcafebabe, 2, 0x01000007, 3, 0, 0, 0, 0x0100000c, 0, 0, 0, 0),
    ["darwin-x64", "darwin-arm64"],
  ],
  ["Windows on x64", windowsProgram(0x8664), ["win32-x64"]],
  ["Windows on ARM", windowsProgram(0xaa64), ["win32-arm64"]],
  ["Linux on RISC-V", words(0x7f454c46, 0x02010100, 0, 0, 0x0200f300), []],
  ["nothing", words(0x23212f62), []],
])("detects a binary for %s", (_what, bytes, platforms) => {
  expect(binaryPlatforms(bytes)).toEqual(platforms);
});
