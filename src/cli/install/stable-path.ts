import { realpathSync } from "node:fs";

/** Paths that contain a version, and the name of the same file that updates keep. */
const VERSIONED: readonly (readonly [RegExp, string])[] = [
  // Homebrew: /opt/homebrew/Cellar/node/26.1.0/bin/node is /opt/homebrew/opt/node/bin/node.
  [/\/Cellar\/([^/]+)\/[^/]+\//, "/opt/$1/"],
  // pnpm: node_modules/.pnpm/daybreak@1.0.0/node_modules/daybreak is node_modules/daybreak.
  [/([/\\]node_modules)[/\\]\.pnpm[/\\][^/\\]+[/\\]node_modules(?=[/\\])/, "$1"],
];

/**
 * Another name of the same file that an update in place leaves valid; the file's own name where there is none.
 * @param realPath resolves links; throws for what is not there
 */
export function stablePath(file: string, realPath: (file: string) => string = realpathSync): string {
  for (const [versioned, stable] of VERSIONED) {
    const name = file.replace(versioned, stable);
    if (name !== file && isSame(name, file, realPath)) return name;
  }
  return file;
}

function isSame(name: string, file: string, realPath: (file: string) => string): boolean {
  try {
    return realPath(name) === realPath(file);
  } catch {
    return false;
  }
}
