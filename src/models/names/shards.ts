/** `name-00001-of-00003.gguf`: the names of llama.cpp's gguf-split, optionally with a folder. */
const SHARD = /^(?<prefix>.*)-(?<index>\d{5})-of-(?<count>\d{5})(?<extension>\.gguf)$/is;
const DIGITS = 5;

/** Which shard of how many a file is, by its name; undefined: not a shard. */
export function shardOf(file: string): { index: number; count: number } | undefined {
  const parts = SHARD.exec(file)?.groups;
  const index = Number(parts?.["index"]);
  const count = Number(parts?.["count"]);
  return parts && index >= 1 && index <= count ? { index, count } : undefined;
}

/**
 * The files of the model that `file` belongs to: all shards in order, whichever of them it is, or just the file. Nothing is
 * looked up on disk.
 */
export function shardFiles(file: string): readonly string[] {
  return [...nameShards(file)];
}

/** The same as a generator, because the count in a name cannot be trusted. */
export function* nameShards(file: string): Generator<string> {
  const shard = shardOf(file);
  if (!shard) yield file;
  const { prefix, count, extension } = SHARD.exec(file)?.groups ?? {};
  for (let number = 1; number <= (shard?.count ?? 0); number++)
    yield `${prefix}-${String(number).padStart(DIGITS, "0")}-of-${count}${extension}`;
}

/** The file's name without folder, shard number and extension: the default name of a model. */
export function fileStem(file: string): string {
  const base = file.split(/[/\\]/).at(-1) ?? file;
  return SHARD.exec(base)?.groups?.["prefix"] ?? base.replace(/\.gguf$/i, "");
}
