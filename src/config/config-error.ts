/** Invalid configuration; the message names the source, the option and the expected value. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}
