import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { ServiceError } from "../../errors/service-error.ts";

/**
 * Checks files against a SHA-256 (of all of them, one after another), in lower-case hexadecimal. Throws
 * `checksum_mismatch`.
 */
type VerifyDigest = (files: readonly string[], digest: string) => Promise<void>;

/** Creates a checker that reads files again only when their size or time has changed. */
export function createDigestVerifier(): VerifyDigest {
  const known = new Map<string, Promise<string>>();
  return async (files, digest) => {
    const stats = await Promise.all(files.map(async (file) => await stat(file)));
    const key = stats.map(({ size, mtimeMs }, index) => `${files[index]}:${size}:${mtimeMs}`).join("\0");
    const before = known.get(key) ?? hash(files);
    known.set(key, before);
    before.catch(() => known.delete(key));
    const actual = await before;
    if (actual === digest) return;
    throw new ServiceError(
      "checksum_mismatch",
      `${files[0]} has the SHA-256 ${actual}, but its Modelfile requires ${digest}.`,
    );
  };
}

async function hash(files: readonly string[]): Promise<string> {
  const sum = createHash("sha256");
  for (const file of files) await pipeline(createReadStream(file), sum, { end: false });
  return sum.digest("hex");
}
