import { existsSync, realpathSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { PACKAGE_FOLDER } from "../package-folder.ts";

/** How this program was installed, and so how it is updated. */
export interface Installation {
  readonly kind: "clone" | "global" | "project" | "npx" | "archive" | "container";
  /** The folder to update it in; undefined where that does not matter. */
  readonly folder: string | undefined;
  /** For people: "a package of the project /home/ada/app". */
  readonly description: string;
  /** What to type; undefined where no command of this machine does it. */
  readonly command: string | undefined;
  /** What to do where there is no command, or what follows it. */
  readonly advice: string | undefined;
}

/** Where a container's runtime says that it is one. */
const CONTAINER_MARKS = ["/.dockerenv", "/run/.containerenv"];

/** What archives contain besides the package's files, and images do not. */
const ARCHIVE_MARK = "LICENSES.txt";

/** Folders in which package managers keep what is installed for the whole account or machine. */
const GLOBAL_FOLDERS: readonly (readonly [RegExp, string])[] = [
  [/[/\\]pnpm[/\\]global[/\\]/, "pnpm add --global daybreak@latest"],
  [/[/\\]yarn[/\\](?:data[/\\])?global[/\\]/i, "yarn global add daybreak@latest"],
  [/[/\\]\.bun[/\\]install[/\\]global[/\\]/, "bun add --global daybreak@latest"],
];

/** Files by which a project tells its package manager, and how that fetches the newest version. */
const PROJECT_MANAGERS: readonly (readonly [file: string, command: string])[] = [
  ["pnpm-lock.yaml", "pnpm add daybreak@latest"],
  ["yarn.lock", "yarn add daybreak@latest"],
  ["bun.lock", "bun add daybreak@latest"],
  ["bun.lockb", "bun add daybreak@latest"],
];

/**
 * Detects from the files around the program how it was installed.
 * @param root the folder of the package's package.json: the repository, or what was unpacked or installed
 * @param exists true for files and folders that are there
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
      advice: undefined,
    };
  }
  if (/[/\\]_npx[/\\]/.test(root)) {
    return {
      kind: "npx",
      folder: undefined,
      description: "a copy in npx's cache, which npm may delete",
      command: "npx daybreak@latest",
      advice: "To keep it, install it: npm install --global daybreak",
    };
  }
  if (exists(path.join(root, ARCHIVE_MARK))) return unpacked(root);
  const inContainer = CONTAINER_MARKS.some(exists);
  if (isPackage) return installedPackage(root, path.dirname(modules), exists, inContainer);
  return inContainer ? inImage(root) : unpacked(root);
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
  const ofManager = GLOBAL_FOLDERS.find(([folder]) => folder.test(root))?.[1];
  if (ofManager !== undefined || !exists(path.join(project, "package.json"))) {
    return {
      kind: "global",
      folder: undefined,
      description: `installed for the whole account or machine (${root})`,
      command: ofManager ?? "npm install --global daybreak@latest",
      advice,
    };
  }
  const ofProject = PROJECT_MANAGERS.find(([file]) => exists(path.join(project, file)))?.[1];
  return {
    kind: "project",
    folder: project,
    description: `a package of the project ${project}`,
    command: ofProject ?? "npm install daybreak@latest",
    advice,
  };
}

function inImage(root: string): Installation {
  return {
    kind: "container",
    folder: undefined,
    description: `part of a container image (${root})`,
    command: undefined,
    advice:
      "Pull or build a newer image and start the container from it: changes inside a container are lost.",
  };
}

function unpacked(root: string): Installation {
  return {
    kind: "archive",
    folder: root,
    description: `an archive unpacked in ${root}`,
    command: undefined,
    advice: "Replace the folder with the archive of the newer version.",
  };
}

/** The folder of the package: the repository, or the one around `dist`. */
export function packageRoot(): string {
  const folder = path.resolve(fileURLToPath(PACKAGE_FOLDER));
  return stablePath(path.basename(folder) === "dist" ? path.dirname(folder) : folder);
}

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
