import type { JSX } from "preact";
import type { AnswerToken } from "../../dialects/native/answer-token.ts";

/** Probabilities from which a token gets the next shade. */
const SHADES = [0.2, 0.5, 0.8, 0.95];

/** The tokens of an answer, shaded by how likely each was; the alternatives are in its title. */
export function TokenView({ tokens }: { readonly tokens: readonly AnswerToken[] }): JSX.Element {
  return (
    <p class="token-list">
      {tokens.map((token, index) => (
        <span key={index} class={`token shade-${shadeOf(token)}`} title={describe(token)}>
          {token.token}
        </span>
      ))}
    </p>
  );
}

/** 0 for unlikely tokens, up to the number of shades. */
function shadeOf({ logprob }: AnswerToken): number {
  return SHADES.filter((least) => Math.exp(logprob) >= least).length;
}

function describe({ token, logprob, top }: AnswerToken): string {
  const alternatives = top.map((each) => `${JSON.stringify(each.token)} ${percent(each.logprob)}`);
  return [`${JSON.stringify(token)} ${percent(logprob)}`, ...alternatives].join("\n");
}

function percent(logprob: number): string {
  return `${(Math.exp(logprob) * 100).toFixed(1)} %`;
}
