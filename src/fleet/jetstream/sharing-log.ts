import type { Logger } from "pino";
import type { FewCopies } from "./make-stream.ts";
import { NoJetStream, whyAway } from "./jetstream-errors.ts";

/** What machines share by JetStream, and what is so without it. */
const LOSSES = {
  batches: "files and batches are not shared now",
  responses: "this machine keeps responses for itself alone",
};
type Shared = keyof typeof LOSSES;

/**
 * Tells once what is wrong with what machines share, whoever notices first; and once more if waiting turns out not to help,
 * since there is no JetStream.
 */
export class SharingLog {
  readonly #server: { readonly where: string; readonly problem: string | undefined };
  readonly #logger: Pick<Logger, "warn" | "info">;
  /** What is wrong now, as it was told. */
  readonly #told = new Map<Shared, string>();
  #hasFewCopies = false;

  constructor(
    server: { readonly where: string; readonly problem: string | undefined },
    logger: Pick<Logger, "warn" | "info">,
  ) {
    this.#server = server;
    this.#logger = logger;
  }

  /** What is not shared now, and why, as far as somebody has noticed. */
  get problem(): string | undefined {
    return this.#told.get("batches") ?? this.#told.get("responses");
  }

  failed(what: Shared, error: unknown): void {
    const hasNothing = error instanceof NoJetStream;
    const loss = hasNothing ? "files, batches and responses are not shared now" : LOSSES[what];
    const problem = `${loss}, since ${whyAway(error, this.#server)}`;
    const wasTold = hasNothing ? this.#told.get(what) === problem : this.#told.has(what);
    for (const each of hasNothing ? (["batches", "responses"] as const) : [what])
      this.#told.set(each, problem);
    if (!wasTold) this.#logger.warn(`fleet: ${problem}`);
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
