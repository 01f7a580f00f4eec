// @ts-check
import { spawnSync } from "node:child_process";
import { accessSync, constants, existsSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { compileCacheFolder } from "./keep-compiled-code.mjs";
import { platformPackages } from "./platform-packages.mjs";
import { hasSucceeded, recordSuccess } from "./try-runtime.mjs";

/** First version of Node with WebAssembly's memory64 and JSPI without flags. */
export const MINIMUM_NODE = "24.20";

/** ELF interpreter of the Linux binaries in these packages. Where it is missing (musl), none of them can start. */
const GLIBC_LOADERS = new Map([
  ["x64", "/lib64/ld-linux-x86-64.so.2"],
  ["arm64", "/lib/ld-linux-aarch64.so.1"],
]);

/** Runtimes that report a new version of Node but lack its permission model, which confines engines. */
const OTHER_RUNTIMES = /** @type {const} */ ([
  ["deno", "Deno"],
  ["bun", "Bun"],
]);

/**
 * True when a runtime can run the engine.
 * @param {Versions} versions
 */
export function isSuitableRuntime(versions) {
  if (!isNode(versions)) return false;
  const [major = 0, minor = 0] = numbersOf(versions.node);
  const [leastMajor = 0, leastMinor = 0] = numbersOf(MINIMUM_NODE);
  return major > leastMajor || (major === leastMajor && minor >= leastMinor);
}

/** @param {string} version such as "24.21.0" */
function numbersOf(version) {
  return version.split(".").map((part) => Number.parseInt(part, 10));
}

/**
 * False for a runtime that only reports a version of Node.
 * @param {Versions} versions
 */
export function isNode(versions) {
  return OTHER_RUNTIMES.every(([key]) => versions[key] === undefined);
}

/**
 * "Node 20.1.0" or "Deno 2.9.6"
 * @param {Versions} versions
 */
function nameOf(versions) {
  const [key, name] = OTHER_RUNTIMES.find(([each]) => versions[each] !== undefined) ?? ["node", "Node"];
  return `${name} ${versions[key]}`;
}

/** @typedef {{ node: string, deno?: string | undefined, bun?: string | undefined }} Versions as process.versions */

/**
 * @typedef {object} RuntimeSearch
 * @property {string} platform as in process.platform
 * @property {string} arch as in process.arch
 * @property {Versions} versions of the running Node
 * @property {(id: string) => string} resolve finds a file of a package wherever npm has put it; throws when absent
 * @property {(file: string) => boolean} exists
 * @property {(binary: string) => { problem: string, cure?: string } | undefined} tryStart explains why it does not start
 */

/**
 * Finds the binary of a suitable Node that was installed as an optional dependency, and checks that it starts.
 * @param {Partial<RuntimeSearch>} [overrides]
 * @returns {{ binary: string, packageName: string } | { problem: string }} the binary and its package, or a message for
 *   the user
 */
export function findRuntime(overrides = {}) {
  /** @type {RuntimeSearch} */
  const search = {
    platform: process.platform,
    arch: process.arch,
    versions: process.versions,
    resolve: createRequire(import.meta.url).resolve,
    exists: existsSync,
    tryStart: (binary) => startProblem(binary, compileCacheFolder(process.argv.slice(2), process.env)),
    ...overrides,
  };
  const { platform, arch } = search;
  const packages = platformPackages(platform, arch);
  if (!packages) {
    return { problem: explain(search, `No Node binary comes with Daybreak for ${platform} on ${arch}.`) };
  }
  const loader = platform === "linux" ? GLIBC_LOADERS.get(arch) : undefined;
  if (loader && !search.exists(loader)) {
    return {
      problem: explain(
        search,
        `The Node binary that comes with Daybreak needs glibc, and this system has none (${loader} is missing; Alpine and others use musl).`,
      ),
    };
  }
  const [found] = [packages.node, packages.nodeSource].flatMap((packageName) => {
    const binary = binaryOf(packageName, packages.nodeBinary, search);
    return binary === undefined ? [] : [{ binary, packageName }];
  });
  if (!found) {
    return {
      problem: explain(
        search,
        `The optional package ${packages.node}, which carries a suitable Node, is not installed.`,
        `Or add that package: npm install ${packages.node} (-g where Daybreak is installed so; in a clone: npm ci)`,
      ),
    };
  }
  const failure = search.tryStart(found.binary);
  if (failure) return { problem: explain(search, failure.problem, failure.cure) };
  return found;
}

/**
 * Finds the Node that comes with Daybreak, without checking that it starts.
 * @returns {string | undefined} undefined if there is none
 */
export function bundledRuntime() {
  const packages = platformPackages(process.platform, process.arch);
  if (packages === undefined) return undefined;
  const search = { resolve: createRequire(import.meta.url).resolve, exists: existsSync };
  return (
    binaryOf(packages.node, packages.nodeBinary, search) ??
    binaryOf(packages.nodeSource, packages.nodeBinary, search)
  );
}

/**
 * @param {string} packageName
 * @param {string} file path of the binary in the package
 * @param {Pick<RuntimeSearch, "resolve" | "exists">} search
 * @returns {string | undefined}
 */
function binaryOf(packageName, file, search) {
  try {
    const binary = path.join(path.dirname(search.resolve(`${packageName}/package.json`)), file);
    return search.exists(binary) ? binary : undefined;
  } catch {
    return undefined; // no such package
  }
}

/**
 * @param {RuntimeSearch} search
 * @param {string} problem
 * @param {string} [hint]
 */
function explain(search, problem, hint) {
  return [
    `Daybreak needs Node ${MINIMUM_NODE} or later, and this is ${nameOf(search.versions)}.`,
    problem,
    `Install Node ${MINIMUM_NODE} or later (https://nodejs.org) and run Daybreak with it.`,
    ...(hint ? [hint] : []),
  ].join("\n");
}

/** Longest start, in milliseconds. The first one reads over 100 MB from a disk that may be slow. */
const DEADLINE_MS = 60_000;

/** System packages of the libraries that Node's binaries need besides the C library. */
const LIBRARY_PACKAGES = new Map([
  ["libatomic.so.1", "apt-get install libatomic1 (Debian, Ubuntu), dnf install libatomic (Fedora, RHEL)"],
  ["libstdc++.so.6", "apt-get install libstdc++6 (Debian, Ubuntu), dnf install libstdc++ (Fedora, RHEL)"],
]);

/**
 * Explains why a Node binary cannot be started on this machine, with advice; undefined if it starts. The result is cached
 * for each binary, because the check takes as long as a start.
 * @param {string} binary
 * @param {string} folder for the cached result; if it is not writable, every start checks again
 * @param {number} [deadlineMs]
 * @returns {{ problem: string, cure?: string } | undefined}
 */
export function startProblem(binary, folder, deadlineMs = DEADLINE_MS) {
  try {
    accessSync(binary, constants.X_OK);
  } catch {
    return {
      problem: `The Node binary that comes with Daybreak may not be executed (${binary}).`,
      cure: "Install Daybreak anew, on a file system that allows programs.",
    };
  }
  const record = { folder, name: "runtime" };
  if (hasSucceeded(record, [binary])) return undefined;
  const { status, signal, error, stdout, stderr } = spawnSync(binary, ["--version"], {
    encoding: "utf8",
    timeout: deadlineMs,
    killSignal: "SIGKILL",
    windowsHide: true,
  });
  if (status === 0 && /^v\d+\./.test(stdout)) {
    recordSuccess(record, [binary]);
    return undefined;
  }
  // A shell that runs a damaged binary quotes it.
  const said = stderr
    ?.trim()
    .split("\n")[0]
    ?.replaceAll(/[^\x20-\x7e]/g, "?");
  const why =
    error && "code" in error && error.code === "ETIMEDOUT" ? `no answer in ${deadlineMs} ms` : undefined;
  const reason = why ?? (said || error?.message || (signal ? `ended by ${signal}` : `exit code ${status}`));
  const problem = `The Node binary that comes with Daybreak does not start here: ${reason}`;
  const library = /lib[\w+.-]+\.so(?:\.\d+)*/.exec(said ?? "")?.[0];
  if (library === undefined) return { problem };
  const packages = LIBRARY_PACKAGES.get(library);
  return { problem, cure: `Install the library ${library}${packages ? `: ${packages}` : ""}.` };
}
