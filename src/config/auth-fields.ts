import { isToken } from '../http/fields.ts'
import { targetProblem } from './address.ts'
import {
  choice,
  either,
  type Field,
  type FieldOptions,
  field,
  optional,
  section,
  type ValueOf,
  z,
} from './field.ts'
import { headerNameProblem } from './header-field.ts'
import { sentField } from './sent-field.ts'
import { integer, oneOf, path, plainText, unless } from './value-fields.ts'

/** The section with the password file of the account. */
const passwordSection = section({ file: path() })

/** The file that holds the password of the account. */
type PasswordFile = ValueOf<typeof passwordSection>

const accountName = plainText('a user name', {
  problemOf: unless(
    (given) => ![...given].some((each) => each < ' ' || each === '\x7f' || each === ':'),
    'must not contain a colon, which ends the user name in credentials, or control characters',
  ),
})

const cookieName = plainText('the name of a cookie', {
  problemOf: unless(isToken, 'must be the name of a cookie (RFC 6265)'),
})

const headerName = plainText('the name of a header field', { problemOf: headerNameProblem })

/** A path, optionally with a query, as in a request line. */
function target(options: FieldOptions = {}): Field<string> {
  return plainText('a path that begins with /', { ...options, problemOf: targetProblem })
}

/** A JSON Pointer to a member of a body. */
const pointer = plainText('a JSON Pointer such as /session/id', {
  problemOf: unless(/^(?:\/(?:[^~/]|~[01])*)+$/, 'must be a JSON Pointer (RFC 6901), such as /session/id'),
})

/** What a response says that means: sign in (again). A status, or a value in its JSON. */
const expirySign = either(
  integer(400, 499),
  section({
    json: pointer,
    value: field<string | number | boolean>(
      () =>
        z.union([z.string(), z.number(), z.boolean()], { error: 'must be text, a number, true or false' }),
      { type: 'text, a number, `true` or `false`', textForm: 'yaml' },
    ),
  }),
  'must be a status from 400 to 499, or a value such as {json: /error/code, value: 2}',
)

/** The signs of an expired session. */
const expired = field<readonly ValueOf<typeof expirySign>[]>(
  () => z.array(expirySign.schema(), { error: 'must be a list of statuses from 400 to 499' }),
  {
    default: [401],
    type: 'list of statuses, 400 to 499, or of `{json: POINTER, value: V}`',
    item: expirySign,
    textForm: 'yaml',
  },
)

/** The keys of `kind: session`. */
const session = section({
  login: section({
    method: method({ default: 'POST' }),
    path: target(),
    page: optional(target()),
    json: optional(mapping(() => z.unknown())),
    form: optional(mapping(() => z.string({ error: 'must be text (in quotes if it looks like a number)' }))),
  }),
  token: optional(
    choice({
      header: headerName,
      cookie: cookieName,
      json: pointer,
    }),
  ),
  send: optional(section({ header: sentField() })),
  expired,
  logout: optional(section({ method: method({ default: 'DELETE' }), path: optional(target()) })),
})

const accountKeys = section({
  kind: oneOf(['basic', 'digest', 'session']),
  user: optional(accountName),
  password: optional(passwordSection),
  checkPath: optional(target()),
  session: optional(session),
})

/** The keys of every kind. Both are optional, because some devices have tokens but no accounts. */
interface AnyAccount {
  readonly user?: string
  readonly password?: PasswordFile
}

/** An account at the device, by the kind of its login. */
export type DeviceAccount =
  | (AnyAccount & { readonly kind: 'basic' | 'digest'; readonly user: string; readonly checkPath: string })
  | (AnyAccount & {
      readonly kind: 'session'
      readonly checkPath?: string
      readonly session: ValueOf<typeof session>
    })

/** Refuses the keys of another kind, and requires the keys of its own kind. */
const account: Field<DeviceAccount> = {
  ...accountKeys,
  initial: undefined,
  schema: () =>
    z.pipe(
      accountKeys.schema(),
      z.transform((given, { issues }) => {
        const { kind, user, password, checkPath } = given
        const must = (key: string, what: string) =>
          issues.push({ code: 'custom', message: `must ${what}`, path: [key], input: given })
        const common = { ...(user !== undefined && { user }), ...(password !== undefined && { password }) }
        if (kind === 'session') {
          const page = checkPath === undefined ? {} : { checkPath }
          if (given.session !== undefined) return { ...common, ...page, kind, session: given.session }
          must('session', 'be a mapping with login')
          return z.NEVER
        }
        if (given.session !== undefined) must('session', `be left out with kind: ${kind}`)
        if (user === undefined) must('user', 'be a user name')
        return { ...common, kind, user: user ?? '', checkPath: checkPath ?? '/' }
      }),
    ),
}

export const authField = either(
  oneOf(['off']),
  account,
  'must be off, or a mapping with kind: basic, digest or session',
  {
    default: 'off',
    // A common mistake is to write the password itself here.
    secret: true,
  },
)

export type UpstreamAuthConfig = ValueOf<typeof authField>

export type SessionAccount = Extract<DeviceAccount, { readonly kind: 'session' }>

export type SessionSettings = SessionAccount['session']

/** Whether a login sends this part of the account. Basic and Digest always do. */
export function loginHas(part: '$user' | '$password', account: DeviceAccount): boolean {
  if (account.kind !== 'session') return true
  const { json, form } = account.session.login
  const pattern = new RegExp(`\\${part}\\b`)
  const texts: string[] = []
  // Only values are searched: names are sent as they are.
  JSON.stringify([json, form], (_, value: unknown) => {
    if (typeof value === 'string') texts.push(value)
    return value
  })
  return texts.some((text) => pattern.test(text))
}

/** The field that the sidecar writes into each request to sign in; undefined if it is `Cookie`, because clients send that field, too. */
export function writtenField(auth: DeviceAccount): string | undefined {
  return auth.kind === 'session' ? sentName(auth.session.send) : 'Authorization'
}

/** The fields of a response that can carry the token of `upstream.auth.session`. */
export function tokenHeaders(auth: UpstreamAuthConfig): readonly string[] {
  return auth === 'off' || auth.kind !== 'session' ? [] : sessionFields(auth.session)
}

/** The fields in which responses give the token of a session and requests send it. */
export function sessionFields({ token, send }: SessionSettings): readonly string[] {
  const named = token !== undefined && 'header' in token ? token.header : undefined
  return [named, sentName(send)].filter((name) => name !== undefined)
}

/** The name of the field that carries the token; undefined if a cookie does. */
function sentName(send: SessionSettings['send']): string | undefined {
  return send?.header.cookie === undefined ? send?.header.name : undefined
}

function method(options: FieldOptions = {}): Field<string> {
  return oneOf(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'], options)
}

/** A mapping of the device's own names. */
function mapping<T>(member: () => z.ZodMiniType<T>): Field<Readonly<Record<string, T>>> {
  const build = () => z.record(z.string(), member(), { error: 'must be a mapping of names to values' })
  return field(build, { type: 'mapping of names to values', textForm: 'yaml', secret: true })
}
