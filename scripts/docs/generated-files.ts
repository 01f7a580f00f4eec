import { experimentJsonSchema } from "../../src/experiments/experiments.ts";
import { apiPage } from "./api-page.ts";
import { compatibilityPage } from "./compatibility-page.ts";
import { configurationPage } from "./configuration-page.ts";
import { errorsPage } from "./errors-page.ts";
import { exampleConfig } from "./example-config.ts";
import { llamaServerPage } from "./llama-server-page.ts";
import { manPage } from "./man-page.ts";
import { observabilityPage } from "./observability-page.ts";
import { ollamaPage } from "./ollama-page.ts";
import { templatesPage } from "./templates-page.ts";
import { structuredOutputPage } from "./structured-output-page.ts";

interface GeneratedFile {
  readonly file: URL;
  readonly text: string;
}

/** Every file of the repository that is made from the sources, as it should be now. */
export async function generatedFiles(): Promise<readonly GeneratedFile[]> {
  return [
    { file: at("docs/configuration.md"), text: configurationPage() },
    { file: at("docs/api.md"), text: apiPage() },
    { file: at("docs/compatibility.md"), text: compatibilityPage() },
    { file: at("docs/ollama.md"), text: ollamaPage() },
    { file: at("docs/llama-server.md"), text: llamaServerPage() },
    { file: at("docs/templates.md"), text: templatesPage() },
    { file: at("docs/errors.md"), text: errorsPage() },
    { file: at("docs/observability.md"), text: await observabilityPage() },
    { file: at("docs/structured-output.md"), text: structuredOutputPage() },
    { file: at("docs/daybreak.1"), text: await manPage() },
    {
      file: at("docs/experiment.schema.json"),
      text: `${JSON.stringify(experimentJsonSchema(), undefined, 2)}\n`,
    },
    { file: at("configs/daybreak.toml"), text: exampleConfig() },
  ];
}

function at(name: string): URL {
  return new URL(`../../${name}`, import.meta.url);
}
