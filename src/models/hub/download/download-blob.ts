import { stat } from "node:fs/promises";
import { ServiceError } from "../../../errors/service-error.ts";
import { type FreeSpace, removeFile } from "../../../files/file-operations.ts";
import type { Claim, FolderLock } from "../../../files/locks.ts";
import type { HubPeers } from "../cache/cached-files.ts";
import type { RepoCache } from "../cache/repo-cache.ts";
import type { RepoFile } from "../hub-types.ts";
import { HubAnswerFailure, HubNetworkFailure, StaleRemoteFailure } from "../remote/hub-error.ts";
import { BlobBody, type RemoteFile } from "../remote/remote-body.ts";
import type { HubFetch } from "../remote/hub-fetch.ts";
import { BackOff, type Sleep } from "../remote/retry.ts";
import { PartFile } from "./part-file.ts";
import type { OnDownloadEvent, SharedDownloads } from "./shared-downloads.ts";

/** Shared by all downloads of a store. */
export interface PullTools {
  readonly hub: HubFetch;
  readonly sleep: Sleep;
  readonly measureSpace: FreeSpace;
  readonly stallTimeoutMs: number | undefined;
  readonly downloads: SharedDownloads;
  /** Other machines that may have files; undefined: there are none. */
  readonly peers: HubPeers | undefined;
  /** Digests of the files that the hub is sending at the moment. */
  readonly fromHub: Set<string>;
  /** Lock on the cache folder, held while blobs are linked or removed. */
  readonly lock: FolderLock;
}

/** Time between checks if another process has finished the same download. */
const POLL_INTERVAL_MS = 500;
/** Period after which a connection that has delivered less than the minimum rate is reopened. */
const STALL_TIMEOUT_MS = 60_000;
const MIN_BYTES_PER_SECOND = 1024;

interface BlobDownload extends PullTools {
  readonly remote: RemoteFile;
  readonly cache: RepoCache;
  readonly report: OnDownloadEvent;
}

/**
 * Downloads one blob into the cache: resumes a partial download, survives disconnects, checks the digest and only then
 * renames the file. Waits if another process is downloading the same blob.
 * @throws ServiceError checksum_mismatch; a failure of hub-error.ts; the signal's reason; errors of the disk
 */
export async function downloadBlob(download: BlobDownload, signal: AbortSignal): Promise<void> {
  const { cache, remote } = download;
  await using ownership = await lockBlob(download, signal);
  if (ownership === undefined || (await hasBlob(cache, remote.file))) return;
  const first = await fetchAndVerify(download, signal);
  if (first.verified) return;
  // A part from an earlier run or from other machines may be corrupt, so it is retried once from the hub alone.
  const mayBeCorrupt = first.resumed || first.usedPeers;
  if (mayBeCorrupt && (await fetchAndVerify({ ...download, peers: undefined }, signal)).verified) return;
  throw mismatch(remote);
}

/** True if the file is complete in the cache. */
export async function hasBlob(cache: RepoCache, { digest, size }: RepoFile): Promise<boolean> {
  return await cache.isComplete(cache.blob(digest.hex), size);
}

/** Returns the bytes of a file's unfinished download. */
export async function partSize(cache: RepoCache, { digest }: RepoFile): Promise<number> {
  const info = await stat(cache.part(digest.hex)).catch(() => undefined);
  return info?.size ?? 0;
}

/** Waits for the lock on a blob, which one process holds at a time; undefined if another process has finished it. */
async function lockBlob(
  { remote: { file }, cache, lock, sleep, report }: BlobDownload,
  signal: AbortSignal,
): Promise<Claim | undefined> {
  for (;;) {
    signal.throwIfAborted();
    const ownership = await lock.claim(cache.lock(file.digest.hex));
    if (ownership) return ownership;
    if (await hasBlob(cache, file)) return undefined;
    report(await partSize(cache, file));
    await sleep(POLL_INTERVAL_MS, signal);
  }
}

async function fetchAndVerify(
  download: BlobDownload,
  signal: AbortSignal,
): Promise<{ resumed: boolean; usedPeers: boolean; verified: boolean }> {
  const { cache, remote, report, peers, fromHub } = download;
  const { hex } = remote.file.digest;
  await using part = await PartFile.open(cache.part(hex), remote.file, report, signal);
  const resumed = part.received > 0;
  const body = new BlobBody(
    remote,
    peers,
    (machine) =>
      report({ status: "noted", text: `${remote.file.path} comes from ${machine}, a machine of the fleet` }),
    fromHub,
  );
  try {
    await fillPart(part, body, download, signal);
    const verified = await part.matches();
    await (verified ? part.moveTo(cache.blob(hex)) : part.discard());
    return { resumed, usedPeers: body.usedPeers, verified };
  } finally {
    // Only removed now, because other machines read the part until its last byte.
    fromHub.delete(hex);
  }
}

/** Downloads until the file is complete; each attempt resumes where the last one ended. */
async function fillPart(
  part: PartFile,
  body: BlobBody,
  download: BlobDownload,
  signal: AbortSignal,
): Promise<void> {
  const { sleep, report } = download;
  const backOff = new BackOff({ sleep, onRetry: report });
  let maxReceived = part.received;
  while (!part.complete) {
    try {
      await readRemaining(part, body, download, signal);
    } catch (error) {
      if (error instanceof StaleRemoteFailure) await part.restart();
      // Receiving the same bytes again is no progress, or a server that always disconnects at one position would be
      // retried forever. Neither is a trickle from a stalled connection.
      const isStall = error instanceof HubNetworkFailure && error.isStall;
      if (part.received > maxReceived && !isStall) backOff.progress();
      maxReceived = Math.max(maxReceived, part.received);
      await backOff.wait(error, signal);
    }
  }
  report(part.received);
}

async function readRemaining(
  part: PartFile,
  body: BlobBody,
  { remote, report, stallTimeoutMs = STALL_TIMEOUT_MS }: BlobDownload,
  signal: AbortSignal,
): Promise<void> {
  const stall = new AbortController();
  const minBytes = Math.ceil((MIN_BYTES_PER_SECOND * stallTimeoutMs) / 1000);
  let receivedBefore = part.received;
  const timer = setInterval(() => {
    const arrived = part.received - receivedBefore;
    receivedBefore = part.received;
    if (arrived < minBytes) stall.abort(stalled(arrived, stallTimeoutMs));
  }, stallTimeoutMs);
  try {
    for await (const chunk of body.read(part.received, AbortSignal.any([signal, stall.signal]))) {
      if (part.received + chunk.length > remote.file.size)
        throw new StaleRemoteFailure("more bytes arrived than the file has");
      await part.append(chunk);
      report(part.received);
    }
  } catch (error) {
    signal.throwIfAborted();
    throw stall.signal.aborted ? stall.signal.reason : error;
  } finally {
    clearInterval(timer);
  }
  if (!part.complete) throw new HubAnswerFailure("the file ends too early", { mayDiffer: true });
}

function stalled(bytes: number, inMs: number): HubNetworkFailure {
  const amount = bytes === 0 ? "nothing" : `only ${bytes} bytes`;
  return new HubNetworkFailure(`${amount} arrived in ${Math.round(inMs / 1000)} s`, { isStall: true });
}

function mismatch({ repo, file }: RemoteFile): ServiceError {
  return new ServiceError(
    "checksum_mismatch",
    `${file.path} of ${repo} does not have the ${file.digest.algorithm === "sha256" ? "SHA-256" : "git object id"} that the hub announces (${file.digest.hex}); the download was deleted.`,
  );
}

/** Wait for the lock of a pull that was just aborted and is closing its file; a running download holds it longer. */
const MAX_CLOSING_MS = 3000;
const DISCARD_POLL_INTERVAL_MS = 100;

/**
 * Removes the unfinished downloads of files.
 * @returns bytes removed
 * @throws ServiceError model_busy while one of them is being downloaded
 */
export async function discardParts(
  cache: RepoCache,
  files: readonly RepoFile[],
  { lock, sleep }: Pick<PullTools, "lock" | "sleep">,
  signal: AbortSignal,
): Promise<number> {
  let freed = 0;
  for (const file of files) {
    const size = await partSize(cache, file);
    if (size === 0) continue;
    await using ownership = await lockSoon(cache.lock(file.digest.hex), lock, sleep, signal);
    if (ownership === undefined)
      throw new ServiceError(
        "model_busy",
        `${file.path} of ${cache.repo} is being downloaded by another client; pause that download first.`,
      );
    await removeFile(cache.part(file.digest.hex));
    freed += size;
  }
  return freed;
}

async function lockSoon(
  file: string,
  lock: PullTools["lock"],
  sleep: PullTools["sleep"],
  signal: AbortSignal,
): Promise<Claim | undefined> {
  for (let waited = 0; ; waited += DISCARD_POLL_INTERVAL_MS) {
    const ownership = await lock.claim(file);
    if (ownership || waited >= MAX_CLOSING_MS) return ownership;
    await sleep(DISCARD_POLL_INTERVAL_MS, signal);
  }
}
