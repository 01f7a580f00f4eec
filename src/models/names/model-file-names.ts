/**
 * How a GGUF file's name tells its quantization: llama.cpp's type names as a part of their own, in any case.
 * "UD-" marks a mix of types that one publisher chooses for each layer.
 */
const QUANT =
  /(?<=^|[-._])(?:UD-)?(?:I?Q\d(?:_(?:K|NL|XXS|XS|S|M|L|XL|XXL|\d))*|TQ\d_\d|(?:BF|FP|F)(?:16|32)|MXFP4(?:_MOE)?|NVFP4|INT[48])(?=$|[-._])/gi;

const MIXED = "UD-";

/** Quantizations that a short name stands for, best first. */
const SHORT_NAMES: Readonly<Record<string, readonly string[]>> = {
  Q2: ["Q2_K", "IQ2_M", "IQ2_S"],
  Q3: ["Q3_K_M", "Q3_K_S", "IQ3_M", "IQ3_S"],
  Q4: ["Q4_K_M", "Q4_K_S", "Q4_0", "IQ4_NL", "IQ4_XS"],
  Q5: ["Q5_K_M", "Q5_K_S", "Q5_0"],
  Q6: ["Q6_K"],
  Q8: ["Q8_0"],
};

/**
 * The default order: good four-bit types first, then the next larger ones, then those that keep the model's quality, and
 * last those that do not.
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

/** The quantization in a file's name, in uppercase ("Q4_K_M"), or else in its folder's name. */
export function quantizationOf(path: string): string | undefined {
  for (const part of path.split("/").toReversed()) {
    const found = part.replace(/\.gguf$/i, "").match(QUANT);
    if (found) return canonical(found.at(-1)!);
  }
  return undefined;
}

/** A file's name without its quantizations; the separators around them stay. */
export function withoutQuantization(name: string): string {
  return name.replaceAll(QUANT, "");
}

/** Whether the text has the form of a quantization; short names count. */
export function isQuantization(text: string): boolean {
  return text.match(QUANT)?.[0] === text;
}

/** The name as {@link quantizationOf} writes it: uppercase, one spelling. */
export function canonical(quant: string): string {
  return quant.toUpperCase().replace(/^FP/, "F");
}

/**
 * The first wanted quantization that a candidate has; by default in the default order, then any candidate. A mixed variant
 * ("UD-") can replace the plain type, and a short name ("Q8") stands for its family.
 */
export function chooseByQuantization<T>(
  candidates: readonly T[],
  pathOf: (candidate: T) => string,
  wanted: string | undefined,
): T | undefined {
  const tagged = candidates.map((candidate) => ({ candidate, quant: quantizationOf(pathOf(candidate)) }));
  for (const quant of wanted === undefined ? DEFAULT_ORDER : expand(wanted)) {
    const exact =
      tagged.find((entry) => entry.quant === quant) ?? tagged.find((entry) => entry.quant === MIXED + quant);
    if (exact) return exact.candidate;
  }
  if (wanted === undefined) return candidates[0];
  const family = canonical(wanted);
  if (!(family in SHORT_NAMES)) return undefined;
  return tagged.find(({ quant }) => quant !== undefined && familyOf(quant) === family)?.candidate;
}

function expand(wanted: string): readonly string[] {
  const quant = canonical(wanted);
  return [quant, ...(SHORT_NAMES[quant] ?? [])];
}

/** "UD-IQ4_XS" and "Q4_1" are both of family "Q4". */
function familyOf(quant: string): string {
  return quant.replace(MIXED, "").replace(/^I/, "").slice(0, 2);
}

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
