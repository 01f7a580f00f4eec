import type { Logger } from "pino";
import type { FewCopies } from "./batch-streams.ts";
import { NoJetStream, whyAway } from "./jetstream-errors.ts";

/** What machines share by JetStream, and what is so without it. */
const LOSSES = {
  batches: "files and batches are not shared now",
  responses: "this machine keeps responses for itself alone",
};
type Shared = keyof typeof LOSSES;

/** Tells once what is wrong with what machines share, whoever notices first. */
export class SharingLog {
  readonly #server: { readonly where: string; readonly problem: string | undefined };
  readonly #logger: Pick<Logger, "warn" | "info">;
  readonly #told = new Set<Shared>();
  #hasFewCopies = false;

  constructor(
    server: { readonly where: string; readonly problem: string | undefined },
    logger: Pick<Logger, "warn" | "info">,
  ) {
    this.#server = server;
    this.#logger = logger;
  }

  failed(what: Shared, error: unknown): void {
    if (this.#told.has(what)) return;
    const hasNothing = error instanceof NoJetStream;
    if (hasNothing) for (const each of ["batches", "responses"] as const) this.#told.add(each);
    this.#told.add(what);
    const loss = hasNothing ? "files, batches and responses are not shared now" : LOSSES[what];
    this.#logger.warn(`fleet: ${loss}, since ${whyAway(error, this.#server)}`);
  }

  /** @returns whether it was told that it does not */
  works(what: Shared): boolean {
    return this.#told.delete(what);
  }

  fewCopies({ copies, why }: FewCopies): void {
    if (this.#hasFewCopies) return;
    this.#hasFewCopies = true;
    this.#logger.warn(
      `fleet: what machines share is kept on ${copies === 1 ? "one server" : `${copies} servers`} instead of three, since the ` +
        `cluster of the fleet's NATS server at ${this.#server.where} refuses more (${why}): have three of its servers run ` +
        "with JetStream and room for it; within five minutes, it is on three then",
    );
  }
}
