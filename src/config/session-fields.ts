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
import { integer, oneOf, path, plainText } from './value-fields.ts'

/** The keys that several ways to sign in share. */
export const passwordSection = section('The password of that account.', {
  file: path().describe(
    'A file with one line, the password itself. Read at the start, and again for every login. Leave it out with `password.device`, which uses the password of the last grant.',
  ),
})

/** The file that holds a password. */
export type PasswordFile = ValueOf<typeof passwordSection>

export function accountName(description: string): Field<string> {
  return plainText('a user name', {
    problemOf: (given) =>
      [...given].some((each) => each < ' ' || each === '\x7f' || each === ':')
        ? 'must not contain a colon, which ends the user name in credentials, or control characters'
        : undefined,
  }).describe(description)
}

export function cookieName(description: string): Field<string> {
  const problemOf = (given: string) =>
    isToken(given) ? undefined : 'must be the name of a cookie (RFC 6265)'
  return plainText('the name of a cookie', { problemOf }).describe(description)
}

/** A path, optionally with a query, as in a request line. */
export function target(options: FieldOptions = {}): Field<string> {
  return plainText('a path that begins with /', { ...options, problemOf: targetProblem })
}

export const sessionSection = section(
  "A session with a token of the device's own, as management controllers (Redfish), transmission and many router APIs have it: the response to a login holds a token, which later requests carry.",
  {
    user: optional(accountName('The account to sign in with, for `$user` in the login.')),
    password: optional(passwordSection),
    login: section('The request that opens a session.', {
      method: method({ default: 'POST' }).describe('The method of the login.'),
      path: target().describe('The path of the login, such as `/redfish/v1/SessionService/Sessions`.'),
      json: optional(mapping(z.unknown())).describe(
        'The body of the login, sent as JSON: `{UserName: $user, Password: $password}`. In its texts `$user` and `$password` stand for the account. Must not contain a secret itself.',
      ),
      form: optional(
        mapping(z.string({ error: 'must be text (in quotes if it looks like a number)' })),
      ).describe(
        'The body of the login, sent as a form: `{username: $user, password: $password}`; in place of `json`. Must not contain a secret itself.',
      ),
    }),
    token: choice('Where the response to the login has the token.', {
      header: headerName('The field that has the token, such as `X-Auth-Token`.'),
      cookie: cookieName('The cookie that has the token.'),
      json: plainText('a JSON Pointer such as /session/id', {
        problemOf: (given) =>
          /^(?:\/(?:[^~/]|~[01])*)+$/.test(given)
            ? undefined
            : 'must be a JSON Pointer (RFC 6901), such as /session/id',
      }).describe('A JSON Pointer (RFC 6901) to the token in the body, such as `/session/id`.'),
    }),
    send: section('How requests carry the token, in place of what the client sends there.', {
      header: optional(headerName('The field for the token, such as `X-Auth-Token` or `Authorization`.')),
      prefix: optional(
        plainText('printable ASCII text', {
          problemOf: (given) => (/^[!-~][ -~]*$/.test(given) ? undefined : 'must be printable ASCII text'),
        }),
      ).describe('Text before the token in that field, such as `"Bearer "`.'),
      cookie: optional(cookieName('The cookie for the token; in place of `header`.')),
    }),
    expired: field<readonly number[]>(
      z.array(integer(400, 499).bare, {
        error: 'must be a list of statuses from 400 to 499',
      }),
      { default: [401], type: 'list of statuses, 400 to 499', textForm: 'yaml' },
    ).describe(
      'The statuses that mean: sign in (again). Use only statuses with which the device does not act on a request, because the request is repeated, whatever its method.',
    ),
    logout: optional(
      section(
        'The request that ends a session: when the sidecar stops, and before the next login. Set it if the device allows few sessions.',
        {
          method: method({ default: 'DELETE' }).describe('The method of the logout.'),
          path: either(
            target().describe('The path of the logout.'),
            section('A field of the response to the login that has the path.', {
              header: headerName('The field, such as `Location`.'),
            }),
            'must be a path that begins with /, or {header: Location}',
          ).describe(
            "The path of the logout, or `{header: Location}`: the field of the response to the login that has it. An address that is not the device's own is not used.",
          ),
        },
      ),
    ),
  },
)

export type SessionConfig = ValueOf<typeof sessionSection>

/** The rules between the keys of a session, each as in `config/conflicts.ts`. The keys are relative to the session. */
export function sessionRules({
  user,
  password,
  login: { json, form },
  send: { header, prefix, cookie },
}: SessionConfig): readonly (readonly [isBroken: boolean, key: string, message: string])[] {
  const body = JSON.stringify([json, form])
  const one = 'must have exactly one of header, cookie'
  const twice = 'must not be set together with json; keep one of the two'
  const noUser = user === undefined && /\$user\b/.test(body)
  const noPassword = password === undefined && /\$password\b/.test(body)
  return [
    [json !== undefined && form !== undefined, 'login.form', twice],
    [(header === undefined) === (cookie === undefined), 'send', one],
    [prefix !== undefined && header === undefined, 'send.prefix', 'must be left out without header'],
    [noUser, 'user', 'must be a user name: the login contains $user'],
    [noPassword, 'password.file', 'must be a path: the login contains $password'],
  ]
}

function headerName(description: string): Field<string> {
  return plainText('the name of a header field', { problemOf: headerNameProblem }).describe(description)
}

function method(options: FieldOptions = {}): Field<string> {
  return oneOf(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'], options)
}

/** A mapping of the device's own names. */
function mapping<T>(
  member: z.ZodMiniType<T>,
  options: FieldOptions = {},
): Field<Readonly<Record<string, T>>> {
  const schema = z.record(z.string(), member, { error: 'must be a mapping of names to values' })
  return field(schema, { ...options, type: 'mapping of names to values', textForm: 'yaml', secret: true })
}
