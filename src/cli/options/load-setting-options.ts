import { Option } from "commander";
import { z } from "zod";
import { LOAD_SETTINGS, loadSettingsSchema } from "../../config/load-settings.ts";
import { parseNumber } from "./parse-number.ts";

/** Options for how llama.cpp loads a model; what is not given, the model or the daemon says. */
export function loadSettingOptions(): Option[] {
  return [...LOAD_SETTINGS].flatMap(([name, field]) => {
    const { description = "" } = loadSettingsSchema.shape[field];
    const schema = loadSettingsSchema.shape[field].unwrap();
    const flag = name.replaceAll("_", "-");
    if (schema instanceof z.ZodBoolean) {
      const negative = new Option(`--no-${flag}`, `the opposite of --${flag}, where the model has that`);
      return [new Option(`--${flag}`, description), negative];
    }
    if (schema instanceof z.ZodEnum) {
      return [new Option(`--${flag} <value>`, description).choices(schema.options.map(String))];
    }
    return [new Option(`--${flag} <n>`, description).argParser(parseNumber)];
  });
}
