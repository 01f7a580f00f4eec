import { stat } from "node:fs/promises";
import { ServiceError } from "../../../errors/service-error.ts";
import { removeFile } from "../../../files/file-operations.ts";
import type { Ownership } from "../../../files/locks.ts";
import type { RepoCache } from "../cache/repo-cache.ts";
import type { RepoFile } from "../hub-store.ts";
import { HubAnswerFailure, HubNetworkFailure, StaleRemoteFailure } from "../remote/hub-error.ts";
import { BlobBody, type RemoteFile } from "../remote/remote-body.ts";
import { BackOff } from "../remote/retry.ts";
import { PartFile } from "./part-file.ts";
import type { DownloadListener } from "./shared-downloads.ts";
import type { PullTools } from "./snapshot-pull.ts";

/** How often a waiting process checks whether the owner has finished or ended. */
const LOOK_MS = 500;
/** A connection that delivers less than this in this time is closed and reopened. */
const STALL_TIMEOUT_MS = 60_000;
const SLOWEST_BYTES_PER_SECOND = 1024;

interface BlobDownload extends Pick<PullTools, "lock" | "sleep" | "stallTimeoutMs" | "peers" | "fromHub"> {
  readonly remote: RemoteFile;
  readonly cache: RepoCache;
  readonly report: DownloadListener;
}

/**
 * Downloads one blob into the cache: resumes a partial download, survives disconnects, checks the digest and only then
 * renames the file. Waits if another process is downloading the same blob.
 * @throws ServiceError checksum_mismatch; a failure of hub-error.ts; the signal's reason; what the disk says.
 */
export async function downloadBlob(download: BlobDownload, signal: AbortSignal): Promise<void> {
  const { cache, remote } = download;
  await using ownership = await ownBlob(download, signal);
  if (ownership === undefined || (await hasBlob(cache, remote.file))) return;
  const first = await fetchAndVerify(download, signal);
  if (first.verified) return;
  // The part from an earlier run may be wrong, and so may what other machines sent, so retry once without them.
  const mayDiffer = first.resumed || first.usedPeers;
  if (mayDiffer && (await fetchAndVerify({ ...download, peers: undefined }, signal)).verified) return;
  throw mismatch(remote);
}

/** Whether the file is complete in the cache. */
export async function hasBlob(cache: RepoCache, { digest, size }: RepoFile): Promise<boolean> {
  return await cache.isWhole(cache.blob(digest.hex), size);
}

/** Bytes of a file's unfinished download. */
export async function partSize(cache: RepoCache, { digest }: RepoFile): Promise<number> {
  const info = await stat(cache.part(digest.hex)).catch(() => undefined);
  return info?.size ?? 0;
}

/** Waits for the lock on a blob, which one process holds at a time; undefined if another has finished it. */
async function ownBlob(
  { remote: { file }, cache, lock, sleep, report }: BlobDownload,
  signal: AbortSignal,
): Promise<Ownership | undefined> {
  for (;;) {
    signal.throwIfAborted();
    const ownership = await lock.own(cache.lock(file.digest.hex));
    if (ownership) return ownership;
    if (await hasBlob(cache, file)) return undefined;
    report.onBytes(await partSize(cache, file));
    await sleep(LOOK_MS, signal);
  }
}

async function fetchAndVerify(
  download: BlobDownload,
  signal: AbortSignal,
): Promise<{ resumed: boolean; usedPeers: boolean; verified: boolean }> {
  const { cache, remote, report, peers, fromHub } = download;
  const { hex } = remote.file.digest;
  const part = await PartFile.open(cache.part(hex), remote.file, report.onBytes, signal);
  const resumed = part.received > 0;
  const body = new BlobBody(remote, peers, report.onMachine, fromHub);
  let settled = false;
  try {
    await fill(part, body, download, signal);
    const verified = await part.matches();
    settled = true;
    await (verified ? part.moveTo(cache.blob(hex)) : part.discard());
    return { resumed, usedPeers: body.usedPeers, verified };
  } finally {
    if (!settled) await part[Symbol.asyncDispose]();
    // Not before: other machines follow it up to its last byte.
    fromHub.delete(hex);
  }
}

/** Fetches until every byte is there; each attempt resumes where the last one ended. */
async function fill(
  part: PartFile,
  body: BlobBody,
  download: BlobDownload,
  signal: AbortSignal,
): Promise<void> {
  const { sleep, report } = download;
  const backOff = new BackOff({ sleep, onRetry: report.onRetry });
  let furthest = part.received;
  while (!part.complete) {
    try {
      await readRest(part, body, download, signal);
    } catch (error) {
      if (error instanceof StaleRemoteFailure) await part.restart();
      // Receiving the same bytes again is not progress, or a server that always disconnects there would be retried
      // forever; nor is a trickle from a connection that was given up.
      const isStall = error instanceof HubNetworkFailure && error.isStall;
      if (part.received > furthest && !isStall) backOff.progress();
      furthest = Math.max(furthest, part.received);
      await backOff.wait(error, signal);
    }
  }
  report.onBytes(part.received);
}

async function readRest(
  part: PartFile,
  body: BlobBody,
  { remote, report, stallTimeoutMs = STALL_TIMEOUT_MS }: BlobDownload,
  signal: AbortSignal,
): Promise<void> {
  const stall = new AbortController();
  const enough = Math.ceil((SLOWEST_BYTES_PER_SECOND * stallTimeoutMs) / 1000);
  let receivedBefore = part.received;
  const timer = setInterval(() => {
    const arrived = part.received - receivedBefore;
    receivedBefore = part.received;
    if (arrived < enough) stall.abort(stalled(arrived, stallTimeoutMs));
  }, stallTimeoutMs);
  try {
    for await (const chunk of body.read(part.received, AbortSignal.any([signal, stall.signal]))) {
      if (part.received + chunk.length > remote.file.size)
        throw new StaleRemoteFailure("more bytes arrived than the file has");
      await part.append(chunk);
      report.onBytes(part.received);
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

/** A pull that has just been paused still closes its file; a download that goes on keeps it for longer. */
const CLOSING_MS = 3000;
const DISCARD_PARTS_LOOK_MS = 100;

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
    await using ownership = await ownSoon(cache.lock(file.digest.hex), lock, sleep, signal);
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

async function ownSoon(
  file: string,
  lock: PullTools["lock"],
  sleep: PullTools["sleep"],
  signal: AbortSignal,
): Promise<Ownership | undefined> {
  for (let waited = 0; ; waited += DISCARD_PARTS_LOOK_MS) {
    const ownership = await lock.own(file);
    if (ownership || waited >= CLOSING_MS) return ownership;
    await sleep(DISCARD_PARTS_LOOK_MS, signal);
  }
}
