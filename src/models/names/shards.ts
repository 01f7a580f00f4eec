import path from "node:path";

/** `name-00001-of-00003.gguf`: how llama.cpp's gguf-split names the parts. */
const SHARD = /^(?<prefix>.*)-(?<index>\d{5})-of-(?<count>\d{5})\.gguf$/i;
const DIGITS = 5;

/**
 * The files of the model that `file` belongs to: all shards in order, whichever of them it is, or the file alone.
 * Nothing is looked up on disk.
 */
export function shardFiles(file: string): readonly string[] {
  const match = SHARD.exec(path.basename(file))?.groups;
  const count = Number(match?.["count"]);
  const index = Number(match?.["index"]);
  if (!match || count < 1 || index < 1 || index > count) return [file];
  const folder = path.dirname(file);
  return Array.from({ length: count }, (_, position) =>
    path.join(
      folder,
      `${match["prefix"]}-${String(position + 1).padStart(DIGITS, "0")}-of-${match["count"]}.gguf`,
    ),
  );
}

/** The file's name without folder, shard number and extension: what a model is called when nobody names it. */
export function fileStem(file: string): string {
  const base = path.basename(file);
  return SHARD.exec(base)?.groups?.["prefix"] ?? base.replace(/\.gguf$/i, "");
}
