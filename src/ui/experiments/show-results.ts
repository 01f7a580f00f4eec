import type { AnswerToken, ExperimentResult } from "../../api/wire/native.ts";
import { element, shadeClass } from "../browser.ts";
import { formatProbability } from "../../json/quantities.ts";
import { compareResults, describeDifference } from "../../experiments/experiments.ts";

export interface NamedResult {
  readonly name: string;
  readonly result: ExperimentResult;
}

/** Renders results side by side, token by token, compared with the first. Generated text only becomes text nodes. */
export function showResults(
  results: readonly NamedResult[],
  { onKeep, onToken }: { onKeep: (index: number) => void; onToken: (position: number) => void },
): HTMLElement[] {
  const [reference] = results;
  return results.map(({ name, result }, index) => {
    const comparison = index === 0 || !reference ? undefined : compareResults(reference.result, result);
    const tokens = result.tokens.map((token, position) => {
      const isFirstDifference = comparison?.isSame === false && position === comparison.sameTokens;
      return tokenButton(token, isFirstDifference, () => onToken(position));
    });
    const keep = element("button", { type: "button" }, "Keep as the recorded result");
    keep.addEventListener("click", () => onKeep(index));
    return element(
      "article",
      { className: "result" },
      element("h3", {}, name),
      outcome(result, index === 0 ? undefined : reference),
      element("p", { className: "tokens" }, ...tokens),
      ...(result.thinking === undefined ? [] : [element("p", {}, `Reasoning: ${result.thinking}`)]),
      ...(result.tool_calls ?? []).map(({ function: call }) =>
        element("p", {}, `${call.name}(${call.arguments})`),
      ),
      element("p", {}, `${result.machine}, ${new Date(result.at).toLocaleString()}`),
      keep,
    );
  });
}

/** Renders the alternatives of each result at a token position. */
export function showAlternatives(results: readonly NamedResult[], position: number): HTMLElement[] {
  const tables = results.map(({ name, result }) => {
    const token = result.tokens[position];
    const table = element("table", {}, element("caption", {}, name));
    if (!token) table.append(row("td", ["(the answer has ended)"]));
    for (const each of token?.top ?? []) {
      const line = row("td", [
        JSON.stringify(each.token),
        formatProbability(each.logprob),
        each.logprob.toFixed(4),
      ]);
      if (each.id === token?.id) line.className = "chosen";
      line.append(element("td", {}, element("meter", { max: 1, value: Math.exp(each.logprob) })));
      table.append(line);
    }
    return table;
  });
  return [element("h3", {}, `Token ${position + 1}`), element("div", { className: "columns" }, ...tables)];
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
  const table = element("table", {}, row("th", ["", ...results.map(({ name }) => name)]));
  for (const [title, measure] of measures) {
    const values = results.map(({ result }) => measure(result));
    const line = row("th", [title]);
    const max = Math.max(...values, Number.MIN_VALUE);
    for (const value of values)
      line.append(element("td", {}, value.toFixed(1), " ", element("meter", { max, value })));
    table.append(line);
  }
  return [table];
}

function outcome(result: ExperimentResult, reference: NamedResult | undefined): HTMLElement {
  const length = `${result.tokens.length} tokens, ended by ${result.done_reason}`;
  if (!reference) return element("p", {}, length);
  const comparison = compareResults(reference.result, result);
  const { isSame, sameTokens } = comparison;
  const logprobs = describeDifference(comparison);
  return element(
    "p",
    { className: isSame ? "same" : "different" },
    isSame
      ? `Same as ${reference.name}: ${length}, ${logprobs}.`
      : `Differs from ${reference.name} at token ${sameTokens + 1}; ${length}, ${logprobs} until there.`,
  );
}

function tokenButton(token: AnswerToken, isFirstDifference: boolean, onClick: () => void): HTMLElement {
  const button = element("span", {
    className: `token ${shadeClass(token.logprob)}${isFirstDifference ? " difference" : ""}`,
    textContent: token.token,
    title: `${formatProbability(token.logprob)}, ID ${token.id}`,
    tabIndex: 0,
    role: "button",
  });
  button.addEventListener("click", onClick);
  button.addEventListener("keydown", ({ key }) => {
    if (key === "Enter" || key === " ") onClick();
  });
  return button;
}

function rate(tokens: number, milliseconds: number): number {
  return milliseconds > 0 ? (tokens * 1000) / milliseconds : 0;
}

function row(kind: "td" | "th", texts: readonly string[]): HTMLTableRowElement {
  return element("tr", {}, ...texts.map((text) => element(kind, {}, text)));
}
