import { METHODS } from 'node:http'
import { UPGRADE } from '../http/scope.ts'
import { plainPathProblem } from './address.ts'
import { choice, field, optional, section, type ValueOf, z } from './field.ts'
import { list, optionalPath, parseBy, path, plainText } from './value-fields.ts'

const ADVICE = 'such as {file: /etc/postern/password}, a file with one line, the password or its hash'

export const passwordField = optional(
  choice(
    'The source of the device password: exactly one of these. A file is watched: when the password changes, all tokens are revoked.',
    {
      file: path().describe('A file with one line, the password or a hash of it.'),
      htpasswd: entry('an htpasswd file'),
      shadow: entry('a shadow file, as in `/etc/shadow`'),
      device: field(z.literal(true, { error: 'must be true' }), {
        type: '`true`',
        textForm: 'yaml',
      }).describe(
        'For a device without a readable password file: the sidecar checks the password of each grant by signing in to the device, as `upstream.auth` defines. The sidecar keeps the last right password in memory only, and uses it to sign in for forwarded requests. If the device refuses it later, it counts as changed. After a restart the sidecar knows no password. Until the next grant, requests with restored tokens reach the device without credentials. If that grant has a different password, the restored tokens are revoked first. A wrong password in a grant is a failed login at the device, which may lock the account: see `limits.oauth`.',
      ),
    },
    ADVICE,
  ),
)

export const MOST_NAMES = 16

/** It becomes part of the id of a grant, so it has no dot, and no dash at its beginning, where `--grant` would take it for a flag. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$/

const METHOD_NAMES: ReadonlySet<string> = new Set([...METHODS, UPGRADE])

const allowRule = section('Requests that a name may make.', {
  methods: optional(
    list({
      type: 'methods',
      must: 'must be a method such as GET, or UPGRADE for WebSockets',
      parse: parseBy((given) =>
        METHOD_NAMES.has(given)
          ? undefined
          : 'must be a method such as GET, in upper case, or UPGRADE for WebSockets',
      ),
    }),
  ).describe('These methods; left out: all but UPGRADE.'),
  paths: optional(
    list({
      type: 'request paths',
      must: 'must be a path such as /status, or /api/ for everything below it',
      parse: parseBy(plainPathProblem),
    }),
  ).describe('These paths; left out: all.'),
})

const namedPassword = section('One password, and what its logins may do.', {
  name: plainText('a name', {
    problemOf: (given) =>
      NAME.test(given)
        ? undefined
        : 'must be at most 32 letters, digits, - and _, beginning with a letter or digit',
  }).describe('The name of its logins.'),
  file: optionalPath().describe('As `password.file`.'),
  htpasswd: optional(entry('an htpasswd file')),
  shadow: optional(entry('a shadow file, as in `/etc/shadow`')),
  allow: optional(
    field<'read' | readonly ValueOf<typeof allowRule>[]>(
      z.union([z.literal('read'), z.array(allowRule.bare)], {
        error: 'must be read, or a list such as [{methods: [GET], paths: [/status]}]',
      }),
      { type: '`read`, or a list' },
    ).describe('What its logins may do; left out: everything.'),
  ),
})

export const passwordsField = optional(
  field<readonly ValueOf<typeof namedPassword>[]>(
    z.array(namedPassword.bare, {
      error: 'must be a list such as [{name: admin, file: /etc/postern/password}]',
    }),
    {
      type: 'list of `{name: N, file: F, allow: A}`',
      textForm: 'yaml',
      // A common mistake is to write the password itself here.
      secret: true,
      live: sameSources,
    },
  ).describe(
    'In place of `password`: several passwords, at most 16, each with a name and with what its logins may do. Each entry has a `name`, one of `file`, `htpasswd` and `shadow` as in `password`, and perhaps `allow`. Without `allow` its logins may do everything. `allow: read` is short for GET, HEAD and OPTIONS on every path. Otherwise `allow` is a list such as `[{methods: [GET, HEAD], paths: [/status, /api/sensors/]}]`: a request is allowed if one of the entries has its method and its path. A WebSocket needs the method `UPGRADE`. Other requests are refused with 400 `insufficient_scope` (`status_codes: http`: 403), also with `enforce: false`. docs/hardening.md says how paths are compared, and what ends with a changed password or a removed name. Tokens of `password` in the token file become those of the name `admin`, or of the only name.',
  ),
)

export interface PasswordConfig {
  readonly password?: ValueOf<typeof passwordField>
  readonly passwords?: ValueOf<typeof passwordsField>
}

/** The file of one password. */
export interface NamedSource {
  /** Empty for that of `password`. */
  readonly name: string
  readonly file: string
  /** Whose line it is, in an htpasswd or shadow file. */
  readonly user?: string
  /** The configuration key of the file. */
  readonly key: string
}

/** The sources of the passwords, in the order of the configuration. None if the device checks the password. */
export function passwordSources({ password, passwords }: PasswordConfig): readonly NamedSource[] {
  if (password !== undefined) return 'device' in password ? [] : sourcesIn('', password, 'password')
  return (passwords ?? []).flatMap((entry, index) => sourcesIn(entry.name, entry, `passwords.${index}`))
}

/** Whether the device checks the password of each grant. */
export function checkedByDevice({ password }: PasswordConfig): boolean {
  return password !== undefined && 'device' in password
}

type Entry = Omit<ValueOf<typeof namedPassword>, 'name' | 'allow'>

/** The source that an entry has; none if it is invalid. */
function sourcesIn(name: string, { file, htpasswd, shadow }: Entry, above: string): NamedSource[] {
  if (file !== undefined) return [{ name, file, key: `${above}.file` }]
  if (htpasswd !== undefined) return [{ name, ...htpasswd, key: `${above}.htpasswd.file` }]
  return shadow === undefined ? [] : [{ name, ...shadow, key: `${above}.shadow.file` }]
}

/** Whether a reload can apply the change: it changes `allow` and removes names, but opens no file for a new name or source. */
function sameSources(before: unknown, after: unknown): boolean {
  const sources = (value: unknown): string[] =>
    // Proof of the cast: a value of this field.
    ((value ?? []) as NonNullable<PasswordConfig['passwords']>).map(({ allow, ...source }) =>
      JSON.stringify(source),
    )
  const known = new Set(sources(before))
  return before !== undefined && after !== undefined && sources(after).every((source) => known.has(source))
}

function entry(file: string) {
  return section(`The entry of one user in ${file}.`, {
    file: path().describe(`The path of ${file}.`),
    user: plainText('a user name', {
      problemOf: (given) =>
        given.includes(':') ? 'must not contain a colon, which ends the user name in such a file' : undefined,
    }).describe('The user whose entry is used.'),
  })
}
