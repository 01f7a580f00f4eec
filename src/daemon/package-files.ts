import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { parse } from "smol-toml";
import { z } from "zod";
import { type DefaultModel, defaultModelSchema } from "../api/wire/hub.ts";
import type { PageFile, PageFileName } from "../api/wire/page-files.ts";
import { ServiceError, toError } from "../errors/service-error.ts";
import type { ServedFile } from "../http/streaming/send-file.ts";

const fileSchema = z.strictObject({ models: z.array(defaultModelSchema) });
const SHIPPED_FILE = new URL("../../configs/defaults.toml", import.meta.url);

/** Reads the list of suggested models, which ships with the daemon. */
export function readDefaultModels(): readonly DefaultModel[] {
  return fileSchema.parse(parse(readFileSync(SHIPPED_FILE, "utf8"))).models;
}

const SOURCES = new URL("../", import.meta.url);

/**
 * Reads a file of the pages that the daemon serves.
 * @throws ServiceError internal_error if the installation lacks it
 */
export function pageFile(name: PageFileName): PageFile {
  try {
    const content = readFileSync(pathOf(name));
    return { content, etag: `"${createHash("sha256").update(content).digest("base64url")}"` };
  } catch (cause) {
    const advice = "A file of the page is missing from this installation. Install Daybreak again.";
    throw new ServiceError("internal_error", advice, { cause });
  }
}

/** Path in src/ui. Files of the API console are in their package, from which a build copies them to src/ui. */
function pathOf(name: PageFileName): string | URL {
  const inSources = new URL(name, SOURCES);
  if (existsSync(inSources)) return inSources;
  return createRequire(import.meta.url).resolve(`swagger-ui-dist/${path.basename(name)}`);
}

/** Folder of the scripts in a build: two levels above dist/src/daemon. */
const BUILT_SCRIPTS = fileURLToPath(new URL("../../browser/", import.meta.url));
/** Program that bundles the scripts in a clone. */
const BUILD_PROGRAM = fileURLToPath(new URL("../../scripts/release/build-browser.ts", import.meta.url));

const execute = promisify(execFile);

/** Scripts by file name, so that no path is built from a request. */
type Scripts = ReadonlyMap<string, ServedFile>;

/**
 * Scripts of the page and of the engine for browsers. In a clone, which has no build, a separate process bundles them
 * at the first request, in less than a second.
 */
export class BrowserScripts {
  #scripts: Promise<Scripts> | undefined;

  /** Returns a script. @throws ServiceError internal_error if bundling fails, route_not_found for an unknown name */
  async read(name: string): Promise<ServedFile> {
    const script = (await this.#all()).get(name);
    if (!script) throw new ServiceError("route_not_found", `There is no script named ${name}.`);
    return script;
  }

  async names(): Promise<string[]> {
    return [...(await this.#all()).keys()];
  }

  async #all(): Promise<Scripts> {
    this.#scripts ??= existsSync(BUILT_SCRIPTS) ? read(BUILT_SCRIPTS) : bundle();
    try {
      return await this.#scripts;
    } catch (error) {
      this.#scripts = undefined;
      throw new ServiceError(
        "internal_error",
        `The engine for browsers cannot be served: ${toError(error).message.split("\n")[0]}. Install Daybreak again, with its development packages in a clone.`,
        { cause: error },
      );
    }
  }
}

/** Path of the WebAssembly for browsers without memory64 or JSPI. */
export function compatWasm(): string {
  const built = path.join(BUILT_SCRIPTS, "engine-compat.wasm");
  return existsSync(built)
    ? built
    : fileURLToPath(import.meta.resolve("@wllama/wllama-compat/wasm/wllama.wasm"));
}

async function bundle(): Promise<Scripts> {
  const folder = await mkdtemp(path.join(os.tmpdir(), "daybreak-browser-"));
  try {
    await execute(process.execPath, [BUILD_PROGRAM, "--out", folder]);
    return await read(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function read(folder: string): Promise<Scripts> {
  const names = (await readdir(folder)).filter((name) => name.endsWith(".js"));
  return new Map(
    await Promise.all(names.map(async (name) => [name, await readScript(folder, name)] as const)),
  );
}

async function readScript(folder: string, name: string): Promise<ServedFile> {
  const bytes = Uint8Array.from(await readFile(path.join(folder, name)));
  return {
    size: bytes.length,
    etag: createHash("sha256").update(bytes).digest("hex"),
    read: (start, end) => new Blob([bytes.subarray(start, end + 1)]).stream(),
  };
}
