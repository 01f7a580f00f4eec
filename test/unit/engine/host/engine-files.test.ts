import fs from "node:fs";
import path from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { type BlobLike, countReads } from "../../../../src/engine/core/platform.ts";
import { openEngineFiles } from "../../../../src/engine/host/engine-files.ts";
import { engineSpec, temporaryFolder } from "../../../support/engine-fixture.ts";

const folder = temporaryFolder();
afterAll(() => fs.rmSync(folder, { recursive: true }));
const file = path.join(folder, "digits");
fs.writeFileSync(file, "0123456789");

/** The blob of a model file. */
function open(name: string, onProgress: (progress: number) => void = () => {}): BlobLike {
  return countReads(openEngineFiles(engineSpec(name)), onProgress).model[0]!;
}

async function textOf(blob: BlobLike): Promise<string> {
  return Buffer.from(await blob.arrayBuffer()).toString();
}

describe("a file of a model", () => {
  test.each([
    [[], "0123456789"],
    [[3], "3456789"],
    [[3, 6], "345"],
    [[-2], "89"],
    [[0, -8], "01"],
    [[6, 3], ""],
    [[8, 100], "89"],
    [[100], ""],
  ] as [number[], string][])("slices by %j like a Blob", async (range, expected) => {
    expect(await new Blob(["0123456789"]).slice(...range).text()).toBe(expected);
    expect(await textOf(open(file).slice(...range))).toBe(expected);
  });

  test("slices a slice", async () => {
    expect(await textOf(open(file).slice(2, 9).slice(1, 4))).toBe("345");
  });

  test("reports the fraction of all bytes that was read", async () => {
    const reads: number[] = [];
    await open(file, (progress) => reads.push(progress))
      .slice(0, 4)
      .arrayBuffer();
    expect(reads).toEqual([0.4]);
  });

  test("supports files larger than 4 GiB", async () => {
    const size = 5_000_000_000;
    const huge = path.join(folder, "huge");
    fs.writeFileSync(huge, "");
    fs.truncateSync(huge, size); // sparse: occupies no space
    const fd = fs.openSync(huge, "r+");
    fs.writeSync(fd, "end", size - 3);
    fs.closeSync(fd);
    const blob = open(huge);
    expect(blob.size).toBe(size);
    expect(await textOf(blob.slice(size - 3))).toBe("end");
  });

  test("rejects if the file was truncated", async () => {
    const shrinking = path.join(folder, "shrinking");
    fs.writeFileSync(shrinking, "0123456789");
    const blob = open(shrinking);
    fs.truncateSync(shrinking, 5);
    await expect(blob.arrayBuffer()).rejects.toThrow(/truncated/);
  });
});
