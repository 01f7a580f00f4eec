// @ts-check
import { existsSync, realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { compileCacheFolder } from "./keep-compiled-code.mjs";
import { WASM_IS_OFF, wasmProblem } from "./machine-problem.mjs";
import { findRuntime, bundledRuntime, isSuitableRuntime } from "./runtime.mjs";
import { hasSucceeded, recordSuccess } from "./try-runtime.mjs";

/** File in the folder of the compile cache that records the last Node which could start engines. */
const ENGINES_START = "engines-start";

/**
 * The Node to run under.
 * @typedef {object} Choice
 * @property {string} [binary] another Node than this one; absent: this one
 * @property {string} [note] a line for the user: why this one is not used although it is new enough
 * @property {string} [problem] why there is none, and what to do
 */

/**
 * @typedef {object} RuntimeChoice
 * @property {import("./runtime.mjs").Versions} versions of the running Node
 * @property {string} execPath of the running Node
 * @property {() => string | undefined} findWasmProblem explains why its WebAssembly cannot run models
 * @property {(binary: string) => Promise<string | undefined>} findEngineProblem explains why no engine starts under it
 * @property {() => string | undefined} findBundled finds the Node that comes with Daybreak
 * @property {() => ReturnType<typeof findRuntime>} find the same, checked
 */

/**
 * Chooses the Node that runs Daybreak: the running one if it is new enough and engines start under it, or else the one
 * that comes with Daybreak.
 * @param {Partial<RuntimeChoice>} [overrides]
 * @returns {Promise<Choice>}
 */
export async function chooseRuntime(overrides = {}) {
  /** @type {RuntimeChoice} */
  const { versions, execPath, findWasmProblem, findEngineProblem, findBundled, find } = {
    versions: process.versions,
    execPath: process.execPath,
    findWasmProblem: wasmProblem,
    findEngineProblem: engineProblem,
    findBundled: bundledRuntime,
    find: findRuntime,
    ...overrides,
  };
  if (!isSuitableRuntime(versions)) {
    const found = find();
    return "problem" in found ? found : { binary: found.binary };
  }
  const lacking = findWasmProblem();
  // The bundled Node was tested before the release, and there is no other to replace it.
  const isIncluded = isSameFile(execPath, findBundled());
  // Another Node would get the same flags that turn WebAssembly off.
  if (isIncluded || lacking === WASM_IS_OFF) return lacking === undefined ? {} : { problem: lacking };
  const reason = lacking ?? (await findEngineProblem(execPath));
  if (reason === undefined) return {};
  const found = find();
  if (!("problem" in found)) {
    return {
      binary: found.binary,
      note: `Node ${versions.node} is passed over for the one that comes with Daybreak: ${reason}`,
    };
  }
  if (lacking !== undefined) return { problem: lacking };
  // Commands that only call a daemon still work.
  return { note: `No engine starts under Node ${versions.node}, so no model can be loaded: ${reason}` };
}

/**
 * Starts a small process with an engine's permissions and pipes. A success is remembered until the binary or Daybreak
 * changes.
 * @param {string} binary
 * @returns {Promise<string | undefined>} why engines do not start under this Node, as a sentence
 */
async function engineProblem(binary) {
  const trial = findModule("../engine/sandbox/try-engine-start", import.meta.url);
  if (trial === undefined) return undefined; // the entry point is missing as well, which is reported
  const record = { folder: compileCacheFolder(process.argv.slice(2), process.env), name: ENGINES_START };
  const files = [binary, fileURLToPath(trial)];
  if (hasSucceeded(record, files)) return undefined;
  const { tryEngineStart } = await import(trial.href);
  try {
    /** @type {string | undefined} */
    const problem = await tryEngineStart();
    if (problem === undefined) recordSuccess(record, files);
    return problem;
  } catch {
    return undefined; // the system has no process left for the trial, which says nothing about this Node
  }
}

/**
 * @param {string} file
 * @param {string | undefined} other
 */
function isSameFile(file, other) {
  if (other === undefined) return false;
  try {
    return realpathSync(file) === realpathSync(other);
  } catch {
    return file === other;
  }
}

/**
 * Finds a module of the program: TypeScript in the repository, JavaScript in the published package, where Node does not
 * strip types.
 * @param {string} name path without its ending, such as "../cli/main"
 * @param {string | URL} launcher file to which the path is relative
 * @param {(file: URL) => boolean} [exists]
 * @returns {URL | undefined}
 */
export function findModule(name, launcher, exists = existsSync) {
  return [".ts", ".js"].map((ending) => new URL(name + ending, launcher)).find((file) => exists(file));
}
