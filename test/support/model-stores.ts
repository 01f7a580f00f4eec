import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { type GgufFile, writeGguf } from "./gguf-writer.ts";
import { tinyLlama } from "./tiny-models.ts";

/** Parts of an Ollama model besides its weights; values that are not strings are written as JSON. */
interface OllamaParts {
  /** `host/namespace/model/tag`, or `model:tag` of the library. */
  readonly name: string;
  readonly model?: GgufFile;
  readonly projector?: GgufFile;
  readonly adapter?: GgufFile;
  readonly draft?: GgufFile;
  readonly template?: string;
  readonly system?: string;
  readonly params?: object;
  readonly messages?: readonly object[];
  readonly license?: string;
  readonly config?: object;
  /** Further layers by the end of their media type. */
  readonly more?: Readonly<Record<string, string>>;
}

const LAYER = "application/vnd.ollama.image.";

/** Adds a model to a store as `ollama pull` and `ollama create` write it; returns the path of its weights. */
export function addToOllama(folder: string, parts: OllamaParts): string {
  const {
    name,
    model = tinyLlama(),
    projector,
    adapter,
    draft,
    params,
    messages,
    config = {},
    more = {},
  } = parts;
  const blobs = path.join(folder, "blobs");
  mkdirSync(blobs, { recursive: true });
  const blob = (bytes: Buffer): string => {
    const hex = createHash("sha256").update(bytes).digest("hex");
    writeFileSync(path.join(blobs, `sha256-${hex}`), bytes);
    return `sha256:${hex}`;
  };
  const layer = (kind: string, content: Buffer | string): object => {
    const bytes = Buffer.from(content);
    return { mediaType: LAYER + kind, digest: blob(bytes), size: bytes.length };
  };
  const weights = (file: GgufFile): Buffer => {
    const scratch = path.join(folder, "scratch");
    writeGguf(scratch, file);
    return readFileSync(scratch);
  };
  const texts = Object.entries({
    template: parts.template,
    system: parts.system,
    license: parts.license,
    params: params && JSON.stringify(params),
    messages: messages && JSON.stringify(messages),
    ...more,
  });
  const layers = [
    layer("model", weights(model)),
    ...(projector ? [layer("projector", weights(projector))] : []),
    ...(adapter ? [layer("adapter", weights(adapter))] : []),
    ...(draft ? [layer("draft", weights(draft))] : []),
    ...texts.flatMap(([kind, text]) => (text === undefined ? [] : [layer(kind, text)])),
  ];
  const json = Buffer.from(JSON.stringify({ model_format: "gguf", ...config }));
  writeManifest(folder, name, {
    schemaVersion: 2,
    mediaType: "application/vnd.docker.distribution.manifest.v2+json",
    config: {
      mediaType: "application/vnd.docker.container.image.v1+json",
      digest: blob(json),
      size: json.length,
    },
    layers,
  });
  const hex = createHash("sha256").update(weights(model)).digest("hex");
  return path.join(blobs, `sha256-${hex}`);
}

/** Writes a manifest of Ollama, whatever it says. */
export function writeManifest(folder: string, name: string, manifest: unknown): void {
  const full = name.includes("/") ? name : `registry.ollama.ai/library/${name.replace(":", "/")}`;
  const file = path.join(folder, "manifests", ...full.split("/"));
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, typeof manifest === "string" ? manifest : JSON.stringify(manifest));
}

/** Adds a file to a hub cache as huggingface_hub writes it: a blob, and a link to it in the snapshot of main. */
export function addToHubCache(folder: string, repo: string, file: string, model = tinyLlama()): void {
  const root = path.join(folder, `models--${repo.replace("/", "--")}`);
  const commit = "a".repeat(40);
  const snapshot = path.join(root, "snapshots", commit);
  for (const each of [
    path.join(root, "blobs"),
    path.join(root, "refs"),
    path.dirname(path.join(snapshot, file)),
  ])
    mkdirSync(each, { recursive: true });
  const blob = createHash("sha256").update(file).digest("hex");
  writeGguf(path.join(root, "blobs", blob), model);
  const up = "../".repeat(file.split("/").length + 1);
  symlinkSync(`${up}blobs/${blob}`, path.join(snapshot, file));
  writeFileSync(path.join(root, "refs", "main"), commit);
}

/** Writes a model into a folder as LM Studio downloads it. */
export function addToLmStudio(folder: string, file: string, model = tinyLlama()): string {
  const target = path.join(folder, file);
  mkdirSync(path.dirname(target), { recursive: true });
  writeGguf(target, model);
  return target;
}
