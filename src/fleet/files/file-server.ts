import { open } from "node:fs/promises";
import type { Logger } from "pino";
import { z } from "zod";
import type { CachedFiles, SharedFile } from "../../models/hub/cache/cached-files.ts";
import { isRepoName } from "../../models/hub/cache/repo-cache.ts";
import { isCommit, isSha256, type RepoListing } from "../../models/hub/hub-store.ts";
import { isRepoFile, isRevision } from "../../models/names/name-rules.ts";
import type { FleetConnection } from "../fleet-connection.ts";
import { readJson, writeJson } from "../wire-format.ts";

/** Questions that are answered at once; each holds a piece in memory until NATS has it. */
const MAX_AT_ONCE = 32;

interface FileServerOptions {
  readonly connection: FleetConnection;
  readonly files: Pick<CachedFiles, "find" | "findGrowing" | "list">;
  readonly logger: Pick<Logger, "debug">;
  /** This machine's. */
  readonly id: string;
}

/** Gives other machines pieces of the files that this one has from the hub, as long as the connection is there. */
export function serveFiles(options: FileServerOptions): void {
  const { connection, id } = options;
  const server = new FileServer(options);
  connection.listen(connection.subject("files", id), (data, _subject, reply) => {
    if (reply) void server.answer(data).then(reply);
  });
}

class FileServer {
  readonly #options: FileServerOptions;
  #answering = 0;

  constructor(options: FileServerOptions) {
    this.#options = options;
  }

  /** Never rejects. */
  async answer(data: Uint8Array): Promise<Uint8Array> {
    if (this.#answering >= MAX_AT_ONCE) return bareAnswer(ANSWER.BUSY);
    this.#answering += 1;
    try {
      const question = readJson(fileQuestionSchema, data);
      return (question && (await this.#find(question))) ?? bareAnswer(ANSWER.NOT_HERE);
    } catch (error) {
      this.#options.logger.debug({ err: error }, "fleet: a file cannot be sent to another machine");
      return bareAnswer(ANSWER.NOT_HERE);
    } finally {
      this.#answering -= 1;
    }
  }

  async #find(question: FileQuestion): Promise<Uint8Array | undefined> {
    const { files, connection } = this.#options;
    if (question.kind === "list") {
      const listing = await files.list(question.repo, question.revision);
      const answer = listing && Buffer.concat([bareAnswer(ANSWER.HERE), writeJson(listing)]);
      return answer && answer.length <= connection.maxPayload ? answer : undefined;
    }
    const whole = await files.find(question);
    // It may have become whole in between.
    const path = whole ?? (await files.findGrowing(question)) ?? (await files.find(question));
    if (path === undefined) return undefined;
    if (question.kind === "has") return bareAnswer(whole === undefined ? ANSWER.GROWING : ANSWER.HERE);
    const length = Math.min(question.length, connection.maxPayload - 1);
    const piece = await readPiece(path, question, question.offset, length);
    return piece ?? (whole === undefined ? bareAnswer(ANSWER.GROWING) : undefined);
  }
}

/** An answer with as many bytes of a file as there are at this place; undefined when there are none. */
async function readPiece(
  path: string,
  { size }: SharedFile,
  offset: number,
  length: number,
): Promise<Uint8Array | undefined> {
  const wanted = Math.min(length, size - offset);
  if (wanted <= 0) return undefined;
  const answer = Buffer.allocUnsafe(1 + wanted);
  answer[0] = ANSWER.HERE;
  await using file = await open(path);
  const { bytesRead } = await file.read(answer, 1, wanted, offset);
  return bytesRead === wanted ? answer : undefined;
}

/** What machines ask each other about files, and what they answer. Anyone on the NATS server may have written it. */

/** Bytes of one piece: large enough that asking costs little, small enough for NATS's default limit of 1 MiB. */
export const PIECE_BYTES = 512 * 1024;
/** More than the largest model that anybody could load. */
const MAX_BYTES = 1024 ** 4;
/** More than any repository has. */
const MAX_FILES = 2000;

const repo = z.string().refine(isRepoName);
const fileMessagesSize = z.int().min(0).max(MAX_BYTES);
const digest = z.union([
  z.object({ algorithm: z.literal("sha256"), hex: z.string().refine(isSha256) }),
  z.object({ algorithm: z.literal("git-sha1"), hex: z.string().refine(isCommit) }),
]);
const fileFields = { repo, digest, size: fileMessagesSize };

const fileQuestionSchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("has"), ...fileFields }),
  z.object({
    kind: z.literal("read"),
    ...fileFields,
    offset: fileMessagesSize,
    length: z.int().min(1).max(PIECE_BYTES),
  }),
  z.object({ kind: z.literal("list"), repo, revision: z.string().refine(isRevision) }),
]);
export type FileQuestion = z.infer<typeof fileQuestionSchema>;

export const listingSchema: z.ZodType<RepoListing> = z.object({
  repo,
  commit: z.string().refine(isCommit),
  files: z
    .array(
      z.object({
        path: z.string().refine(isRepoFile),
        size: fileMessagesSize,
        digest,
        xet: z.literal(false),
      }),
    )
    .max(MAX_FILES),
});

/** The first byte of an answer; what was asked for follows `HERE`. `GROWING`: it comes from the hub at the moment. */
export const ANSWER = { HERE: 0, NOT_HERE: 1, BUSY: 2, GROWING: 3 } as const;

/** An answer without anything behind it. */
function bareAnswer(kind: number): Uint8Array {
  return Uint8Array.of(kind);
}
