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
import { type DefaultModel, defaultModelSchema } from "../api/management/default-model-routes.ts";
import type { PageFile, PageFileName } from "../api/management/page-files.ts";
import { ServiceError } from "../errors/service-error.ts";
import { toError } from "../errors/to-error.ts";
import type { ServedFile } from "../http/streaming/send-file.ts";

const fileSchema = z.strictObject({ models: z.array(defaultModelSchema) });
const SHIPPED_FILE = new URL("../../configs/defaults.toml", import.meta.url);

/** Reads the suggested models; the file ships with the daemon. */
export function readDefaultModels(): readonly DefaultModel[] {
  return fileSchema.parse(parse(readFileSync(SHIPPED_FILE, "utf8"))).models;
}

const SOURCES = new URL("../", import.meta.url);

/**
 * Reads a file of the pages that the daemon serves.
 * @throws ServiceError internal_error when this installation lacks it
 */
export function pageFile(name: PageFileName): PageFile {
  try {
    const content = readFileSync(placeOf(name));
    return { content, etag: `"${createHash("sha256").update(content).digest("base64url")}"` };
  } catch (cause) {
    const advice = "A file of the page is missing from this installation. Install Daybreak again.";
    throw new ServiceError("internal_error", advice, { cause });
  }
}

/** In src/ui; the API console's files are in their package, and a build copies them to src/ui. */
function placeOf(name: PageFileName): string | URL {
  const own = new URL(name, SOURCES);
  if (existsSync(own)) return own;
  return createRequire(import.meta.url).resolve(`swagger-ui-dist/${path.basename(name)}`);
}

/** Where a build of the program has them: two folders up from dist/src/daemon. */
const BUILT = fileURLToPath(new URL("../../browser/", import.meta.url));
/** Makes them in a clone. */
const BUILDER = fileURLToPath(new URL("../../scripts/release/build-browser.ts", import.meta.url));

const execute = promisify(execFile);

/** By file name. A path is never built from a request. */
type Scripts = ReadonlyMap<string, ServedFile>;

/**
 * The scripts of the engine for browsers and of the page. In a clone, which has no build, they are bundled by a process
 * of their own when they are first asked for, in less than a second.
 */
export class BrowserScripts {
  #scripts: Promise<Scripts> | undefined;

  /** @throws ServiceError internal_error when they cannot be read or bundled, route_not_found when there is none of this name */
  async read(name: string): Promise<ServedFile> {
    const script = (await this.#all()).get(name);
    if (!script) throw new ServiceError("route_not_found", `There is no script named ${name}.`);
    return script;
  }

  async names(): Promise<string[]> {
    return [...(await this.#all()).keys()];
  }

  async #all(): Promise<Scripts> {
    this.#scripts ??= existsSync(BUILT) ? read(BUILT) : bundle();
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

/** Path of llama.cpp's WebAssembly for browsers without memory64 or JSPI. */
export function compatWasm(): string {
  const built = path.join(BUILT, "engine-compat.wasm");
  return existsSync(built)
    ? built
    : fileURLToPath(import.meta.resolve("@wllama/wllama-compat/wasm/wllama.wasm"));
}

async function bundle(): Promise<Scripts> {
  const folder = await mkdtemp(path.join(os.tmpdir(), "daybreak-browser-"));
  try {
    await execute(process.execPath, [BUILDER, "--out", folder]);
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
