import type { BlobDigest, RepoListing } from "./hub-store.ts";

/** A file of the hub that other machines may have, too. */
export interface SharedFile {
  /** owner/repository */
  readonly repo: string;
  readonly digest: BlobDigest;
  readonly size: number;
}

/** A repository as another machine has it. */
export interface PeerListing {
  /** Name of the machine. */
  readonly machine: string;
  readonly listing: RepoListing;
}

/** Other machines, which may have what the hub has. What they send is checked like everything that is downloaded. */
export interface HubPeers {
  /**
   * Yields the bytes of a file from `offset` on, of whichever machines have it; ends early when none can go on.
   * @param onMachine called with the name of each machine that sends some
   * @throws the signal's reason
   */
  read(
    file: SharedFile,
    offset: number,
    onMachine: (name: string) => void,
    signal: AbortSignal,
  ): AsyncIterable<Uint8Array>;
  /**
   * What other machines have of a repository, for when the hub cannot be asked.
   * @param revision branch, tag or commit
   */
  list(repo: string, revision: string, signal: AbortSignal): Promise<readonly PeerListing[]>;
}
