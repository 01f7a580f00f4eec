/**
 * Records that all machines of a fleet can read, for as long as there is room for them. Nothing here rejects: where the
 * place is missing or full, a record is not there, and somebody is warned.
 */
export interface SharedRecords {
  /** @param name letters, digits, - and _ */
  put(name: string, record: Uint8Array): Promise<void>;
  get(name: string): Promise<Uint8Array | undefined>;
  /** Removes a record, and remembers that for those who have a copy. */
  erase(name: string): Promise<void>;
  /** Whether a record was removed, by whichever machine. */
  isErased(name: string): Promise<boolean>;
}
