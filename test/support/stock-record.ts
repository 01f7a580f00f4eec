import { createHash } from "node:crypto";
import fs from "node:fs";
import { fileURLToPath } from "node:url";
import { STOCK_WASM_PATH } from "../../src/engine/engine-image.ts";
import type { EngineSpec } from "../../src/engine/protocol/engine-spec.ts";
import type { TokenLogprob } from "../../src/engine/protocol/generation.ts";
import type { AskedLine } from "./ask-comparison.ts";
import type { Difference } from "./forced-text.ts";
import type { Comparison } from "./stock-comparisons.ts";
import { decodeLogprobs, type SpokenToken } from "./stock-record-encoding.ts";

/**
 * What llama.cpp's WebAssembly, as @wllama/wllama ships it, answers to each of COMPARISONS. It is recorded because it is
 * always the same and takes minutes; each answer is bound to the files and questions that it is of.
 */

const RECORD_FILE = fileURLToPath(new URL("stock-record.json", import.meta.url));
const COMMAND = "node scripts/test/record-stock.ts";

interface RecordedAnswers {
  /** See {@link digestOf}. */
  readonly digest: string;
  readonly lines: readonly AskedLine[];
  /** Encoded answers to each line: see stock-record-encoding.ts. */
  readonly said: readonly string[];
  readonly ownDifference?: Difference | undefined;
}

export interface StockRecord {
  readonly tokens: readonly SpokenToken[];
  /** By name of comparison. */
  readonly answers: Readonly<Record<string, RecordedAnswers>>;
}

/** Answers of the stock engine, and to which input. */
export interface StockAnswers {
  readonly lines: readonly AskedLine[];
  /** For each line the log-probabilities of its tokens. */
  readonly said: readonly (readonly TokenLogprob[])[];
  /** Difference that its flash attention makes. */
  readonly ownDifference?: Difference | undefined;
}

export function readRecord(): StockRecord {
  const record: StockRecord = JSON.parse(fs.readFileSync(RECORD_FILE, "utf8"));
  return record;
}

/** Writes it with a line for each comparison, so that a change shows what has changed. */
export function writeRecord({ tokens, answers }: StockRecord): void {
  const lines = Object.entries(answers).map(([name, answer]) =>
    [name, answer].map((part) => JSON.stringify(part)).join(": "),
  );
  const text = `{"tokens": ${JSON.stringify(tokens)},\n"answers": {\n${lines.join(",\n")}\n}}\n`;
  fs.writeFileSync(RECORD_FILE, text);
}

/** SHA-256 of everything that an answer depends on: the WebAssembly, the model's files, the settings, the questions. */
export function digestOf({ lines, pastTokens, withOwnDifference }: Comparison, spec: EngineSpec): string {
  const { modelFiles, adapters, ...settings } = spec;
  const contents = [STOCK_WASM_PATH, ...modelFiles, ...adapters.map(({ path }) => path)].map((file) =>
    createHash("sha256").update(fs.readFileSync(file)).digest("hex"),
  );
  const scales = adapters.map(({ scale }) => scale);
  return createHash("sha256")
    .update(JSON.stringify([contents, scales, settings, lines, pastTokens, withOwnDifference]))
    .digest("hex");
}

/**
 * What the stock engine answers to a comparison.
 * @param spec - with the files that are asked now
 * @throws Error when that has not been recorded of these files and questions
 */
export function stockAnswers(comparison: Comparison, spec: EngineSpec, record = readRecord()): StockAnswers {
  const recorded = record.answers[comparison.name];
  if (recorded?.digest !== digestOf(comparison, spec))
    throw new Error(
      `What is recorded of the stock engine is of other models or questions than "${comparison.name}" has now. ` +
        `Run \`${COMMAND}\`, which takes a minute or two, and commit test/support/stock-record.json.`,
    );
  const { lines, said, ownDifference } = recorded;
  return { lines, said: said.map((each) => decodeLogprobs(each, record.tokens)), ownDifference };
}
