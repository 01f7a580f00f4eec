import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { text } from "node:stream/consumers";
import { buildEngineImage, IMAGE_SHA256 } from "../../../wasm/engine-image.ts";
import { BrowserScripts, compatWasm, pageFile } from "../../daemon/package-files.ts";
import { FRAME_FILES, isCacheable, pageList, sha256Of, UI_FILES } from "../../api/wire/page-files.ts";
import { elementPolicy, HUB_ORIGINS } from "../../api/wire/page-policy.ts";
import { STOCK_WASM_PATH } from "../../engine/engine-image.ts";
import { CliError, EXIT } from "../cli-error.ts";
import { PACKAGE_FOLDER } from "../install/installation.ts";

interface ExportOptions {
  /** URL of a mirror of the hub. */
  readonly hub: string | undefined;
  /** Additional origins that the page may fetch from. */
  readonly connect: readonly string[];
}

type Bytes = Uint8Array<ArrayBuffer>;

/** List of the files; also marks the folder as an export. */
const LIST_FILE = "files.json";
const ENGINE_FILE = "browser/engine.wasm";

/** Scripts that need a daemon or are meant for other pages. */
const EXCLUDED_SCRIPTS = new Set(["daybreak.js", "experiments.js", "sw.js"]);

/**
 * Writes the page with the engine as a static site.
 * @throws CliError if the folder contains other files
 */
export async function exportPage(
  folder: string,
  options: ExportOptions,
): Promise<{ readonly files: number; readonly bytes: number }> {
  const files = new Map<string, Bytes>();
  for (const [address, name] of Object.entries({ ...UI_FILES, ...FRAME_FILES })) {
    const { content } = pageFile(name);
    const relativePath = address.slice("/ui/".length);
    if (relativePath === "") files.set("index.html", encoded(exportedDocument(decoded(content), options)));
    else files.set(relativePath, content);
  }
  const scripts = new BrowserScripts();
  const read = async (name: string): Promise<Bytes> => {
    const file = await scripts.read(name);
    return encoded(await text(file.read(0, file.size - 1)));
  };
  for (const name of await scripts.names())
    if (!EXCLUDED_SCRIPTS.has(name)) files.set(`browser/${name}`, await read(name));
  files.set("sw.js", await read("sw.js"));
  const kernels = await readFile(new URL("wasm/kernels.o", PACKAGE_FOLDER));
  const engine = await buildEngineImage(await readFile(STOCK_WASM_PATH), kernels);
  files.set(ENGINE_FILE, Uint8Array.from(engine));
  files.set("browser/engine-compat.wasm", Uint8Array.from(await readFile(compatWasm())));
  files.set(LIST_FILE, encoded(JSON.stringify(await fileList(files), undefined, 1)));
  await clearFolder(folder);
  let bytes = 0;
  for (const [relativePath, content] of files) {
    const file = path.join(folder, relativePath);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, content);
    bytes += content.length;
  }
  return { files: files.size, bytes };
}

/** List of the files that the service worker caches: all but its own script and the files for older browsers. */
async function fileList(files: ReadonlyMap<string, Bytes>): Promise<object> {
  const cacheable = [...files].filter(
    ([relativePath]) => isCacheable(path.posix.basename(relativePath)) && !relativePath.includes("compat"),
  );
  return await pageList(
    await Promise.all(
      cacheable.map(async ([relativePath, content]) => ({
        path: addressOf(relativePath),
        sha256: await sha256Of(content),
      })),
    ),
  );
}

/** Relative URL of a file in the page. */
function addressOf(relativePath: string): string {
  if (relativePath === "index.html") return "";
  return relativePath === ENGINE_FILE ? `${ENGINE_FILE}?v=${IMAGE_SHA256}` : relativePath;
}

/** Adds the policies to the document, for a host that sends no headers. */
function exportedDocument(html: string, { hub, connect }: ExportOptions): string {
  const servers = [...(hub === undefined ? HUB_ORIGINS : [new URL(hub).origin]), ...connect];
  const head = [
    `<meta http-equiv="content-security-policy" content="${elementPolicy(servers)}" />`,
    '<meta name="referrer" content="no-referrer" />',
    '<meta name="daybreak-exported" content="" />',
    ...(hub === undefined
      ? []
      : [`<meta name="daybreak-hub" content="${escaped(hub.replace(/\/$/, ""))}" />`]),
  ];
  return html
    .replace('<meta charset="utf-8" />', ['<meta charset="utf-8" />', ...head].join("\n    "))
    .replace('src="/browser/', 'src="browser/');
}

function escaped(value: string): string {
  return value.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");
}

/** Removes an earlier export. @throws CliError if the folder contains other files */
async function clearFolder(folder: string): Promise<void> {
  const present: string[] = await readdir(folder).catch(() => []);
  if (present.length > 0 && !present.includes(LIST_FILE)) {
    throw new CliError(
      EXIT.usage,
      "folder_not_empty",
      `The folder ${folder} has other files in it. Name a new or an empty one.`,
    );
  }
  // Scripts of another version would stay beside the new ones.
  await rm(path.join(folder, "browser"), { recursive: true, force: true });
}

function encoded(value: string): Bytes {
  return new TextEncoder().encode(value);
}

function decoded(content: Bytes): string {
  return new TextDecoder().decode(content);
}
