import { lstatSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { symlink } from "node:fs/promises";
import os from "node:os";
import path from "node:path";

/** False where files have no symbolic links: on Windows for users who have not been given the right to make them. */
export const FILES_HAVE_LINKS = tryLink((target, link) => {
  writeFileSync(target, "");
  symlinkSync(target, link);
});

/** False where folders have no links either, which Windows lets everybody make. */
export const FOLDERS_HAVE_LINKS = tryLink((target, link) => {
  mkdirSync(target);
  symlinkSync(target, link, "junction");
});

/** Makes a link to a folder; on Windows a junction, which needs no right of its own. */
export async function linkFolder(target: string, link: string): Promise<void> {
  await symlink(target, link, "junction");
}

function tryLink(make: (target: string, link: string) => void): boolean {
  const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-links-"));
  const link = path.join(folder, "link");
  try {
    make(path.join(folder, "target"), link);
    return lstatSync(link).isSymbolicLink();
  } catch {
    return false;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
