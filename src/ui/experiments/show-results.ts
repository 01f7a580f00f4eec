import type { AnswerToken } from "../../api/native/native-answer-fields.ts";
import type { ExperimentResult } from "../../api/native/experiment.ts";
import { compareResults } from "../../experiments/experiments.ts";

/** A result with its label on the page. */
export interface NamedResult {
  readonly name: string;
  readonly result: ExperimentResult;
}

/** Lower bounds of the probabilities of each shade. */
const SHADES = [0.2, 0.5, 0.8, 0.95];

/** Renders results side by side, token by token, compared with the first. Generated text only becomes text nodes. */
export function showResults(
  results: readonly NamedResult[],
  { onKeep, onToken }: { onKeep: (index: number) => void; onToken: (position: number) => void },
): HTMLElement[] {
  const [reference] = results;
  return results.map(({ name, result }, index) => {
    const column = element("article", { className: "result" });
    column.append(element("h3", { textContent: name }), outcome(result, index === 0 ? undefined : reference));
    const comparison = index === 0 || !reference ? undefined : compareResults(reference.result, result);
    const tokens = element("p", { className: "tokens" });
    result.tokens.forEach((token, position) => {
      const isFirstDifference = comparison?.isSame === false && position === comparison.sameTokens;
      tokens.append(tokenButton(token, isFirstDifference, () => onToken(position)));
    });
    column.append(tokens);
    if (result.thinking !== undefined) column.append(paragraphOf(`Reasoning: ${result.thinking}`));
    for (const { function: call } of result.tool_calls ?? [])
      column.append(paragraphOf(`${call.name}(${call.arguments})`));
    const keep = element("button", { type: "button", textContent: "Keep as the recorded result" });
    keep.addEventListener("click", () => onKeep(index));
    column.append(paragraphOf(`${result.machine}, ${new Date(result.at).toLocaleString()}`), keep);
    return column;
  });
}

/** Renders the alternatives of each result at a token position. */
export function showAlternatives(results: readonly NamedResult[], position: number): HTMLElement[] {
  const tables = results.map(({ name, result }) => {
    const token = result.tokens[position];
    const table = element("table");
    table.append(element("caption", { textContent: name }));
    if (!token) table.append(row("td", ["(the answer has ended)"]));
    for (const each of token?.top ?? []) {
      const line = row("td", [JSON.stringify(each.token), formatProbability(each), each.logprob.toFixed(4)]);
      if (each.id === token?.id) line.className = "chosen";
      const bar = element("meter", { max: 1, value: Math.exp(each.logprob) });
      line.append(cell("td", bar));
      table.append(line);
    }
    return table;
  });
  const columns = element("div", { className: "columns" });
  columns.append(...tables);
  return [element("h3", { textContent: `Token ${position + 1}` }), columns];
}

/** Renders a table of the rates and times of all results. */
export function showRates(results: readonly NamedResult[]): HTMLElement[] {
  const measures: readonly [string, (result: ExperimentResult) => number][] = [
    ["Prompt, tokens/s", (result) => rate(result.prompt_tokens, result.prompt_ms)],
    ["Answer, tokens/s", (result) => result.tokens_per_second],
    ["Prompt, ms", (result) => result.prompt_ms],
    ["Answer, ms", (result) => result.completion_ms],
    ["Total, ms", (result) => result.total_duration_ms],
  ];
  const table = element("table");
  table.append(row("th", ["", ...results.map(({ name }) => name)]));
  for (const [title, measure] of measures) {
    const values = results.map(({ result }) => measure(result));
    const line = row("th", [title]);
    for (const value of values) {
      const valueCell = cell("td", value.toFixed(1));
      valueCell.append(" ", element("meter", { max: Math.max(...values, Number.MIN_VALUE), value }));
      line.append(valueCell);
    }
    table.append(line);
  }
  return [table];
}

function outcome(result: ExperimentResult, reference: NamedResult | undefined): HTMLElement {
  const length = `${result.tokens.length} tokens, ended by ${result.done_reason}`;
  if (!reference) return paragraphOf(length);
  const { isSame, sameTokens, logprobDifference } = compareResults(reference.result, result);
  const logprobs =
    logprobDifference === 0
      ? "log-probabilities equal to the last bit"
      : `log-probabilities differ by at most ${logprobDifference.toPrecision(3)}`;
  const paragraph = paragraphOf(
    isSame
      ? `Same as ${reference.name}: ${length}, ${logprobs}.`
      : `Differs from ${reference.name} at token ${sameTokens + 1}; ${length}, ${logprobs} until there.`,
  );
  paragraph.className = isSame ? "same" : "different";
  return paragraph;
}

function tokenButton(token: AnswerToken, isFirstDifference: boolean, onClick: () => void): HTMLElement {
  const probability = Math.exp(token.logprob);
  const shade = SHADES.filter((least) => probability >= least).length;
  const button = element("span", {
    className: `token shade-${shade}${isFirstDifference ? " difference" : ""}`,
    textContent: token.token,
    title: `${formatProbability(token)}, ID ${token.id}`,
    tabIndex: 0,
    role: "button",
  });
  button.addEventListener("click", onClick);
  button.addEventListener("keydown", ({ key }) => {
    if (key === "Enter" || key === " ") onClick();
  });
  return button;
}

function formatProbability({ logprob }: { logprob: number }): string {
  return `${(100 * Math.exp(logprob)).toFixed(1)} %`;
}

function rate(tokens: number, milliseconds: number): number {
  return milliseconds > 0 ? (tokens * 1000) / milliseconds : 0;
}

function paragraphOf(text: string): HTMLElement {
  return element("p", { textContent: text });
}

function row(kind: "td" | "th", texts: readonly string[]): HTMLTableRowElement {
  const line = element("tr");
  line.append(...texts.map((text) => cell(kind, text)));
  return line;
}

function cell(kind: "td" | "th", content: string | Node): HTMLElement {
  const created = element(kind);
  created.append(content);
  return created;
}

function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  properties: Partial<HTMLElementTagNameMap[Name]> = {},
): HTMLElementTagNameMap[Name] {
  return Object.assign(document.createElement(name), properties);
}
