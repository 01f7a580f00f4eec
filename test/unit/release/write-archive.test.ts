import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { unzipSync } from "fflate";
import { afterAll, describe, expect, it } from "vitest";
import { writeArchive } from "../../../scripts/release/write-archive.ts";

const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-write-archive-"));
afterAll(() => rmSync(folder, { recursive: true }));

const FILES = ["b/deep/text", "a", "b/program"];
const TIMES = [1_000_000_000, 1_700_000_000];

/** The same files, written in another order and at another time. */
function copies(): string[] {
  return TIMES.map((time, index) => {
    const home = path.join(mkdtempSync(`${folder}/`), "product-1.0");
    for (const file of index === 0 ? FILES : FILES.toReversed()) {
      const target = path.join(home, file);
      mkdirSync(path.dirname(target), { recursive: true });
      writeFileSync(target, `This is ${file}.`);
      chmodSync(target, file === "b/program" ? 0o755 : index === 0 ? 0o644 : 0o600);
      utimesSync(target, time, time);
    }
    return home;
  });
}

describe.each(["zip", "tar.gz"])("an archive of the kind %s", (kind) => {
  it("has the same bytes for the same files", async () => {
    const archives = [];
    for (const home of copies()) {
      archives.push(path.join(path.dirname(home), `product.${kind}`));
      await writeArchive(home, archives.at(-1) ?? "");
    }
    const [first, second] = archives.map((file) => readFileSync(file).toString("base64"));
    expect(first).toBe(second);
  });
});

// Windows has no such permissions.
it.skipIf(process.platform === "win32")(
  "holds the folder with its files, and programs can be run",
  async () => {
    const [home = ""] = copies();
    await writeArchive(home, `${folder}/product.tar.gz`);
    const listing = execFileSync("tar", ["-tvf", "product.tar.gz"], { cwd: folder, encoding: "utf8" });
    const modes = listing
      .trim()
      .split("\n")
      .map((line) => [line.slice(0, 10), line.split(" ").at(-1)]);
    expect(modes).toEqual([
      ["-rw-r--r--", "product-1.0/a"],
      ["-rw-r--r--", "product-1.0/b/deep/text"],
      ["-rwxr-xr-x", "product-1.0/b/program"],
    ]);
  },
);

it("a zip archive has the same files and permissions", async () => {
  const [home = ""] = copies();
  await writeArchive(home, `${folder}/product.zip`);
  const files = unzipSync(readFileSync(`${folder}/product.zip`));
  expect(Object.keys(files)).toEqual(["product-1.0/a", "product-1.0/b/deep/text", "product-1.0/b/program"]);
  expect(Buffer.from(files["product-1.0/a"] ?? []).toString()).toBe("This is a.");
});
