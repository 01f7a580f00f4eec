/**
 * Quantization in a GGUF file's name: a type name of llama.cpp between separators, in any case. "UD-" means that a
 * publisher (Unsloth) has chosen types for each layer.
 */
const QUANT =
  /(?<=^|[-._])(?:UD-)?(?:I?Q\d(?:_(?:K|NL|XXS|XS|S|M|L|XL|XXL|\d))*|TQ\d_\d|(?:BF|FP|F)(?:16|32)|MXFP4(?:_MOE)?|NVFP4|INT[48])(?=$|[-._])/gi;

const MIXED = "UD-";

/** Quantizations that a short name matches, the best first. */
const SHORT_NAMES: Readonly<Record<string, readonly string[]>> = {
  Q2: ["Q2_K", "IQ2_M", "IQ2_S"],
  Q3: ["Q3_K_M", "Q3_K_S", "IQ3_M", "IQ3_S"],
  Q4: ["Q4_K_M", "Q4_K_S", "Q4_0", "IQ4_NL", "IQ4_XS"],
  Q5: ["Q5_K_M", "Q5_K_S", "Q5_0"],
  Q6: ["Q6_K"],
  Q8: ["Q8_0"],
};

/**
 * Default quantizations in order of preference: good four-bit types first, then larger ones, and last those that cost
 * quality.
 */
const DEFAULT_ORDER = [
  "Q4_K_M",
  "Q4_K_S",
  "Q5_K_M",
  "Q4_0",
  "Q8_0",
  "F16",
  "Q4_K_XL",
  "Q4_K_L",
  "MXFP4",
  "MXFP4_MOE",
  "IQ4_XS",
  "IQ4_NL",
  "Q5_K_S",
  "Q6_K",
  "BF16",
  "Q3_K_M",
  "F32",
] as const;

export function isGguf(file: string): boolean {
  return /\.gguf$/i.test(file);
}

/** Returns the quantization in a file's name, or else in its folder's name, in uppercase ("Q4_K_M"). */
export function quantizationOf(path: string): string | undefined {
  for (const part of path.split("/").toReversed()) {
    const found = part.replace(/\.gguf$/i, "").match(QUANT);
    if (found) return canonical(found.at(-1)!);
  }
  return undefined;
}

/** Returns a file's name without its quantizations; the separators around them stay. */
export function withoutQuantization(name: string): string {
  return name.replaceAll(QUANT, "");
}

/** True if the text is a quantization or the short name of one. */
export function isQuantization(text: string): boolean {
  return text.match(QUANT)?.[0] === text;
}

/** Returns a quantization as {@link quantizationOf} does: uppercase, in one spelling. */
export function canonical(quant: string): string {
  return quant.toUpperCase().replace(/^FP/, "F");
}

/**
 * Returns the first candidate with the wanted quantization; without one, by the default order, or else any candidate. A
 * variant with types for each layer ("UD-") can replace the normal one, and a short name ("Q8") matches its family.
 */
export function chooseByQuantization<T>(
  candidates: readonly T[],
  pathOf: (candidate: T) => string,
  wanted: string | undefined,
): T | undefined {
  const tagged = candidates.map((candidate) => ({ candidate, quant: quantizationOf(pathOf(candidate)) }));
  for (const quant of wanted === undefined ? DEFAULT_ORDER : alternatives(wanted)) {
    const exact =
      tagged.find((entry) => entry.quant === quant) ?? tagged.find((entry) => entry.quant === MIXED + quant);
    if (exact) return exact.candidate;
  }
  if (wanted === undefined) return candidates[0];
  const family = canonical(wanted);
  if (!(family in SHORT_NAMES)) return undefined;
  return tagged.find(({ quant }) => quant !== undefined && familyOf(quant) === family)?.candidate;
}

function alternatives(wanted: string): readonly string[] {
  const quant = canonical(wanted);
  return [quant, ...(SHORT_NAMES[quant] ?? [])];
}

/** Returns the family of a quantization: "Q4" for "UD-IQ4_XS" and "Q4_1". */
function familyOf(quant: string): string {
  return quant.replace(MIXED, "").replace(/^I/, "").slice(0, 2);
}

/** Names of llama.cpp's gguf-split: `name-00001-of-00003.gguf`, optionally with a folder. */
const SHARD = /^(?<prefix>.*)-(?<index>\d{5})-of-(?<count>\d{5})(?<extension>\.gguf)$/is;
const DIGITS = 5;

/** Returns the index (from 1) and count of a shard by its name; undefined: not a shard. */
export function shardOf(file: string): { index: number; count: number } | undefined {
  const parts = SHARD.exec(file)?.groups;
  const index = Number(parts?.["index"]);
  const count = Number(parts?.["count"]);
  return parts && index >= 1 && index <= count ? { index, count } : undefined;
}

/**
 * Returns the files of the model that `file` belongs to, derived from its name: all shards in order, or just the file.
 */
export function shardFiles(file: string): readonly string[] {
  return [...nameShards(file)];
}

/** Like {@link shardFiles}, but as a generator, because the count in an untrusted name may be huge. */
export function* nameShards(file: string): Generator<string> {
  const shard = shardOf(file);
  if (!shard) yield file;
  const { prefix, count, extension } = SHARD.exec(file)?.groups ?? {};
  for (let number = 1; number <= (shard?.count ?? 0); number++)
    yield `${prefix}-${String(number).padStart(DIGITS, "0")}-of-${count}${extension}`;
}

/** Returns a file's name without folder, shard number and extension, which is the default name of a model. */
export function fileStem(file: string): string {
  const base = file.split(/[/\\]/).at(-1) ?? file;
  return SHARD.exec(base)?.groups?.["prefix"] ?? base.replace(/\.gguf$/i, "");
}
