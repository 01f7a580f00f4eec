import type { HubPeers } from "../cache/cached-files.ts";
import { isSha256, type RepoFile } from "../hub-types.ts";
import {
  HubAnswerFailure,
  HubHttpFailure,
  HubNetworkFailure,
  isContradiction,
  isTransient,
  StaleRemoteFailure,
} from "./hub-error.ts";
import { closeBody, httpFailure, type HubFetch, readStream, unquoteEtag } from "./hub-fetch.ts";

/** A file at one commit on the hub. */
export interface RemoteFile {
  readonly hub: HubFetch;
  readonly repo: string;
  readonly commit: string;
  readonly file: RepoFile;
}

/**
 * Reads one file from any offset: from other machines as far as they have it, then from the hub. Keeps the storage's
 * ETag across attempts, so that bytes of two versions are never mixed. After a failure of chunk storage (Xet) it uses
 * plain HTTP, which works for every file.
 *
 * Plain bodies are not read by the hub's library, because its blob accepts a 200 as the answer to a range request and
 * ignores Content-Range and ETag.
 */
export class BlobBody {
  readonly #remote: RemoteFile;
  readonly #peers: HubPeers | undefined;
  readonly #onMachine: (name: string) => void;
  readonly #fromHub: Set<string>;
  #usedPeers = false;
  #etag: string | undefined;
  #useXet: boolean;

  /** @param fromHub receives the digest when the hub is requested; the caller removes it */
  constructor(
    remote: RemoteFile,
    peers: HubPeers | undefined,
    onMachine: (name: string) => void,
    fromHub: Set<string>,
  ) {
    this.#remote = remote;
    this.#peers = peers;
    this.#onMachine = onMachine;
    this.#fromHub = fromHub;
    this.#useXet = remote.file.xet;
  }

  get usedPeers(): boolean {
    return this.#usedPeers;
  }

  /**
   * Yields the bytes from `offset` to the end of the file.
   * @throws StaleRemoteFailure if the bytes received so far are useless; HubHttpFailure; HubNetworkFailure
   */
  async *read(offset: number, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const { repo, file } = this.#remote;
    let position = offset;
    const shared = { repo, digest: file.digest, size: file.size };
    for await (const chunk of this.#peers?.read(shared, offset, this.#onMachine, signal) ?? []) {
      this.#usedPeers = true;
      position += chunk.length;
      yield chunk;
    }
    if (position === file.size) return;
    this.#fromHub.add(file.digest.hex);
    if (!this.#useXet) {
      yield* this.#readPlain(position, signal);
      return;
    }
    try {
      yield* this.#readXet(position, signal);
    } catch (error) {
      signal.throwIfAborted();
      this.#useXet = false;
      // These failures would be the same over plain HTTP.
      if (error instanceof HubHttpFailure || isTransient(error) || isContradiction(error)) throw error;
      throw new HubNetworkFailure("chunk storage failed", { cause: error });
    }
  }

  async *#readXet(offset: number, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const { downloadFile, fileDownloadInfo } = await import("@huggingface/hub");
    const { hub, repo, commit, file } = this.#remote;
    const target = { repo, path: encodeRepoPath(file.path), revision: commit, hubUrl: hub.url };
    const infoRequest = new AbortController();
    const downloadInfo = await fileDownloadInfo({
      ...target,
      fetch: hub.asFetch(AbortSignal.any([signal, infoRequest.signal])),
    }).finally(() => {
      // The library does not read the body of its request; this closes the connection.
      infoRequest.abort();
    });
    if (downloadInfo?.xet === undefined) {
      this.#useXet = false;
      yield* this.#readPlain(offset, signal);
      return;
    }
    if (downloadInfo.size !== file.size) throw new StaleRemoteFailure("its size differs from its listing");
    checkLinkedEtag(unquoteEtag(downloadInfo.etag), file);
    const blob = await downloadFile({ ...target, downloadInfo, fetch: hub.asFetch(signal) });
    if (blob === null) throw new HubNetworkFailure("the hub has no such file");
    yield* readStream(blob.slice(offset).stream());
  }

  async *#readPlain(offset: number, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const { hub, repo, commit, file } = this.#remote;
    const address = `${hub.url}/${repo}/resolve/${commit}/${encodeRepoPath(file.path)}`;
    // A compressed body would have another length and other offsets than the file.
    const headers: Record<string, string> = { "accept-encoding": "identity" };
    if (offset > 0) headers["range"] = `bytes=${offset}-`;
    const { response, fromHub, linkedEtag } = await hub.request(address, { headers, signal });
    try {
      if (!response.ok) {
        if (response.status === 416)
          throw new StaleRemoteFailure("the file is shorter than the part downloaded");
        throw await httpFailure(response, fromHub);
      }
      checkLinkedEtag(linkedEtag, file);
      this.#checkEtag(response.headers.get("etag"), offset);
      checkRange(response, offset, file.size);
      if (response.body === null) throw new HubNetworkFailure("an answer without a body");
    } catch (error) {
      await closeBody(response);
      throw error;
    }
    yield* readStream(response.body);
  }

  #checkEtag(header: string | null, offset: number): void {
    // A weak ETag does not guarantee the same bytes.
    if (header === null || header.startsWith("W/")) return;
    const before = this.#etag;
    this.#etag = header;
    if (offset > 0 && before !== undefined && before !== header)
      throw new StaleRemoteFailure("the ETag changes between two parts of the download");
  }
}

function checkLinkedEtag(etag: string | undefined, file: RepoFile): void {
  if (etag !== undefined && isSha256(etag) && file.digest.algorithm === "sha256" && etag !== file.digest.hex)
    throw new StaleRemoteFailure("its hash differs from its listing");
}

function checkRange(response: Response, offset: number, size: number): void {
  if (response.status === 206) {
    const range = response.headers.get("content-range") ?? "none";
    const match = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(range);
    const total = match?.[3] === "*" ? size : Number(match?.[3]);
    if (Number(match?.[1]) !== offset || Number(match?.[2]) !== size - 1 || total !== size)
      throw contradiction(`asked for bytes ${offset}-${size - 1}/${size}, it sent ${range}`);
  } else if (offset > 0) {
    throw new StaleRemoteFailure("it sends the whole file instead of the rest");
  }
  const length = response.headers.get("content-length");
  if (length !== null && Number(length) !== size - offset)
    throw contradiction(`where ${size - offset} bytes are left of the file, it promises ${length}`);
}

function contradiction(message: string): HubAnswerFailure {
  return new HubAnswerFailure(message, { mayDiffer: true });
}

function encodeRepoPath(path: string): string {
  return path.split("/").map(encodeURIComponent).join("/");
}
