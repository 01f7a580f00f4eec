import { open } from "node:fs/promises";
import type { Logger } from "pino";
import type { CachedFiles } from "../../models/hub/cache/cached-files.ts";
import type { SharedFile } from "../../models/hub/hub-peers.ts";
import type { FleetConnection } from "../fleet-connection.ts";
import { readJson, writeJson } from "../json-message.ts";
import { ANSWER, bareAnswer, type FileQuestion, fileQuestionSchema } from "./file-messages.ts";

/** Questions that are answered at once; each holds a piece in memory until NATS has it. */
const MOST_AT_ONCE = 32;

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
    if (this.#answering >= MOST_AT_ONCE) return bareAnswer(ANSWER.BUSY);
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
