/** One value of a metric, with its labels. */
interface Value {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

/** The values of a Prometheus text exposition. */
export class Metrics {
  readonly #values = new Map<string, Value[]>();

  constructor(exposition: string) {
    for (const line of exposition.split("\n")) {
      const [, name, labels = "", value] = LINE.exec(line) ?? [];
      if (name === undefined) continue;
      const list = this.#values.get(name) ?? [];
      this.#values.set(name, list);
      list.push({ labels: readLabels(labels), value: Number(value) });
    }
  }

  /** Of a metric without labels; 0 when there is none. */
  value(name: string): number {
    return this.#values.get(name)?.[0]?.value ?? 0;
  }

  /** By the value of a label. */
  by(name: string, label: string): Map<string, number> {
    const list = this.#values.get(name) ?? [];
    return new Map(list.map(({ labels, value }) => [labels[label] ?? "", value]));
  }
}

function readLabels(text: string): Record<string, string> {
  const labels = [...text.matchAll(LABEL)];
  return Object.fromEntries(labels.map(([, name = "", value = ""]) => [name, unescaped(value)]));
}

function unescaped(text: string): string {
  return text.replaceAll(/\\(.)/g, (_, character: string) => (character === "n" ? "\n" : character));
}
