import { readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { generatedFiles } from "./generated-files.ts";

const HELP = `Writes the documentation that is made from the sources.

  node scripts/docs/generate.ts           write what has changed
  node scripts/docs/generate.ts --check   write nothing; exit with 1 when something would change
`;

const { values } = parseArgs({ options: { check: { type: "boolean" }, help: { type: "boolean" } } });

if (values.help) {
  process.stdout.write(HELP);
} else {
  for (const { file, text } of await generatedFiles()) {
    if (current(file) === text) continue;
    if (values.check) process.exitCode = 1;
    else writeFileSync(file, text);
    process.stdout.write(`${values.check ? "out of date" : "written"}: ${file.pathname}\n`);
  }
}

function current(file: URL): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
