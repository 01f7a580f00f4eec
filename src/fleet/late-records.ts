/** Bytes of all records that wait; the oldest make room. */
const MOST_BYTES = 64 * 1024 * 1024;
/** What a record costs beside its bytes. */
const EACH_BYTES = 256;
const RETRY_MS = 1000;

/** Records that could not be stored when they were made. They are stored as soon as that can be done, as long as this process runs. */
export class LateRecords {
  readonly #store: (name: string, packed: Uint8Array) => Promise<boolean>;
  readonly #waiting = new Map<string, Uint8Array>();
  #bytes = 0;
  #isStoring = false;
  #timer: NodeJS.Timeout | undefined;

  /** @param store resolves with false where it is to be tried again */
  constructor(store: (name: string, packed: Uint8Array) => Promise<boolean>) {
    this.#store = store;
  }

  add(name: string, packed: Uint8Array): void {
    this.remove(name);
    this.#waiting.set(name, packed);
    this.#bytes += packed.length + EACH_BYTES;
    for (const [oldest] of this.#waiting) {
      if (this.#bytes <= MOST_BYTES) break;
      this.remove(oldest);
    }
    this.#later();
  }

  remove(name: string): void {
    const packed = this.#waiting.get(name);
    if (packed === undefined) return;
    this.#waiting.delete(name);
    this.#bytes -= packed.length + EACH_BYTES;
  }

  async #storeAll(): Promise<void> {
    if (this.#isStoring) return;
    this.#isStoring = true;
    for (const [name, packed] of this.#waiting) {
      if (!(await this.#store(name, packed))) break;
      if (this.#waiting.get(name) === packed) this.remove(name);
    }
    this.#isStoring = false;
    if (this.#waiting.size > 0) this.#later();
  }

  #later(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.#storeAll();
    }, RETRY_MS).unref();
  }
}
