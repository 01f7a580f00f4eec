import { homeFolder } from "../../launch/home-folder.mjs";
import { type AliasEntry, aliasKey, type AliasTable } from "./alias-table.ts";
import { HUB_PREFIX, type HubSpec, parseHubSpec, splitRevision } from "./hub-spec.ts";
import {
  canonical,
  isGguf,
  isQuantization,
  quantizationOf,
  withoutQuantization,
} from "./model-file-names.ts";
import { hasInvisible, invalidName, isDeviceName, isModelName, isRevision } from "./name-rules.ts";

/** Meaning of a name by its form and the alias table, without looking it up on disk or on the hub. */
export type ResolvedName =
  /** Alias of configs/models.toml or the user's alias file. */
  | {
      readonly kind: "alias";
      readonly name: string;
      readonly spec: HubSpec;
      /** Projector file in the same repository; "auto" for an alias with the tag vision and no projector. */
      readonly projector: string | undefined;
    }
  | { readonly kind: "spec"; readonly spec: HubSpec }
  /** File path with a leading `~` expanded; a relative one starts at the daemon's working directory. */
  | { readonly kind: "path"; readonly path: string }
  /** Well-formed name that is no alias: that of a shipped or created model or one loaded by path, or of none. */
  | { readonly kind: "name"; readonly name: string };

/** Maximum length of a name, above that of any path or hub spec. */
const MAX_NAME_LENGTH = 1024;
const LATEST = ":latest";

const THIS_MACHINE: PathContext = { platform: process.platform, home: homeFolder() };

/** Resolves names by an alias table. */
export class NameResolver {
  readonly #aliases: AliasTable;
  readonly #paths: PathContext;
  readonly #byKey: ReadonlyMap<string, { readonly alias: string; readonly entry: AliasEntry }>;

  constructor(aliases: AliasTable, paths: PathContext = THIS_MACHINE) {
    this.#aliases = aliases;
    this.#paths = paths;
    this.#byKey = new Map([...aliases].map(([alias, entry]) => [aliasKey(alias), { alias, entry }]));
  }

  /**
   * Resolves a name. It is tried as, in this order, a hub spec (`hf:`), a path, an alias, an alias with a quantization
   * (`llama3.2:1b-q8`), and the name of a shipped or created model or one loaded by path. `name:latest` means `name`. An
   * alias with `@revision` means its hub spec at that revision. Throws invalid_model_name.
   */
  resolve(name: string): ResolvedName {
    if (name.length > MAX_NAME_LENGTH)
      throw invalidName(name, `it is longer than ${MAX_NAME_LENGTH} characters`);
    if (name.startsWith(HUB_PREFIX)) return { kind: "spec", spec: parseHubSpec(name) };
    if (looksLikePath(name)) return { kind: "path", path: parseFilePath(name, this.#paths) };
    return this.#resolvePlain(name);
  }

  /** Returns the first alias of this file of this repository at its main revision. */
  aliasOf(repo: string, file: string): string | undefined {
    const wanted = file.toLowerCase();
    const ofRepo = [...this.#aliases].filter(([, entry]) => entry.repo === repo);
    const exact = ofRepo.find(([, entry]) => entry.file.toLowerCase() === wanted);
    if (exact) return exact[0];
    const quant = quantizationOf(file);
    const plain = withoutQuantization(wanted);
    const variant = ofRepo.find(([, entry]) => withoutQuantization(entry.file.toLowerCase()) === plain);
    return variant && quant && `${variant[0]}-${quant.toLowerCase()}`;
  }

  #resolvePlain(name: string): ResolvedName {
    const { name: unversioned, revision } = splitRevision(name);
    const plain = stripLatest(checkPlainName(unversioned, name));
    const found = this.#findAlias(plain);
    if (revision === undefined) return found ?? { kind: "name", name: plain };
    if (!isRevision(revision)) throw invalidName(name, "behind @ comes the name of a branch, tag or commit");
    if (found?.kind !== "alias") throw invalidName(name, "only an alias or a hub spec can have a revision");
    return { kind: "spec", spec: { ...found.spec, revision } };
  }

  #findAlias(name: string): ResolvedName | undefined {
    const exact = this.#byKey.get(aliasKey(name));
    if (exact) return aliasOfEntry(exact.alias, exact.entry, undefined);
    for (let at = name.indexOf("-"); at !== -1; at = name.indexOf("-", at + 1)) {
      const base = this.#byKey.get(aliasKey(name.slice(0, at)));
      const quant = name.slice(at + 1);
      if (base && isQuantization(quant)) return aliasOfEntry(base.alias, base.entry, canonical(quant));
    }
    return undefined;
  }
}

function aliasOfEntry(alias: string, entry: AliasEntry, quant: string | undefined): ResolvedName {
  const [owner = "", repo = ""] = entry.repo.split("/");
  const isDefault = quant === undefined || quant === quantizationOf(entry.file);
  const spec: HubSpec = isDefault ? { owner, repo, file: entry.file } : { owner, repo, quant };
  return {
    kind: "alias",
    name: isDefault ? alias : `${alias}-${quant.toLowerCase()}`,
    spec,
    projector: entry.mmproj ?? (entry.tags.includes("vision") ? "auto" : undefined),
  };
}

/** Returns a valid `name` or `name:tag`. @throws ServiceError invalid_model_name */
function checkPlainName(unversioned: string, name: string): string {
  if (isModelName(unversioned)) return unversioned;
  if (name === "") throw invalidName(name, "it is empty");
  if (/^[A-Za-z]+:\/\//.test(name)) {
    throw invalidName(name, "it is an address; a repository of the hub is written hf:owner/repository");
  }
  if (/^[\w.-]+\/[\w.-]+/.test(name)) {
    throw invalidName(
      name,
      `a repository of the hub is written hf:owner/repository, a path begins with ./ or /`,
    );
  }
  if (unversioned.split(":").some(isDeviceName))
    throw invalidName(name, "Windows keeps this name for a device");
  throw invalidName(
    name,
    "a name begins with a letter or digit, has letters, digits and . _ - only, and may have a tag behind a colon",
  );
}

function stripLatest(name: string): string {
  return name.endsWith(LATEST) ? name.slice(0, -LATEST.length) : name;
}

interface PathContext {
  readonly platform: NodeJS.Platform;
  /** Home folder of the daemon's account; undefined: it has none. */
  readonly home: string | undefined;
}

/** Start of a path: `/`, `./`, `../`, `~`, a drive letter with a separator, or a backslash. */
const PATH_START = /^(?:[/\\~]|\.\.?(?:[/\\]|$)|[A-Za-z]:[/\\])/;
const DRIVE = /^[A-Za-z]:[/\\]/;
/** Percent-encoded separators, dots and NUL, including doubly encoded ones. */
const PERCENT_ENCODED = /%(?:00|2e|2f|5c|25)/i;

/** Names of model files in Ollama's store, which it prints in Modelfiles. */
const OLLAMA_BLOB = /[/\\]sha256-[0-9a-f]{64}$/;

/** True if a name has the form of a path, allowed or not. */
export function looksLikePath(name: string): boolean {
  return PATH_START.test(name) || isGguf(name);
}

/**
 * Parses a name that has the form of a path. A leading `~/` is expanded; nothing else is changed. The code that opens
 * the path checks if its folder is allowed. Throws `invalid_model_name`.
 */
export function parseFilePath(name: string, { platform, home }: PathContext = THIS_MACHINE): string {
  const isWindows = platform === "win32";
  if (hasInvisible(name)) throw invalidName(name, "a path must not have invisible characters");
  if (PERCENT_ENCODED.test(name))
    throw invalidName(name, "a path is written plainly, without percent encoding");
  if (/^[/\\]{2}/.test(name)) throw invalidName(name, "network paths are not allowed");
  if (/^[A-Za-z]:(?![/\\])/.test(name)) throw invalidName(name, "behind a drive letter comes a separator");
  if (!isWindows && name.includes("\\"))
    throw invalidName(name, "on this system paths have / between their parts");
  if (!isWindows && DRIVE.test(name)) throw invalidName(name, "there are no drive letters on this system");
  if (isWindows && name.replace(DRIVE, "").includes(":")) {
    throw invalidName(name, "a path has a colon behind its drive letter only");
  }
  if (name.startsWith("~") && !/^~[/\\]/.test(name)) {
    throw invalidName(name, "~ stands for the daemon's own home folder only");
  }
  if (!isGguf(name) && !OLLAMA_BLOB.test(name)) throw invalidName(name, "a path must end in .gguf");
  if (isDeviceName(name.split(/[/\\]/).at(-1) ?? "")) throw invalidName(name, "it is the name of a device");
  if (!name.startsWith("~")) return name;
  if (home === undefined) throw invalidName(name, "the daemon's account has no home folder");
  return home + name.slice(1);
}
