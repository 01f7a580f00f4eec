import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parse, TomlError } from "smol-toml";
import { z } from "zod";
import { ConfigError } from "../../config/read-config-file.ts";
import { explainIssue, EXPLAINABLE, issueText } from "../../errors/explain-issue.ts";
import { isGguf } from "./model-file-names.ts";
import { isModelName, isRepoFile, isRepoName } from "./name-rules.ts";

const ggufFile = z
  .string()
  .refine((text) => isGguf(text) && isRepoFile(text), "must be the path of a .gguf file in the repository");

const aliasEntrySchema = z.strictObject({
  repo: z
    .string()
    .refine(isRepoName, "must be owner/repository of the hub")
    .describe("owner/repository on the hub."),
  file: ggufFile.describe(
    "What is taken when a name has no quantization; of a sharded model, its first shard.",
  ),
  mmproj: ggufFile
    .optional()
    .describe("Vision projector in the same repository; absent, with the tag vision: found there."),
  family: z.string().optional().describe("Family of models, for people."),
  description: z.string().optional().describe("One sentence, for people."),
  tags: z
    .array(z.string())
    .default([])
    .describe("What it is good for; vision has it pulled with its projector."),
  quant: z.string().optional().describe("Quantization of the file, for people."),
  evidence: z.string().optional().describe("Where repository and file are named in public."),
});
export type AliasEntry = z.infer<typeof aliasEntrySchema>;

const aliasName = z.string().refine(isModelName, "must be name or name:tag, of letters, digits and . _ -");

const aliasFileSchema = z.strictObject({ models: z.record(aliasName, aliasEntrySchema) });

/** Aliases in the order of their files, the user's file first. */
export type AliasTable = ReadonlyMap<string, AliasEntry>;

const SHIPPED_FILE = new URL("../../../configs/models.toml", import.meta.url);

/**
 * Reads the shipped aliases and those of the user's file, which take precedence.
 * @throws ConfigError that names the file and the key
 */
export function readAliases(userFile?: string, shippedFile: string | URL = SHIPPED_FILE): AliasTable {
  const userAliases = userFile === undefined ? [] : readAliasFile(userFile);
  const seen = new Set(userAliases.map(([alias]) => aliasKey(alias)));
  return new Map([
    ...userAliases,
    ...readAliasFile(shippedFile).filter(([alias]) => !seen.has(aliasKey(alias))),
  ]);
}

/** Returns the key of an alias: aliases are case-insensitive, and `name` equals `name:latest`. */
export function aliasKey(alias: string): string {
  return alias.toLowerCase().replace(/:latest$/, "");
}

function readAliasFile(file: string | URL): [string, AliasEntry][] {
  const tree = parseToml(file);
  const result = aliasFileSchema.safeParse(tree, EXPLAINABLE);
  if (result.success) {
    checkUnique(file, Object.keys(result.data.models));
    return Object.entries(result.data.models);
  }
  const problems = result.error.issues.map((issue) => `${fileName(file)}: ${explain(issue, tree)}.`);
  throw new ConfigError(problems.join("\n"));
}

function parseToml(file: string | URL): unknown {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (cause) {
    throw new ConfigError(`The alias file ${fileName(file)} cannot be read.`, { cause });
  }
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    throw new ConfigError(`${fileName(file)}, line ${error.line}: ${error.message.split("\n")[0]}`, {
      cause: error,
    });
  }
}

function checkUnique(file: string | URL, aliases: readonly string[]): void {
  const seen = new Map<string, string>();
  for (const alias of aliases) {
    const key = aliasKey(alias);
    const other = seen.get(key);
    if (other !== undefined)
      throw new ConfigError(`${fileName(file)}: "${other}" and "${alias}" are the same alias.`);
    seen.set(key, alias);
  }
}

function explain(issue: z.core.$ZodIssue, tree: unknown): string {
  if (issue.code === "unrecognized_keys") {
    return `unknown key ${issue.keys.map((key) => [...issue.path, key].join(".")).join(", ")}`;
  }
  const explained = explainIssue(issue, tree);
  return `${explained.path.join(".")}: ${issueText(explained)}`;
}

function fileName(file: string | URL): string {
  return file instanceof URL ? fileURLToPath(file) : file;
}
