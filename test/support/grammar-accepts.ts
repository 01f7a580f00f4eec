/** GBNF as our compiler writes it, read for tests. */
type Node =
  | { readonly kind: "literal"; readonly points: readonly number[] }
  | { readonly kind: "class"; readonly isNot: boolean; readonly ranges: readonly (readonly [number, number])[] }
  | { readonly kind: "rule"; readonly name: string }
  | { readonly kind: "sequence"; readonly parts: readonly Node[] }
  | { readonly kind: "choice"; readonly parts: readonly Node[] }
  | { readonly kind: "repeat"; readonly part: Node; readonly min: number; readonly max: number };

/** A grammar that tells which texts it allows. */
export class GrammarReader {
  readonly #rules = new Map<string, Node>();

  constructor(grammar: string) {
    for (const line of grammar.split("\n")) {
      const [, name, body] = /^([a-zA-Z0-9-]+) ::= (.*)$/.exec(line) ?? [];
      if (name !== undefined && body !== undefined) this.#rules.set(name, new BodyReader(body).read());
    }
  }

  /** Whether the whole text follows the grammar. */
  accepts(text: string): boolean {
    const points = Array.from(text, (character) => character.codePointAt(0) ?? 0);
    const known = new Map<string, ReadonlySet<number>>();
    const follow = (node: Node, at: number): ReadonlySet<number> => {
      switch (node.kind) {
        case "literal":
          return node.points.every((point, index) => points[at + index] === point)
            ? new Set([at + node.points.length])
            : new Set();
        case "class": {
          const point = points[at];
          if (point === undefined) return new Set();
          const isIn = node.ranges.some(([from, to]) => from <= point && point <= to);
          return isIn === node.isNot ? new Set() : new Set([at + 1]);
        }
        case "rule": {
          const key = `${node.name} ${at}`;
          let ends = known.get(key);
          if (!ends) {
            known.set(key, new Set());
            const rule = this.#rules.get(node.name);
            if (!rule) throw new Error(`The grammar has no rule ${node.name}.`);
            known.set(key, (ends = follow(rule, at)));
          }
          return ends;
        }
        case "sequence":
          return node.parts.reduce<ReadonlySet<number>>((ends, part) => step(ends, part), new Set([at]));
        case "choice":
          return new Set(node.parts.flatMap((part) => [...follow(part, at)]));
        case "repeat": {
          const all = new Set<number>(node.min === 0 ? [at] : []);
          let ends: ReadonlySet<number> = new Set([at]);
          for (let count = 1; count <= node.max && ends.size > 0; count += 1) {
            ends = step(ends, node.part);
            if (count < node.min) continue;
            const before = all.size;
            for (const end of ends) all.add(end);
            if (all.size === before) break;
          }
          return all;
        }
      }
    };
    const step = (ends: ReadonlySet<number>, part: Node): ReadonlySet<number> =>
      new Set([...ends].flatMap((end) => [...follow(part, end)]));
    return follow({ kind: "rule", name: "root" }, 0).has(points.length);
  }
}

class BodyReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  read(): Node {
    const node = this.#choice();
    if (this.#at < this.#text.length) throw new Error(`The grammar has ${this.#text.slice(this.#at)}.`);
    return node;
  }

  #choice(): Node {
    const parts = [this.#sequence()];
    while (this.#take("|")) parts.push(this.#sequence());
    return parts.length === 1 ? parts[0]! : { kind: "choice", parts };
  }

  #sequence(): Node {
    const parts: Node[] = [];
    for (;;) {
      this.#space();
      const next = this.#text[this.#at];
      if (next === undefined || next === "|" || next === ")") return { kind: "sequence", parts };
      parts.push(this.#repeated(this.#item()));
    }
  }

  #item(): Node {
    if (this.#take("(")) {
      const inner = this.#choice();
      if (!this.#take(")")) throw new Error("The grammar lacks a parenthesis.");
      return inner;
    }
    if (this.#take('"')) {
      const points: number[] = [];
      while (this.#text[this.#at] !== '"') points.push(this.#point());
      this.#at += 1;
      return { kind: "literal", points };
    }
    if (this.#take("[")) {
      const isNot = this.#take("^", false);
      const ranges: (readonly [number, number])[] = [];
      while (this.#text[this.#at] !== "]") {
        const from = this.#point();
        const isRange = this.#text[this.#at] === "-" && this.#text[this.#at + 1] !== "]";
        if (isRange) this.#at += 1;
        ranges.push([from, isRange ? this.#point() : from]);
      }
      this.#at += 1;
      return { kind: "class", isNot, ranges };
    }
    const [name] = /^[a-zA-Z][a-zA-Z0-9-]*/.exec(this.#text.slice(this.#at)) ?? [];
    if (name === undefined) throw new Error(`The grammar has ${this.#text.slice(this.#at, this.#at + 20)}.`);
    this.#at += name.length;
    return { kind: "rule", name };
  }

  #repeated(part: Node): Node {
    const [mark, from, comma, to] =
      /^(?:[*+?]|\{(\d+)(?:(,)(\d*))?\})/.exec(this.#text.slice(this.#at)) ?? [];
    if (mark === undefined) return part;
    this.#at += mark.length;
    const infinite = Number.POSITIVE_INFINITY;
    const bounds: Readonly<Record<string, readonly [number, number]>> = {
      "*": [0, infinite],
      "+": [1, infinite],
      "?": [0, 1],
    };
    const exact = Number(from);
    const most = comma === undefined ? exact : to === "" ? infinite : Number(to);
    const [min, max] = bounds[mark] ?? [exact, most];
    return { kind: "repeat", part, min, max };
  }

  #point(): number {
    const rest = this.#text.slice(this.#at);
    const [escape] = /^\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)/.exec(rest) ?? [];
    if (escape === undefined) {
      const point = rest.codePointAt(0) ?? 0;
      this.#at += String.fromCodePoint(point).length;
      return point;
    }
    this.#at += escape.length;
    if (escape.length > 2) return Number.parseInt(escape.slice(2), 16);
    const letter = escape[1] ?? "";
    const letters: Readonly<Record<string, number>> = { n: 10, r: 13, t: 9 };
    return letters[letter] ?? letter.codePointAt(0) ?? 0;
  }

  #take(mark: string, skips = true): boolean {
    if (skips) this.#space();
    if (this.#text[this.#at] !== mark) return false;
    this.#at += 1;
    return true;
  }

  #space(): void {
    while (this.#text[this.#at] === " ") this.#at += 1;
  }
}
