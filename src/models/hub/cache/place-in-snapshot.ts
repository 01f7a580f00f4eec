import { link, mkdir, symlink } from "node:fs/promises";
import path from "node:path";
import { removeFile } from "../../../files/remove-file.ts";
import { replaceFile } from "../../../files/replace-file.ts";

/**
 * Makes a blob visible under its name in a snapshot, atomically: by a relative symlink, so that the cache can be moved;
 * without symlinks (Windows without developer mode) by a hard link; without hard links (exFAT) by moving the blob.
 * @param temporary - a name on the same disk that nobody else uses now
 */
export async function placeInSnapshot(
  blobPath: string,
  target: string,
  temporary: string,
  makeLink: typeof symlink = symlink,
  makeSecondName: typeof link = link,
): Promise<void> {
  const folder = path.dirname(target);
  await mkdir(folder, { recursive: true });
  await removeFile(temporary);
  try {
    try {
      await makeLink(path.relative(folder, blobPath), temporary);
    } catch {
      await makeSecondName(blobPath, temporary);
    }
  } catch {
    await replaceFile(blobPath, target);
    return;
  }
  try {
    // Renaming a hard link onto another link to the same file does nothing and leaves both.
    await replaceFile(temporary, target);
  } finally {
    await removeFile(temporary);
  }
}
