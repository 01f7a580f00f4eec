import { open } from "node:fs/promises";
import type { Logger } from "pino";
import { z } from "zod";
import type { CachedFiles, SharedFile } from "../../models/hub/cache/cached-files.ts";
import { isCommit, isSha256, type RepoListing } from "../../models/hub/hub-types.ts";
import { isRepoFile, isRepoName, isRevision } from "../../models/names/name-rules.ts";
import type { FleetConnection } from "../fleet-connection.ts";
import { readJson, writeJson } from "../wire-format.ts";

/** Maximum parallel requests; each buffers a chunk until NATS has sent it. */
const MAX_PARALLEL = 32;

interface FileServerOptions {
  readonly connection: FleetConnection;
  readonly files: Pick<CachedFiles, "find" | "findPartial" | "list">;
  readonly logger: Pick<Logger, "debug">;
  /** Id of this machine. */
  readonly id: string;
}

/** Serves chunks of this machine's hub files to other machines. */
export function serveFiles(options: FileServerOptions): void {
  const { connection, id, logger } = options;
  let answering = 0;
  /** Never rejects. */
  const answer = async (data: Uint8Array): Promise<Uint8Array> => {
    if (answering >= MAX_PARALLEL) return emptyAnswer(ANSWER.BUSY);
    answering += 1;
    try {
      const request = readJson(fileRequestSchema, data);
      return (request && (await find(options, request))) ?? emptyAnswer(ANSWER.NOT_HERE);
    } catch (error) {
      logger.debug({ err: error }, "fleet: a file cannot be sent to another machine");
      return emptyAnswer(ANSWER.NOT_HERE);
    } finally {
      answering -= 1;
    }
  };
  connection.listen(connection.subject("files", id), (data, _subject, reply) => {
    if (reply) void answer(data).then(reply);
  });
}

async function find(
  { files, connection }: FileServerOptions,
  request: FileRequest,
): Promise<Uint8Array | undefined> {
  if (request.kind === "list") {
    const listing = await files.list(request.repo, request.revision);
    const answer = listing && Buffer.concat([emptyAnswer(ANSWER.HERE), writeJson(listing)]);
    return answer && answer.length <= connection.maxPayload ? answer : undefined;
  }
  const completePath = await files.find(request);
  // The download may have been completed in between.
  const path = completePath ?? (await files.findPartial(request)) ?? (await files.find(request));
  if (path === undefined) return undefined;
  if (request.kind === "has") return emptyAnswer(completePath === undefined ? ANSWER.GROWING : ANSWER.HERE);
  const length = Math.min(request.length, connection.maxPayload - 1);
  const chunk = await readChunk(path, request, request.offset, length);
  return chunk ?? (completePath === undefined ? emptyAnswer(ANSWER.GROWING) : undefined);
}

/** Returns an answer with a chunk of a file; undefined if the file is shorter. */
async function readChunk(
  path: string,
  { size }: SharedFile,
  offset: number,
  length: number,
): Promise<Uint8Array | undefined> {
  const byteLength = Math.min(length, size - offset);
  if (byteLength <= 0) return undefined;
  const answer = Buffer.allocUnsafe(1 + byteLength);
  answer[0] = ANSWER.HERE;
  await using file = await open(path);
  const { bytesRead } = await file.read(answer, 1, byteLength, offset);
  return bytesRead === byteLength ? answer : undefined;
}

/** Requests and answers about files. Every NATS client may send them. */

/** Bytes of a chunk: large enough for little overhead, below NATS's default limit of 1 MiB. */
export const CHUNK_BYTES = 512 * 1024;
/** More bytes than the largest model. */
const MAX_BYTES = 1024 ** 4;
/** More files than any repository has. */
const MAX_FILES = 2000;

const repo = z.string().refine(isRepoName);
const fileSize = z.int().min(0).max(MAX_BYTES);
const digest = z.union([
  z.object({ algorithm: z.literal("sha256"), hex: z.string().refine(isSha256) }),
  z.object({ algorithm: z.literal("git-sha1"), hex: z.string().refine(isCommit) }),
]);
const fileFields = { repo, digest, size: fileSize };

const fileRequestSchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("has"), ...fileFields }),
  z.object({
    kind: z.literal("read"),
    ...fileFields,
    offset: fileSize,
    length: z.int().min(1).max(CHUNK_BYTES),
  }),
  z.object({ kind: z.literal("list"), repo, revision: z.string().refine(isRevision) }),
]);
export type FileRequest = z.infer<typeof fileRequestSchema>;

export const listingSchema: z.ZodType<RepoListing> = z.object({
  repo,
  commit: z.string().refine(isCommit),
  files: z
    .array(
      z.object({
        path: z.string().refine(isRepoFile),
        size: fileSize,
        digest,
        xet: z.literal(false),
      }),
    )
    .max(MAX_FILES),
});

/** First byte of an answer; the requested data follows `HERE`. `GROWING` means that the file is being downloaded. */
export const ANSWER = { HERE: 0, NOT_HERE: 1, BUSY: 2, GROWING: 3 } as const;

/** Returns an answer without data. */
function emptyAnswer(kind: number): Uint8Array {
  return Uint8Array.of(kind);
}
