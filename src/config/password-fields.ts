import { METHODS } from 'node:http'
import { UPGRADE } from '../http/scope.ts'
import { plainPathProblem, socketPathProblem } from './address.ts'
import { choice, field, optional, section, type ValueOf, z } from './field.ts'
import {
  duration,
  flag,
  integer,
  list,
  passwordFile,
  path,
  plainText,
  truth,
  unless,
} from './value-fields.ts'

const ADVICE = 'such as {file: /etc/postern/password}, a file with one line, the password or its hash'

/** The line of one user in an htpasswd or shadow file. */
const entry = section({
  file: path(),
  user: plainText('a user name', {
    problemOf: unless(/^[^:]*$/, 'must not contain a colon, which ends the user name in such a file'),
  }),
})

export const passwordField = optional(
  choice(
    {
      file: passwordFile(),
      htpasswd: entry,
      shadow: entry,
      device: truth(),
      socket: plainText('the path of a Unix socket', { problemOf: socketPathProblem }),
    },
    ADVICE,
  ),
)

export const MOST_NAMES = 16

/** A name is part of the id of its grants, so it has no dot. It does not begin with a dash: `--grant` would take it for a flag. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$/

const METHOD_NAMES: ReadonlySet<string> = new Set([...METHODS, UPGRADE])

/** Whether a text can be a name of `passwords`. */
export function isPasswordName(text: string): boolean {
  return NAME.test(text)
}

/** Whether `methods` of an `allow` may contain this text. */
export function isAllowedMethod(text: string): boolean {
  return METHOD_NAMES.has(text)
}

const allowRule = section({
  methods: optional(
    list('methods', 'must be a method such as GET, or UPGRADE for WebSockets', {
      problemOf: unless(
        (given) => METHOD_NAMES.has(given),
        'must be a method such as GET, in upper case, or UPGRADE for WebSockets',
      ),
    }),
  ),
  paths: optional(
    list('request paths', 'must be a path such as /status, or /api/ for everything below it', {
      problemOf: plainPathProblem,
    }),
  ),
})

const namedPassword = section({
  name: plainText('a name', {
    problemOf: unless(NAME, 'must be at most 32 letters, digits, - and _, beginning with a letter or digit'),
  }),
  file: optional(passwordFile()),
  htpasswd: optional(entry),
  shadow: optional(entry),
  allow: optional(
    field<'read' | readonly ValueOf<typeof allowRule>[]>(
      () =>
        z.union([z.literal('read'), z.array(allowRule.schema())], {
          error: 'must be read, or a list such as [{methods: [GET], paths: [/status]}]',
        }),
      { type: '`read`, or a list', item: allowRule },
    ),
  ),
  limit: optional(
    section({
      requests: integer(1, 1_000_000_000),
      window: duration('1s', '1d', { wholeSeconds: true, default: '60s' }),
    }),
  ),
  enforce: flag({ default: true }),
})

export const passwordsField = optional(
  field<readonly ValueOf<typeof namedPassword>[]>(
    () =>
      z.array(namedPassword.schema(), {
        error: 'must be a list such as [{name: admin, file: /etc/postern/password}]',
      }),
    {
      type: 'list of `{name: N, file: F, allow: A, limit: L, enforce: E}`',
      textForm: 'yaml',
      item: namedPassword,
      // A common mistake is to write the password itself here.
      secret: true,
    },
  ),
)

interface PasswordConfig {
  readonly password?: ValueOf<typeof passwordField>
  readonly passwords?: ValueOf<typeof passwordsField>
}

/** The file of one password. */
interface NamedSource {
  /** Empty for the source of `password`. */
  readonly name: string
  readonly file: string
  /** The user whose line has the password, in an htpasswd or shadow file. */
  readonly user?: string
  /** Whether the file is a shadow file. */
  readonly shadow?: boolean
  /** The configuration key of the file. */
  readonly key: string
}

/** The sources of the passwords, in the order of the configuration. None if the device or a hook checks the password. */
export function passwordSources({ password, passwords }: PasswordConfig): readonly NamedSource[] {
  if (password !== undefined)
    return 'device' in password || 'socket' in password ? [] : sourcesIn('', password, 'password')
  return (passwords ?? []).flatMap((entry, index) => sourcesIn(entry.name, entry, `passwords.${index}`))
}

/** The source of the password of the live page; none if it has no password. Without a listener there is no page, and nothing is read. */
export function pagePasswordSources({
  address,
  passwordFile: file,
}: {
  readonly address: unknown
  readonly passwordFile?: string | undefined
}): readonly NamedSource[] {
  return file === undefined || address === 'off' ? [] : [{ name: '', file, key: 'admin.password_file' }]
}

/** Whether the device checks the password of each grant. */
export function checkedByDevice({ password }: PasswordConfig): boolean {
  return password !== undefined && 'device' in password
}

/** The socket of the hook that checks the password of each grant; undefined if something else does. */
export function socketOfHook({ password }: PasswordConfig): string | undefined {
  return password !== undefined && 'socket' in password ? password.socket : undefined
}

/** What checks passwords. `functions`: those of the program that embeds Postern, so the configuration names nothing. */
export function kindOfPassword(config: PasswordConfig): 'device' | 'socket' | 'names' | 'file' | 'functions' {
  if (checkedByDevice(config)) return 'device'
  if (socketOfHook(config) !== undefined) return 'socket'
  if (config.passwords !== undefined) return 'names'
  return config.password === undefined ? 'functions' : 'file'
}

type Entry = Omit<ValueOf<typeof namedPassword>, 'name' | 'allow' | 'enforce' | 'limit'>

/** The source of an entry; none if the entry is invalid. */
function sourcesIn(name: string, { file, htpasswd, shadow }: Entry, above: string): NamedSource[] {
  if (file !== undefined) return [{ name, file, key: `${above}.file` }]
  if (htpasswd !== undefined) return [{ name, ...htpasswd, key: `${above}.htpasswd.file` }]
  return shadow === undefined ? [] : [{ name, ...shadow, shadow: true, key: `${above}.shadow.file` }]
}
