import { ServiceError } from "../../../errors/service-error.ts";
import type { HubRetry } from "../../model.ts";
import type { FolderLock, Ownership } from "../../../files/folder-lock.ts";
import { HubAnswerFailure, HubNetworkFailure, StaleRemoteFailure } from "../remote/hub-error.ts";
import { PartFile } from "./part-file.ts";
import { RemoteBody, type RemoteFile } from "../remote/remote-body.ts";
import { BackOff, type Sleep } from "../remote/retry.ts";

/** A connection that brings less than this much in so long is given up and opened anew. */
const STALL_TIMEOUT_MS = 60_000;
const SLOWEST_BYTES_PER_SECOND = 1024;

export interface BlobDownload {
  readonly remote: RemoteFile;
  readonly blobPath: string;
  readonly partPath: string;
  /** Of the cache folder. */
  readonly folder: FolderLock;
  readonly lockPath: string;
  readonly sleep: Sleep;
  readonly stallTimeoutMs?: number | undefined;
  /** Bytes of this blob on disk so far. */
  readonly onBytes: (received: number) => void;
  /** Told before each wait for a hub that does not deliver. */
  readonly onRetry: (retry: HubRetry) => void;
  /** True when the blob lies complete in the cache. */
  readonly isPresent: () => Promise<boolean>;
  /** Size of the unfinished file while another process works on it. */
  readonly partSize: () => Promise<number>;
}

/**
 * Downloads one blob into the cache: goes on from what is there, survives cuts, checks the digest and only then
 * gives the file its name. Another process at the same blob is waited for.
 * @throws ServiceError checksum_mismatch; HubFailure; the signal's reason; what the disk says.
 */
export async function downloadBlob(download: BlobDownload, signal: AbortSignal): Promise<void> {
  await using lock = await acquireBlobLock(download.lockPath, {
    folder: download.folder,
    sleep: download.sleep,
    signal,
    onWait: async () => {
      if (await download.isPresent()) return true;
      download.onBytes(await download.partSize());
      return false;
    },
  });
  if (lock === undefined || (await download.isPresent())) return;
  // A part from an earlier run may be what is wrong, so it gets one more try without it.
  if (!(await attempt(download, signal))) throw mismatch(download.remote);
}

async function attempt(download: BlobDownload, signal: AbortSignal): Promise<boolean> {
  const { resumed, verified } = await fetchAndVerify(download, signal);
  if (verified || !resumed) return verified;
  return (await fetchAndVerify(download, signal)).verified;
}

async function fetchAndVerify(
  download: BlobDownload,
  signal: AbortSignal,
): Promise<{ resumed: boolean; verified: boolean }> {
  const part = await PartFile.open(download.partPath, download.remote.file, download.onBytes, signal);
  const resumed = part.received > 0;
  let settled = false;
  try {
    await fill(part, download, signal);
    const verified = await part.matches();
    settled = true;
    await (verified ? part.moveTo(download.blobPath) : part.discard());
    return { resumed, verified };
  } finally {
    if (!settled) await part[Symbol.asyncDispose]();
  }
}

/** Fetches until every byte is there; each attempt goes on where the last one broke off. */
async function fill(part: PartFile, download: BlobDownload, signal: AbortSignal): Promise<void> {
  const { onBytes } = download;
  const body = new RemoteBody(download.remote);
  const backOff = new BackOff(download);
  let furthest = part.received;
  while (!part.complete) {
    try {
      await readRest(part, body, download, signal);
    } catch (error) {
      if (error instanceof StaleRemoteFailure) await part.restart();
      // Going over the same ground again is no progress, or a server that always breaks off there would never be left;
      // nor are the drops of one that was given up.
      const isStall = error instanceof HubNetworkFailure && error.isStall;
      if (part.received > furthest && !isStall) backOff.progress();
      furthest = Math.max(furthest, part.received);
      await backOff.wait(error, signal);
    }
  }
  onBytes(part.received);
}

async function readRest(
  part: PartFile,
  body: RemoteBody,
  { remote, onBytes, stallTimeoutMs = STALL_TIMEOUT_MS }: BlobDownload,
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
        throw new StaleRemoteFailure("more bytes arrive than the file has");
      await part.append(chunk);
      onBytes(part.received);
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

/** How often a waiter looks whether the owner has finished or is gone. */
const LOOK_MS = 500;

export interface BlobLockOptions {
  readonly folder: FolderLock;
  readonly sleep: Sleep;
  readonly signal: AbortSignal;
  /**
   * Called at every look while another owner works; when it returns true the wait is over without a lock, because
   * there is nothing left to do.
   */
  readonly onWait: () => Promise<boolean>;
}

/** Waits for the right to write one blob, which one process has at a time. */
export async function acquireBlobLock(
  lockPath: string,
  { folder, sleep, signal, onWait }: BlobLockOptions,
): Promise<Ownership | undefined> {
  for (;;) {
    signal.throwIfAborted();
    const lock = await folder.own(lockPath);
    if (lock) return lock;
    if (await onWait()) return undefined;
    await sleep(LOOK_MS, signal);
  }
}
