/**
 * What the hub says a file's content must hash to. The hub names the blob of a large file by the SHA-256 of its
 * content (the LFS object id), that of a small one by its git object id.
 */
export interface BlobDigest {
  readonly algorithm: "sha256" | "git-sha1";
  /** Lower-case hexadecimal; also the name of the blob in the cache. */
  readonly hex: string;
}

/** One file of a repository at one commit, as the hub lists it; every part has been checked. */
export interface RepoFile {
  /** Path inside the repository, with `/` between its parts. */
  readonly path: string;
  readonly size: number;
  readonly digest: BlobDigest;
  /** The hub can serve it from chunk storage; plain HTTP works too. */
  readonly xet: boolean;
}

/** A repository at one commit. */
export interface RepoListing {
  /** owner/repository */
  readonly repo: string;
  /** 40 hexadecimal digits. */
  readonly commit: string;
  readonly files: readonly RepoFile[];
}

const SHA256 = /^[0-9a-f]{64}$/;
const SHA1 = /^[0-9a-f]{40}$/;

export function isSha256(text: string): boolean {
  return SHA256.test(text);
}

/** True for a full git object id, the only form of a commit that becomes a folder's name. */
export function isCommit(text: string): boolean {
  return SHA1.test(text);
}
