const QUOTES = '"""';

/**
 * Joins lines into messages: a line is a message, unless it ends in a backslash (the next one belongs to it) or
 * stands between lines with three double quotes.
 */
export class MessageLines {
  #lines: string[] = [];
  #quoted = false;

  /** True in the middle of a message. */
  get unfinished(): boolean {
    return this.#quoted || this.#lines.length > 0;
  }

  /** Takes the next line; returns the message that it completes. */
  push(line: string): string | undefined {
    if (this.#quoted) {
      const end = line.indexOf(QUOTES);
      this.#lines.push(end < 0 ? line : line.slice(0, end));
      return end < 0 ? undefined : this.#take();
    }
    if (this.#lines.length === 0 && line.trimStart().startsWith(QUOTES)) {
      this.#quoted = true;
      const rest = line.trimStart().slice(QUOTES.length);
      const end = rest.indexOf(QUOTES);
      if (end >= 0) this.#lines.push(rest.slice(0, end));
      else if (rest !== "") this.#lines.push(rest);
      return end < 0 ? undefined : this.#take();
    }
    if (line.endsWith("\\")) {
      this.#lines.push(line.slice(0, -1));
      return undefined;
    }
    this.#lines.push(line);
    return this.#take();
  }

  /** Forgets an unfinished message. */
  reset(): void {
    this.#lines = [];
    this.#quoted = false;
  }

  #take(): string {
    const message = this.#lines.join("\n");
    this.reset();
    return message;
  }
}
