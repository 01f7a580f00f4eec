const DIGIT_PAIR_TO_59 = "[0-5][0-9]";
const TIME = `(?:[01][0-9]|2[0-3]):${DIGIT_PAIR_TO_59}:${DIGIT_PAIR_TO_59}(?:\\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):${DIGIT_PAIR_TO_59})`;

/** Years that are multiples of 4, of which centuries only every fourth. */
const LEAP_YEAR = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)";
const DATE =
  "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))" +
  `|${LEAP_YEAR}-02-29)`;

const YEARS = "[0-9]{1,9}Y(?:[0-9]{1,9}M(?:[0-9]{1,9}D)?)?";
const MONTHS = "[0-9]{1,9}M(?:[0-9]{1,9}D)?";
const HOURS = "[0-9]{1,9}H(?:[0-9]{1,9}M(?:[0-9]{1,9}S)?)?|[0-9]{1,9}M(?:[0-9]{1,9}S)?|[0-9]{1,9}S";
const DURATION = `P(?:(?:${YEARS}|${MONTHS}|[0-9]{1,9}D)(?:T(?:${HOURS}))?|T(?:${HOURS})|[0-9]{1,9}W)`;

/** A name of letters, digits and single hyphens within: "--" begins the names of other alphabets. */
const LABEL = "[a-zA-Z0-9]+(?:-[a-zA-Z0-9]+)*";
const HOST = `${LABEL}(?:\\.${LABEL})*`;
/** Labels have 63 characters at most, and whole names 253. */
const SHORT_LABEL = "[a-zA-Z0-9]{1,20}(?:-[a-zA-Z0-9]{1,20}){0,2}";
/** A top level of letters, so that no host is taken for an address of numbers. */
const MAIL_HOST = `(?:${LABEL}\\.)+[a-zA-Z]{2,20}`;
const MAIL_WORD = "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]+";

const BYTE = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
const IPV4 = `${BYTE}(?:\\.${BYTE}){3}`;
const GROUP = "[0-9a-fA-F]{1,4}";
/** Eight groups, or fewer with one "::" for two groups or more. */
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
/** With a host, or a scheme as `urn` and `mailto` are. */
const URI = `${SCHEME}:(?://${HOST}${AFTER_HOST}|${PATH}+(?:/${PATH}*)*(?:\\?${QUERY}*)?(?:#${QUERY}*)?)`;
const RELATIVE = `(?:(?:/${PATH}+)+/?|(?:[${UNRESERVED}!$&'()*+,;=@]|${ESCAPED})+(?:/${PATH}*)*)(?:\\?${QUERY}*)?(?:#${QUERY}*)?`;

const VARIABLE = "[a-zA-Z0-9_]+(?::[1-9][0-9]{0,3}|\\*)?";
const TEMPLATE = `(?:[${UNRESERVED}!$&()*+,;=:@/?#\\[\\]]|${ESCAPED}|\\{[+#./;?&]?${VARIABLE}(?:,${VARIABLE})*\\})*`;

const POINTER = "(?:/(?:[^~/]|~[01])*)*";

/**
 * Patterns of texts that have a format: all of them where that is simple, otherwise the usual ones, which every
 * validator takes. The sources are RFC 3339, 5321, 1123, 4291, 3986, 6570, 4122, 6901 and ISO 8601.
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
  // Letters, digits and classes without what needs a partner: few patterns, but each is one.
  regex: String.raw`\^?(?:[a-zA-Z0-9 _:;,@/-]|\\[dwsDWS.+*?()]|\[[a-z0-9]+\][+*?]?)*\$?`,
};

/** Formats of which the ASCII texts of another format are a part. */
const ALSO: Readonly<Record<string, string>> = {
  "idn-email": "email",
  "idn-hostname": "hostname",
  iri: "uri",
  "iri-reference": "uri-reference",
};

/** The formats that {@link generatedFormat} knows. */
export const FORMAT_NAMES: readonly string[] = [...Object.keys(PATTERNS), ...Object.keys(ALSO)];

/** A pattern of ECMA-262 for texts that have a format; undefined for an unknown format. */
export function generatedFormat(name: string): string | undefined {
  const of = Object.hasOwn(ALSO, name) ? (ALSO[name] ?? name) : name;
  return Object.hasOwn(PATTERNS, of) ? `^(?:${PATTERNS[of]})$` : undefined;
}
