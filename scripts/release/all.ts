#!/usr/bin/env node
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { PLATFORMS } from "../../src/launch/platform-packages.mjs";
import { checkArchive } from "./check-archive.ts";
import { makeArchives, type PackedPlatform } from "./make-archives.ts";
import { packDawn, packNode } from "./pack-platform.ts";
import { packProgram } from "./pack-program.ts";
import { platformOf } from "./platform-manifests.ts";
import { projectManifest, ROOT } from "./project.ts";

const HELP = `Makes everything that is released, and checks it.

  node scripts/release/all.ts [options]

  --out DIR          where it goes; what was there is deleted (default release/)
  --platforms LIST   of: ${PLATFORMS.join(", ")} (default: all)

What it makes:
  *.tgz              the package daybreak, and for each platform one with Node and one with Dawn: npm publish FILE, the
                     packages of the platforms first
  *.tar.gz, *.zip    for each platform an archive that runs where it is unpacked
  *.cdx.json         what is in each archive (CycloneDX)
  SHA256SUMS         of all of these

Node and Dawn are fetched from npm's registry, in the versions and with the hashes of package-lock.json. The archive for
this machine is unpacked in an empty folder and has to answer there. Two runs make the same bytes with the same Node and npm.
It needs npm 10 or later, and takes about a minute for each two platforms and 2 GB of temporary disk.`;

const { values } = parseArgs({
  options: {
    help: { type: "boolean", short: "h" },
    out: { type: "string", default: path.join(ROOT, "release") },
    platforms: { type: "string", default: PLATFORMS.join(",") },
  },
});
if (values.help) console.log(HELP);
else {
  await release(path.resolve(values.out), values.platforms.split(",")).catch((error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  });
}

async function release(out: string, names: readonly string[]): Promise<void> {
  const platforms = names.map(platformOf);
  const work = mkdtempSync(path.join(os.tmpdir(), "daybreak-release-"));
  try {
    rmSync(out, { recursive: true, force: true });
    mkdirSync(out, { recursive: true });
    const options = { project: projectManifest(), work, out };
    const program = await packProgram(work, out);
    const packed: PackedPlatform[] = [];
    for (const platform of platforms) {
      const [node, dawn] = [await packNode(platform, options), await packDawn(platform, options)];
      packed.push({ platform, node, dawn });
    }
    await makeArchives(packed, program.tarball, options);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  writeFileSync(path.join(out, "SHA256SUMS"), sums(out));
  for (const file of readdirSync(out)) {
    console.log(`${(statSync(path.join(out, file)).size / 1e6).toFixed(1).padStart(7)} MB  ${file}`);
  }
  const own = readdirSync(out).find((file) =>
    new RegExp(`-${process.platform}-${process.arch}\\.(tar\\.gz|zip)$`).test(file),
  );
  if (own === undefined) return;
  await checkArchive(path.join(out, own));
  console.log(`${own} answers where it is unpacked.`);
}

/** In the form that sha256sum --check reads. */
function sums(folder: string): string {
  return readdirSync(folder)
    .toSorted()
    .map((file) => {
      const hash = createHash("sha256").update(readFileSync(path.join(folder, file)));
      return `${hash.digest("hex")}  ${file}\n`;
    })
    .join("");
}
