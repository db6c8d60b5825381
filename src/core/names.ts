// Names as Kubernetes accepts them. Every check returns the reasons why a text is not acceptable; none means it is.

export type NameCheck = (text: string) => readonly string[];

const LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const SUBDOMAIN = `${LABEL}(\\.${LABEL})*`;
const SUBDOMAIN_UNDERSCORE = '[a-z0-9_]([-_a-z0-9]*[a-z0-9_])?(\\.[a-z0-9_]([-_a-z0-9]*[a-z0-9_])?)*';
const QUALIFIED = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';

const whole = (pattern: string): RegExp => new RegExp(`^(?:${pattern})$`);
const LABEL_RE = whole(LABEL);
const SUBDOMAIN_RE = whole(SUBDOMAIN);
const SUBDOMAIN_UNDERSCORE_RE = whole(SUBDOMAIN_UNDERSCORE);
const QUALIFIED_RE = whole(QUALIFIED);

const MAX_LABEL = 63;
const MAX_SUBDOMAIN = 253;

export const tooLong = (max: number): string => `must be no more than ${max} bytes`;
export const outOfRange = (low: number, high: number): string => `must be between ${low} and ${high}, inclusive`;
const byRegex = (rule: string, pattern: string, ...examples: string[]): string =>
  `${rule} (e.g. ${examples.map((e) => `'${e}', `).join(' or ')}regex used for validation is '${pattern}')`;

const bytes = (text: string): number => Buffer.byteLength(text);

const LABEL_RULE = byRegex(
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
  LABEL,
  'my-name',
  '123-abc',
);
const SUBDOMAIN_RULE = byRegex(
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
  SUBDOMAIN,
  'example.com',
);
const SUBDOMAIN_UNDERSCORE_RULE = byRegex(
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character or '_'",
  SUBDOMAIN_UNDERSCORE,
  '_example.com',
);
const QUALIFIED_RULE = byRegex(
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  QUALIFIED,
  'MyName',
  'my.name',
  '123-abc',
);

const limited = (pattern: RegExp, rule: string, max: number): NameCheck => {
  return (text) => [...(bytes(text) > max ? [tooLong(max)] : []), ...(pattern.test(text) ? [] : [rule])];
};

export const dns1123Label: NameCheck = limited(LABEL_RE, LABEL_RULE, MAX_LABEL);
export const dns1123Subdomain: NameCheck = limited(SUBDOMAIN_RE, SUBDOMAIN_RULE, MAX_SUBDOMAIN);
export const dns1123SubdomainWithUnderscore: NameCheck = limited(
  SUBDOMAIN_UNDERSCORE_RE,
  SUBDOMAIN_UNDERSCORE_RULE,
  MAX_SUBDOMAIN,
);

const TOO_MANY_SLASHES = byRegex(
  "a qualified name must consist of alphanumeric characters, '-', '_' or '.', with an optional DNS subdomain prefix and '/'",
  QUALIFIED,
  'MyName',
  'example.com/MyName',
);
/** `[prefix/]name`: label and annotation keys, resources, conditions, finalizers. */
export const qualifiedName: NameCheck = (text) => {
  const parts = text.split('/');
  if (parts.length > 2) return [TOO_MANY_SLASHES];
  const problems: string[] = [];
  const name = parts.length === 2 ? (parts[1] ?? '') : text;
  if (parts.length === 2) {
    const prefix = parts[0] ?? '';
    if (prefix === '') problems.push('prefix part must be non-empty');
    else problems.push(...dns1123Subdomain(prefix).map((p) => `prefix part ${p}`));
  }
  if (name === '') problems.push('name part must be non-empty');
  else if (bytes(name) > MAX_LABEL) problems.push(`name part ${tooLong(MAX_LABEL)}`);
  if (!QUALIFIED_RE.test(name)) problems.push(`name part ${QUALIFIED_RULE}`);
  return problems;
};

const LABEL_VALUE_RULE = byRegex(
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  `(${QUALIFIED})?`,
  'MyValue',
  'my_value',
  '12345',
);
export const labelValue: NameCheck = (text) => [
  ...(bytes(text) > MAX_LABEL ? [tooLong(MAX_LABEL)] : []),
  ...(text === '' || QUALIFIED_RE.test(text) ? [] : [LABEL_VALUE_RULE]),
];

/** Environment variables may have any printable ASCII but `=`. */
export const envVarName: NameCheck = (text) => {
  if (text === '') return ['environment variable name must be non-empty'];
  return /^[ -<>-~]+$/.test(text)
    ? []
    : ["a valid environment variable name must consist only of printable ASCII characters other than '='"];
};

/** Keys of ConfigMaps and Secrets: they become file names. */
export const configMapKey: NameCheck = (text) => {
  const problems: string[] = [];
  if (bytes(text) > MAX_SUBDOMAIN) problems.push(tooLong(MAX_SUBDOMAIN));
  if (!/^[-._a-zA-Z0-9]+$/.test(text))
    problems.push(
      byRegex(
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
        '[-._a-zA-Z0-9]+',
        'key.name',
        'KEY_NAME',
        'key-name',
      ),
    );
  if (text === '.') problems.push("must not be '.'");
  else if (text === '..') problems.push("must not be '..'");
  else if (text.startsWith('..')) problems.push("must not start with '..'");
  return problems;
};

/** IANA service names: what a container port may be called. */
export const portName: NameCheck = (text) => {
  const problems: string[] = [];
  if (bytes(text) > 15) problems.push(tooLong(15));
  if (!/^[-a-z0-9]+$/.test(text))
    problems.push('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)');
  if (!/[a-z]/.test(text)) problems.push('must contain at least one letter (a-z)');
  if (text.includes('--')) problems.push('must not contain consecutive hyphens');
  if (text.startsWith('-') || text.endsWith('-')) problems.push('must not begin or end with a hyphen');
  return problems;
};

export const portNumber = (port: number): readonly string[] =>
  Number.isInteger(port) && port >= 1 && port <= 65535 ? [] : [outOfRange(1, 65535)];

const MAX_ID = 2 ** 31 - 1;
/** User and group ids. */
export const userOrGroupId = (id: number): readonly string[] =>
  Number.isInteger(id) && id >= 0 && id <= MAX_ID ? [] : [outOfRange(0, MAX_ID)];

export const httpHeaderName: NameCheck = (text) =>
  /^[-A-Za-z0-9]+$/.test(text)
    ? []
    : [byRegex("a valid HTTP header must consist of alphanumeric characters or '-'", '[-A-Za-z0-9]+', 'X-Header-Name')];

const MAX_SYSCTL = 253;
const SYSCTL_SEGMENT = '[a-z0-9]([-_a-z0-9]*[a-z0-9])?';
const SYSCTL = `^(${SYSCTL_SEGMENT}[\\./])*${SYSCTL_SEGMENT}$`;
const SYSCTL_RE = new RegExp(SYSCTL);
export const sysctlName: NameCheck = (text) =>
  bytes(text) <= MAX_SYSCTL && SYSCTL_RE.test(text)
    ? []
    : [`must have at most ${MAX_SYSCTL} characters and match regex ${SYSCTL}`];

const MAX_CSI_DRIVER = 63;
export const csiDriverName: NameCheck = (text) => [
  ...(bytes(text) > MAX_CSI_DRIVER ? [tooLong(MAX_CSI_DRIVER)] : []),
  ...dns1123Subdomain(text.toLowerCase()),
];

/** Signers of certificates: `domain/path`. */
export const signerName: NameCheck = (text) => {
  if (text === '') return ['must be non-empty'];
  const slash = text.indexOf('/');
  if (slash < 0) return ['must be a fully qualified domain and path of the form "example.com/signer-name"'];
  const domain = text.slice(0, slash);
  const path = text.slice(slash + 1);
  const problems = dns1123Subdomain(domain).slice();
  if (!domain.includes('.')) problems.push('should be a domain with at least two segments separated by dots');
  if (path === '' || !path.split('.').every((segment) => LABEL_RE.test(segment)))
    problems.push('the path must be dot-separated lowercase RFC 1123 labels');
  if (bytes(text) > 571) problems.push(tooLong(571));
  return problems;
};
