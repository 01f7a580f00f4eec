/** The place of records cannot be asked now, so nobody knows what is there. */
export class RecordsAway {
  /** Why, and what to do: "the NATS server at … does not answer: try again when it is back". */
  readonly why: string;
  readonly retryAfterSecs: number;

  constructor(why: string, retryAfterSecs: number) {
    this.why = why;
    this.retryAfterSecs = retryAfterSecs;
  }
}

/**
 * Records that all machines of a fleet can read, for as long as there is room for them. Nothing here rejects. Where the
 * fleet has never had a place for them, a record is not there; where it has, but cannot be asked now, that is said.
 */
export interface SharedRecords {
  /**
   * Keeps a record, if there is room for it now; if not, somebody is warned.
   * @param name letters, digits, - and _
   */
  put(name: string, record: Uint8Array): Promise<void>;
  get(name: string): Promise<Uint8Array | RecordsAway | undefined>;
  /** Removes a record, and remembers that for those who have a copy. */
  erase(name: string): Promise<RecordsAway | undefined>;
  /** Whether a record was removed, by whichever machine. */
  isErased(name: string): Promise<boolean | RecordsAway>;
}
