/** Finds the end of a JSON object in pieces of text. */
export class JsonEnd {
  #depth = 0;
  #inText = false;
  #escaped = false;

  /** How much of a piece belongs to the object; undefined if it goes on. */
  push(piece: string): number | undefined {
    for (let at = 0; at < piece.length; at += 1) {
      const character = piece[at]!;
      if (this.#escaped) this.#escaped = false;
      else if (this.#inText) {
        if (character === "\\") this.#escaped = true;
        else if (character === '"') this.#inText = false;
      } else if (character === '"') this.#inText = true;
      else if (character === "{" || character === "[") this.#depth += 1;
      else if (character === "}" || character === "]") {
        this.#depth -= 1;
        if (this.#depth <= 0) return at + 1;
      }
    }
    return undefined;
  }
}
