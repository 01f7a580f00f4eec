import { existsSync, realpathSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

/** The folder that holds src: the repository, or dist in the published package. */
export const PACKAGE_FOLDER = new URL("../../../", import.meta.url);

/** Kind of installation, which decides how it is updated. */
export interface Installation {
  readonly kind: "clone" | "global" | "project" | "npx" | "archive" | "container";
  /** Folder in which the update command runs; undefined if any will do. */
  readonly folder?: string;
  /** For people: "a package of the project /home/ada/app". */
  readonly description: string;
  /** Command that updates; undefined if no command on this machine does. */
  readonly command?: string;
  /** Instructions without a command, or in addition to it. */
  readonly advice?: string | undefined;
}

/** Files that container runtimes create. */
const CONTAINER_MARKER_FILES = ["/.dockerenv", "/run/.containerenv"];

/** File in release archives that is neither in the package nor in images. */
const ARCHIVE_MARKER_FILE = "LICENSES.txt";

/** Folders of global installations, and the command that updates there. */
const GLOBAL_FOLDERS: readonly (readonly [RegExp, string])[] = [
  [/[/\\]pnpm[/\\]global[/\\]/, "pnpm add --global daybreak@latest"],
  [/[/\\]yarn[/\\](?:data[/\\])?global[/\\]/i, "yarn global add daybreak@latest"],
  [/[/\\]\.bun[/\\]install[/\\]global[/\\]/, "bun add --global daybreak@latest"],
];

/** Lock files of package managers, and the command that updates. */
const PROJECT_MANAGERS: readonly (readonly [file: string, command: string])[] = [
  ["pnpm-lock.yaml", "pnpm add daybreak@latest"],
  ["yarn.lock", "yarn add daybreak@latest"],
  ["bun.lock", "bun add daybreak@latest"],
  ["bun.lockb", "bun add daybreak@latest"],
];

/**
 * Detects the kind of installation by the files around the program.
 * @param root folder of the program's package.json
 * @param exists true for existing files and folders
 */
export function findInstallation(root: string, exists: (file: string) => boolean = existsSync): Installation {
  const modules = path.dirname(root);
  const isPackage = path.basename(modules) === "node_modules";
  if (!isPackage && exists(path.join(root, ".git"))) {
    return {
      kind: "clone",
      folder: root,
      description: `a clone of the repository in ${root}`,
      command: "git pull && npm ci",
    };
  }
  if (/[/\\]_npx[/\\]/.test(root)) {
    return {
      kind: "npx",
      description: "a copy in npx's cache, which npm may delete",
      command: "npx daybreak@latest",
      advice: "To keep it, install it: npm install --global daybreak",
    };
  }
  if (exists(path.join(root, ARCHIVE_MARKER_FILE))) return unpackedArchive(root);
  const inContainer = CONTAINER_MARKER_FILES.some(exists);
  if (isPackage) return installedPackage(root, path.dirname(modules), exists, inContainer);
  return inContainer ? containerImage(root) : unpackedArchive(root);
}

function installedPackage(
  root: string,
  project: string,
  exists: (file: string) => boolean,
  inContainer: boolean,
): Installation {
  const advice = inContainer
    ? "This runs in a container: update it where its image is built, or the update is lost with the container."
    : undefined;
  const managerCommand = GLOBAL_FOLDERS.find(([folder]) => folder.test(root))?.[1];
  if (managerCommand !== undefined || !exists(path.join(project, "package.json"))) {
    return {
      kind: "global",
      description: `installed for the whole account or machine (${root})`,
      command: managerCommand ?? "npm install --global daybreak@latest",
      advice,
    };
  }
  const projectCommand = PROJECT_MANAGERS.find(([file]) => exists(path.join(project, file)))?.[1];
  return {
    kind: "project",
    folder: project,
    description: `a package of the project ${project}`,
    command: projectCommand ?? "npm install daybreak@latest",
    advice,
  };
}

function containerImage(root: string): Installation {
  return {
    kind: "container",
    description: `part of a container image (${root})`,
    advice:
      "Pull or build a newer image and start the container from it: changes inside a container are lost.",
  };
}

function unpackedArchive(root: string): Installation {
  return {
    kind: "archive",
    folder: root,
    description: `an archive unpacked in ${root}`,
    advice: "Replace the folder with the archive of the newer version.",
  };
}

/** Folder of package.json: the repository, or the parent of `dist`. */
export function packageRoot(): string {
  const folder = path.resolve(fileURLToPath(PACKAGE_FOLDER));
  return stablePath(path.basename(folder) === "dist" ? path.dirname(folder) : folder);
}

/** Paths that contain a version, and the path of the same file that survives updates. */
const VERSIONED: readonly (readonly [RegExp, string])[] = [
  // Homebrew: /opt/homebrew/Cellar/node/26.1.0/bin/node is /opt/homebrew/opt/node/bin/node.
  [/\/Cellar\/([^/]+)\/[^/]+\//, "/opt/$1/"],
  // pnpm: node_modules/.pnpm/daybreak@1.0.0/node_modules/daybreak is node_modules/daybreak.
  [/([/\\]node_modules)[/\\]\.pnpm[/\\][^/\\]+[/\\]node_modules(?=[/\\])/, "$1"],
];

/**
 * Path of the same file that stays valid after an update; the given path if there is none.
 * @param realPath resolves links; throws for a missing file
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
