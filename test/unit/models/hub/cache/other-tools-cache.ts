import { link, mkdir, symlink, utimes, writeFile } from "node:fs/promises";
import path from "node:path";
import { sha256 } from "../../../../support/fixture-hub-content.ts";
import { FILES_HAVE_LINKS } from "../../../../support/links.ts";

/** Easily distinguishable commits. */
export const COMMIT_A = "a".repeat(40);
export const COMMIT_B = "b".repeat(40);

export interface OtherToolsRepo {
  /** File contents by commit and path; equal content is one blob. */
  readonly snapshots: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly refs?: Readonly<Record<string, string>>;
  readonly files?: SnapshotFiles;
}

/** Kinds of files in a snapshot: symbolic links to blobs, hard links to them, or files without a blob. */
type SnapshotFiles = "links" | "second names" | "copies";

/** Kinds with a blob that this system supports; the first is the default. */
export const NAMES_OF_BLOBS: readonly SnapshotFiles[] = FILES_HAVE_LINKS
  ? ["links", "second names"]
  : ["second names"];

/** Creates a repository in a cache folder like the hub's Python tools. Returns its folder. */
export async function otherToolsRepo(
  cacheDir: string,
  repo: string,
  layout: OtherToolsRepo,
): Promise<string> {
  const root = path.join(cacheDir, `models--${repo.replace("/", "--")}`);
  const { snapshots, refs = {}, files: kind = NAMES_OF_BLOBS[0] } = layout;
  for (const [ref, commit] of Object.entries(refs)) {
    await mkdir(path.dirname(path.join(root, "refs", ref)), { recursive: true });
    await writeFile(path.join(root, "refs", ref), commit);
  }
  await mkdir(path.join(root, "blobs"), { recursive: true });
  let age = 0;
  for (const [commit, files] of Object.entries(snapshots)) {
    for (const [file, content] of Object.entries(files)) {
      const target = path.join(root, "snapshots", commit, file);
      await mkdir(path.dirname(target), { recursive: true });
      const blob = path.join(root, "blobs", sha256(content));
      await writeFile(kind === "copies" ? target : blob, content);
      if (kind === "links") await symlink(path.relative(path.dirname(target), blob), target);
      if (kind === "second names") await link(blob, target);
    }
    // Later snapshots in the table are older.
    const time = 1_700_000_000 - age++;
    await utimes(path.join(root, "snapshots", commit), time, time);
  }
  return root;
}
