import type { HubPeers } from "../hub-peers.ts";
import { RemoteBody, type RemoteFile } from "../remote/remote-body.ts";

/** The bytes of one file, from any offset: of other machines as far as they have it, otherwise of the hub. */
export class BlobBody {
  readonly #remote: RemoteFile;
  readonly #hub: RemoteBody;
  readonly #peers: HubPeers | undefined;
  readonly #onMachine: (name: string) => void;
  readonly #fromHub: Set<string>;
  #usedPeers = false;

  /** @param fromHub gets the digest when the hub is asked; the one who passes it removes it */
  constructor(
    remote: RemoteFile,
    peers: HubPeers | undefined,
    onMachine: (name: string) => void,
    fromHub: Set<string>,
  ) {
    this.#fromHub = fromHub;
    this.#remote = remote;
    this.#hub = new RemoteBody(remote);
    this.#peers = peers;
    this.#onMachine = onMachine;
  }

  /** Whether any bytes came from another machine. */
  get usedPeers(): boolean {
    return this.#usedPeers;
  }

  /** Yields the bytes from `offset` to the end of the file. @throws as {@link RemoteBody.read} */
  async *read(offset: number, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const { repo, file } = this.#remote;
    let position = offset;
    const shared = { repo, digest: file.digest, size: file.size };
    for await (const chunk of this.#peers?.read(shared, offset, this.#onMachine, signal) ?? []) {
      this.#usedPeers = true;
      position += chunk.length;
      yield chunk;
    }
    if (position === file.size) return;
    this.#fromHub.add(file.digest.hex);
    yield* this.#hub.read(position, signal);
  }
}
