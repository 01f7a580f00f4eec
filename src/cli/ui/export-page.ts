import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { text } from "node:stream/consumers";
import { buildEngineImage, IMAGE_SHA256 } from "../../../wasm/engine-image.ts";
import { BrowserScripts, compatWasm, pageFile } from "../../daemon/package-files.ts";
import { FRAME_FILES, isCacheable, pageList, sha256Of, UI_FILES } from "../../api/management/page-files.ts";
import { elementPolicy, HUB_ORIGINS } from "../../api/management/page-policy.ts";
import { STOCK_WASM_PATH } from "../../engine/engine-image.ts";
import { CliError, EXIT } from "../cli-error.ts";
import { PACKAGE_FOLDER } from "../package-folder.ts";

interface ExportOptions {
  /** Address of a mirror of the hub. */
  readonly hub: string | undefined;
  /** Further origins that the page may ask. */
  readonly connect: readonly string[];
}

type Bytes = Uint8Array<ArrayBuffer>;

/** The list of the files, by which an earlier export is known as well. */
const LIST = "files.json";
const ENGINE = "browser/engine.wasm";

/** Scripts of the daemon's engine for other pages, and of rooms that need a daemon. */
const LEFT_OUT = new Set(["daybreak.js", "experiments.js", "sw.js"]);

/**
 * Writes the page with the engine as files of a static site.
 * @throws CliError when the folder has something else in it
 */
export async function exportPage(
  folder: string,
  options: ExportOptions,
): Promise<{ readonly files: number; readonly bytes: number }> {
  const files = new Map<string, Bytes>();
  for (const [address, name] of Object.entries({ ...UI_FILES, ...FRAME_FILES })) {
    const { content } = pageFile(name);
    const place = address.slice("/ui/".length);
    if (place === "") files.set("index.html", encoded(asExported(decoded(content), options)));
    else files.set(place, content);
  }
  const scripts = new BrowserScripts();
  const read = async (name: string): Promise<Bytes> => {
    const file = await scripts.read(name);
    return encoded(await text(file.read(0, file.size - 1)));
  };
  for (const name of await scripts.names())
    if (!LEFT_OUT.has(name)) files.set(`browser/${name}`, await read(name));
  files.set("sw.js", await read("sw.js"));
  const kernels = await readFile(new URL("wasm/kernels.o", PACKAGE_FOLDER));
  const engine = await buildEngineImage(await readFile(STOCK_WASM_PATH), kernels);
  files.set(ENGINE, Uint8Array.from(engine));
  files.set("browser/engine-compat.wasm", Uint8Array.from(await readFile(compatWasm())));
  files.set(LIST, encoded(JSON.stringify(await listOf(files), undefined, 1)));
  await clear(folder);
  let bytes = 0;
  for (const [place, content] of files) {
    const file = path.join(folder, place);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, content);
    bytes += content.length;
  }
  return { files: files.size, bytes };
}

/** What a visitor's browser keeps: all but what only older browsers need, and the service worker itself. */
async function listOf(files: ReadonlyMap<string, Bytes>): Promise<object> {
  const kept = [...files].filter(
    ([place]) => isCacheable(path.posix.basename(place)) && !place.includes("compat"),
  );
  return await pageList(
    await Promise.all(
      kept.map(async ([place, content]) => ({ path: addressOf(place), sha256: await sha256Of(content) })),
    ),
  );
}

/** As the page asks for it, relative to itself. */
function addressOf(place: string): string {
  if (place === "index.html") return "";
  return place === ENGINE ? `${ENGINE}?v=${IMAGE_SHA256}` : place;
}

/** The document for a host that sends no headers. */
function asExported(html: string, { hub, connect }: ExportOptions): string {
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

/** Makes room for the export, in place of an earlier one. */
async function clear(folder: string): Promise<void> {
  const present: string[] = await readdir(folder).catch(() => []);
  if (present.length > 0 && !present.includes(LIST)) {
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
