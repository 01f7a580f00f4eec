const DIGIT_PAIR_TO_59 = "[0-5][0-9]";
const TIME = `(?:[01][0-9]|2[0-3]):${DIGIT_PAIR_TO_59}:${DIGIT_PAIR_TO_59}(?:\\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):${DIGIT_PAIR_TO_59})`;

/** Years that are multiples of 4, but of centuries only every fourth. */
const LEAP_YEAR = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)";
const DATE =
  "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))" +
  `|${LEAP_YEAR}-02-29)`;

const YEARS = "[0-9]{1,9}Y(?:[0-9]{1,9}M(?:[0-9]{1,9}D)?)?";
const MONTHS = "[0-9]{1,9}M(?:[0-9]{1,9}D)?";
const HOURS = "[0-9]{1,9}H(?:[0-9]{1,9}M(?:[0-9]{1,9}S)?)?|[0-9]{1,9}M(?:[0-9]{1,9}S)?|[0-9]{1,9}S";
const DURATION = `P(?:(?:${YEARS}|${MONTHS}|[0-9]{1,9}D)(?:T(?:${HOURS}))?|T(?:${HOURS})|[0-9]{1,9}W)`;

/** Host label of letters, digits and single hyphens: "--" marks internationalized names. */
const LABEL = "[a-zA-Z0-9]+(?:-[a-zA-Z0-9]+)*";
const HOST = `${LABEL}(?:\\.${LABEL})*`;
/** Label short enough for the limits of 63 characters per label and 253 per name. */
const SHORT_LABEL = "[a-zA-Z0-9]{1,20}(?:-[a-zA-Z0-9]{1,20}){0,2}";
/** Host of an e-mail address, with a top-level domain of letters, so that it is no IP address. */
const MAIL_HOST = `(?:${LABEL}\\.)+[a-zA-Z]{2,20}`;
const MAIL_WORD = "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]+";

const BYTE = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
const IPV4 = `${BYTE}(?:\\.${BYTE}){3}`;
const GROUP = "[0-9a-fA-F]{1,4}";
/** Eight groups, or fewer with one "::" for at least two groups. */
const IPV6 = [
  `(?:${GROUP}:){7}${GROUP}`,
  ...[0, 1, 2, 3, 4, 5, 6].map((before) => {
    const left = before === 0 ? "" : `${GROUP}(?::${GROUP}){${before - 1}}`;
    const most = 6 - before;
    return most === 0 ? `${left}::` : `${left}::(?:${GROUP}(?::${GROUP}){0,${most - 1}})?`;
  }),
].join("|");

const UNRESERVED = String.raw`a-zA-Z0-9._~\-`;
const ESCAPED = "%[0-9a-fA-F]{2}";
const PATH = `(?:[${UNRESERVED}!$&'()*+,;=:@]|${ESCAPED})`;
const QUERY = `(?:[${UNRESERVED}!$&'()*+,;=:@/?]|${ESCAPED})`;
const AFTER_HOST = `(?::[0-9]{1,5})?(?:/${PATH}*)*(?:\\?${QUERY}*)?(?:#${QUERY}*)?`;
const SCHEME = "[a-zA-Z][a-zA-Z0-9+.-]{0,19}";
/** URI with a host, or without one like those of `urn` and `mailto`. */
const URI = `${SCHEME}:(?://${HOST}${AFTER_HOST}|${PATH}+(?:/${PATH}*)*(?:\\?${QUERY}*)?(?:#${QUERY}*)?)`;
const RELATIVE = `(?:(?:/${PATH}+)+/?|(?:[${UNRESERVED}!$&'()*+,;=@]|${ESCAPED})+(?:/${PATH}*)*)(?:\\?${QUERY}*)?(?:#${QUERY}*)?`;

const VARIABLE = "[a-zA-Z0-9_]+(?::[1-9][0-9]{0,3}|\\*)?";
const TEMPLATE = `(?:[${UNRESERVED}!$&()*+,;=:@/?#\\[\\]]|${ESCAPED}|\\{[+#./;?&]?${VARIABLE}(?:,${VARIABLE})*\\})*`;

const POINTER = "(?:/(?:[^~/]|~[01])*)*";

/**
 * Patterns of formats: all valid texts if that is simple, otherwise common ones that every validator accepts. Sources
 * are RFC 3339, 5321, 1123, 4291, 3986, 6570, 4122, 6901 and ISO 8601.
 */
const PATTERNS: Readonly<Record<string, string>> = {
  "date-time": `${DATE}T${TIME}`,
  date: DATE,
  time: TIME,
  duration: DURATION,
  email: `(?=.{1,64}@)${MAIL_WORD}(?:\\.${MAIL_WORD})*@${MAIL_HOST}`,
  hostname: `${SHORT_LABEL}(?:\\.${SHORT_LABEL}){0,3}`,
  ipv4: IPV4,
  ipv6: IPV6,
  uri: URI,
  "uri-reference": `${URI}|${RELATIVE}`,
  "uri-template": TEMPLATE,
  uuid: "[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}",
  "json-pointer": POINTER,
  "relative-json-pointer": `(?:0|[1-9][0-9]{0,9})(?:#|${POINTER})`,
  // Letters, digits and classes without groups: few patterns, but all valid.
  regex: String.raw`\^?(?:[a-zA-Z0-9 _:;,@/-]|\\[dwsDWS.+*?()]|\[[a-z0-9]+\][+*?]?)*\$?`,
};

/** Formats that include another format's texts, which are used for them. */
const ASCII_SUBSETS: Readonly<Record<string, string>> = {
  "idn-email": "email",
  "idn-hostname": "hostname",
  iri: "uri",
  "iri-reference": "uri-reference",
};

/** Formats that {@link formatPattern} supports. */
export const FORMAT_NAMES: readonly string[] = [...Object.keys(PATTERNS), ...Object.keys(ASCII_SUBSETS)];

/** Returns an ECMA-262 pattern for the texts of a format; undefined for an unknown format. */
export function formatPattern(name: string): string | undefined {
  const of = Object.hasOwn(ASCII_SUBSETS, name) ? (ASCII_SUBSETS[name] ?? name) : name;
  return Object.hasOwn(PATTERNS, of) ? `^(?:${PATTERNS[of]})$` : undefined;
}
