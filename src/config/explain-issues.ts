import type { z } from "zod";
import { configOptions } from "./config-options.ts";
import { explainIssue, issueText } from "../errors/explain-issue.ts";
import { similarOption } from "./similar-option.ts";
import type { Tree } from "./tree.ts";

/** One line per issue: the source, the option, what was expected and what was found. */
export function explainIssues(
  issues: readonly z.core.$ZodIssue[],
  origins: ReadonlyMap<string, string>,
  input: Tree,
  file: string | undefined,
): string {
  return issues
    .map((issue) => {
      if (issue.code === "unrecognized_keys") {
        const names = issue.keys.map((key) => [...issue.path, key].join("."));
        const [meant] = names.length === 1 ? names.map(similarOption) : [];
        const hint = meant === undefined ? "" : ` Did you mean ${meant}?`;
        return `${file ?? "configuration"}: unknown option ${names.join(", ")}; docs/configuration.md lists them all.${hint}`;
      }
      const option = configOptions.find((each) => each.path.every((key, index) => issue.path[index] === key));
      const name = option?.name ?? issue.path.join(".");
      const source = origins.get(name) ?? file ?? "default";
      const explained = explainIssue(issue, input);
      return `${source}: ${name}: ${option?.secret ? explained.message : issueText(explained)}.`;
    })
    .join("\n");
}
