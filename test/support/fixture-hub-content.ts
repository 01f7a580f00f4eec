import { createHash } from "node:crypto";

/** A file of the fixture hub. A string or bytes alone stand for `{ content }`. */
export interface FixtureFile {
  readonly content: Uint8Array | string;
  /** Stored as a large file (default) and served by redirect to the storage server, or in git and served by the hub. */
  readonly lfs?: boolean;
  /** Also offered from chunk storage. */
  readonly xet?: boolean;
  /** Wrong digest that the hub claims. */
  readonly claimedSha256?: string;
  readonly claimedSize?: number;
}

/** Metadata of a repository; absent fields are left out of its answers. */
interface FixtureInfo {
  readonly downloads?: number;
  readonly likes?: number;
  /** ISO 8601. */
  readonly lastModified?: string;
  readonly pipeline_tag?: string;
  /** Metadata that the hub has read from a GGUF file. */
  readonly gguf?: { readonly total: number; readonly architecture: string; readonly context_length: number };
}

export interface FixtureRepo {
  readonly info?: FixtureInfo;
  readonly files: Readonly<Record<string, FixtureFile | Uint8Array | string>>;
  /** Commit of `main`; absent: made from the files. */
  readonly commit?: string;
  /** Further branches and tags, each a commit of the same files. */
  readonly refs?: Readonly<Record<string, string>>;
  /** Tokens that may download; absent: everybody may. The listing stays public, as on the real hub. */
  readonly gatedTo?: readonly string[];
  /** Tokens that may know that the repository exists; absent: everybody may. */
  readonly privateTo?: readonly string[];
}

/** A file as the hub holds it. */
export interface StoredFile {
  readonly path: string;
  readonly bytes: Buffer;
  readonly size: number;
  readonly lfs: boolean;
  readonly xet: boolean;
  /** SHA-256, or what the hub claims it to be. */
  readonly sha256: string;
  /** Git object id. */
  readonly oid: string;
}

export interface StoredRepo {
  readonly name: string;
  readonly commit: string;
  readonly revisions: ReadonlyMap<string, string>;
  readonly files: ReadonlyMap<string, StoredFile>;
  readonly gatedTo: readonly string[] | undefined;
  readonly privateTo: readonly string[] | undefined;
  readonly info: FixtureInfo;
}

export function sha256(bytes: Uint8Array | string): string {
  return createHash("sha256").update(bytes).digest("hex");
}

function gitObjectId(bytes: Uint8Array): string {
  return createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex");
}

export function storeRepo(name: string, repo: FixtureRepo): StoredRepo {
  const files = new Map<string, StoredFile>();
  for (const [path, entry] of Object.entries(repo.files)) files.set(path, storeFile(path, entry));
  const digests = [...files.values()].map((file) => file.oid).join();
  const commit = repo.commit ?? createHash("sha1").update(digests).digest("hex");
  const named = new Map([["main", commit], ["HEAD", commit], ...Object.entries(repo.refs ?? {})]);
  const revisions = new Map([...named, ...[...named.values()].map((id) => [id, id] as const)]);
  const { gatedTo, privateTo, info = {} } = repo;
  return { name, commit, revisions, files, gatedTo, privateTo, info };
}

function storeFile(path: string, entry: FixtureFile | Uint8Array | string): StoredFile {
  const file = typeof entry === "string" || entry instanceof Uint8Array ? { content: entry } : entry;
  const bytes = Buffer.from(file.content);
  return {
    path,
    bytes,
    size: file.claimedSize ?? bytes.length,
    lfs: file.lfs ?? true,
    xet: file.xet ?? false,
    sha256: file.claimedSha256 ?? sha256(bytes),
    oid: gitObjectId(bytes),
  };
}
