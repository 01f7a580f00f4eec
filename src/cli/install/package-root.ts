import path from "node:path";
import { fileURLToPath } from "node:url";
import { PACKAGE_FOLDER } from "../package-folder.ts";
import { stablePath } from "./stable-path.ts";

/** The folder of the package: the repository, or the one around `dist`. */
export function packageRoot(): string {
  const folder = path.resolve(fileURLToPath(PACKAGE_FOLDER));
  return stablePath(path.basename(folder) === "dist" ? path.dirname(folder) : folder);
}
