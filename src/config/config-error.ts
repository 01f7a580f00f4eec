/** The configuration cannot be used; the message names the source, the option and what was expected. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}
