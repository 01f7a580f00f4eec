import { z } from "zod";
import { isRepoName } from "../../models/hub/cache/repo-cache.ts";
import { isCommit, isSha256, type RepoListing } from "../../models/hub/hub-store.ts";
import { isRepoFile, isRevision } from "../../models/names/name-rules.ts";

/** What machines ask each other about files, and what they answer. Anyone on the NATS server may have written it. */

/** Bytes of one piece: large enough that asking costs little, small enough for NATS's default limit of 1 MiB. */
export const PIECE_BYTES = 512 * 1024;
/** More than the largest model that anybody could load. */
const MOST_BYTES = 1024 ** 4;
/** More than any repository has. */
const MOST_FILES = 2000;

const repo = z.string().refine(isRepoName);
const size = z.int().min(0).max(MOST_BYTES);
const digest = z.union([
  z.object({ algorithm: z.literal("sha256"), hex: z.string().refine(isSha256) }),
  z.object({ algorithm: z.literal("git-sha1"), hex: z.string().refine(isCommit) }),
]);
const fileFields = { repo, digest, size };

export const fileQuestionSchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("has"), ...fileFields }),
  z.object({
    kind: z.literal("read"),
    ...fileFields,
    offset: size,
    length: z.int().min(1).max(PIECE_BYTES),
  }),
  z.object({ kind: z.literal("list"), repo, revision: z.string().refine(isRevision) }),
]);
export type FileQuestion = z.infer<typeof fileQuestionSchema>;

export const listingSchema: z.ZodType<RepoListing> = z.object({
  repo,
  commit: z.string().refine(isCommit),
  files: z
    .array(z.object({ path: z.string().refine(isRepoFile), size, digest, xet: z.literal(false) }))
    .max(MOST_FILES),
});

/** The first byte of an answer; what was asked for follows `HERE`. `GROWING`: it comes from the hub at the moment. */
export const ANSWER = { HERE: 0, NOT_HERE: 1, BUSY: 2, GROWING: 3 } as const;

/** An answer without anything behind it. */
export function bareAnswer(kind: number): Uint8Array {
  return Uint8Array.of(kind);
}
