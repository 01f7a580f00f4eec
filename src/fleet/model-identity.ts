import { createHash, type Hash } from "node:crypto";
import { open, stat } from "node:fs/promises";
import type { LoadSettings } from "../config/load-settings.ts";
import { withoutUndefined } from "../json/without-undefined.ts";
import type { Model } from "../models/model.ts";

/** Read of each file: its header, and pieces from all over it. */
const HEAD_BYTES = 1024 * 1024;
const PIECE_BYTES = 64 * 1024;
const PIECES = 16;

/** Settings of a load that change how fast an answer comes, not what it says. */
const SPEED_SETTINGS = new Set(["batchSize", "flashAttention"]);
/** What settings are when nobody has set them. A loaded model tells some of them nevertheless. */
const UNSET: LoadSettings = {
  cacheTypeK: "f16",
  cacheTypeV: "f16",
  contextShift: false,
  numKeep: 0,
  cacheReuse: 0,
};

/**
 * Tells whether models on two machines are the same. To read the whole of their files would take minutes, so their size,
 * header and pieces of them stand for them.
 */
export class ModelIdentities {
  /** By path, with the size and time that it had. */
  readonly #known = new Map<string, { readonly state: string; readonly digest: string }>();

  /** SHA-256 of a model's files. @throws when one cannot be read */
  async filesOf({ files, projector, adapters }: Model): Promise<string> {
    const hash = createHash("sha256");
    const further = [...(projector === undefined ? [] : [projector]), ...adapters.map(({ path }) => path)];
    for (const file of [...files, ...further]) hash.update(await this.#digestOf(file));
    return hash.digest("hex");
  }

  async #digestOf(file: string): Promise<string> {
    const { size, mtimeMs } = await stat(file);
    const state = `${size} ${mtimeMs}`;
    const known = this.#known.get(file);
    if (known?.state === state) return known.digest;
    const digest = await digestFile(file, size);
    this.#known.set(file, { state, digest });
    return digest;
  }
}

async function digestFile(file: string, size: number): Promise<string> {
  const hash = createHash("sha256").update(`${size} `);
  await using handle = await open(file);
  const read = async (position: number, length: number): Promise<void> => {
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(length), 0, length, position);
    hash.update(buffer.subarray(0, bytesRead));
  };
  await read(0, Math.min(HEAD_BYTES, size));
  const rest = size - HEAD_BYTES - PIECE_BYTES;
  if (rest <= 0) return hash.digest("hex");
  for (let piece = 0; piece <= PIECES; piece += 1) {
    await read(HEAD_BYTES + Math.floor((rest * piece) / PIECES), PIECE_BYTES);
  }
  return hash.digest("hex");
}

/**
 * SHA-256 of the settings on which a model's answers depend, the same whether it is loaded or not; how much memory and which
 * processor it uses are not among them.
 */
export function settingsDigest({
  settings,
  loadSettings,
  adapters,
  gguf,
}: Pick<Model, "settings" | "loadSettings" | "adapters"> & {
  readonly gguf: Pick<Model["gguf"], "purpose">;
}): string {
  const {
    contextSize: _size,
    gpuLayers: _layers,
    load: _load,
    speculation: _speculation,
    ...rest
  } = settings;
  // Only a model that generates is ever loaded to shift its context.
  const effective = { ...loadSettings, ...(gguf.purpose !== "generate" && { contextShift: false }) };
  const load = Object.entries({ ...UNSET, ...withoutUndefined(effective) }).filter(
    ([key]) => !SPEED_SETTINGS.has(key),
  );
  const scales = adapters.map(({ name, scale }) => [name, scale]);
  return updateInOrder(createHash("sha256"), [rest, Object.fromEntries(load), scales]).digest("hex");
}

function updateInOrder(hash: Hash, value: unknown): Hash {
  return hash.update(JSON.stringify(value, sorted));
}

/** The order in which an object's members were set says nothing. */
function sorted(_key: string, value: unknown): unknown {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
    : value;
}
