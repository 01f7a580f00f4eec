const USING_DEVICE = /using device WebGPU/;
const OFFLOADED = /offloaded (\d+)\/\d+ layers to GPU/;

/**
 * What llama.cpp says in its log, and nowhere else, about the layers that it has put on a GPU while it loaded. It
 * counts the output layer as one more.
 */
export class OffloadLog {
  #usesDevice = false;
  #layers = 0;

  add(line: string): void {
    this.#usesDevice ||= USING_DEVICE.test(line);
    const match = OFFLOADED.exec(line);
    if (match) this.#layers = Number(match[1]);
  }

  /** Layers on the GPU; 0 when no device was opened, whatever was asked for. */
  get layers(): number {
    return this.#usesDevice ? this.#layers : 0;
  }
}
